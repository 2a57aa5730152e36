"""Brains with a language model."""
