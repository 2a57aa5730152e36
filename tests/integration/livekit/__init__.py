"""A real LiveKit server."""
