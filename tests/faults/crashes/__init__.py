"""Servers that are killed or stalled."""
