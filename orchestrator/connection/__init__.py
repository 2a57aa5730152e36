"""Connections: who is connected, and what is done with each frame."""
