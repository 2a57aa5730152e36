"""Servers the tests talk to, started for as long as somebody needs them."""
