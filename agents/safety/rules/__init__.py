"""Danger by rules: words, phrases and readings in a message."""
