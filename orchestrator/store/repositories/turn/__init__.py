"""What happened in each turn."""
