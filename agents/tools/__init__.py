"""What an agent can have done for it instead of guessing: arithmetic, and whatever a client offers."""
