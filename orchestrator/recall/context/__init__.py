"""Turns what was found into the context of an answer, within a token budget, and sums up how."""
