"""Servers for tests, and clients of real ones."""
