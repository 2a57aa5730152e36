"""Brains, models and kept conversations for tests."""
