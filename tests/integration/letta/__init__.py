"""A real Letta server."""
