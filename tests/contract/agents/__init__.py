"""Brains and embedders."""
