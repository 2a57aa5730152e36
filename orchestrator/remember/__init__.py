"""Writes long-term memory: the only code that makes or changes memories and their index."""
