"""What the rules find in one message, and what they let pass."""
