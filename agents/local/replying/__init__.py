"""Writes replies without a language model: what was noted, what was told before, and at most one question."""
