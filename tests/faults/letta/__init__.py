"""The Letta server fails, restarts, or loses answers."""
