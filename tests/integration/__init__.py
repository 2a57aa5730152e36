"""Real servers and real tools."""
