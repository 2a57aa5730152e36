"""Finds the intent of a message with a classifier that is trained from examples."""
