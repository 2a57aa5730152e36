"""Checks that the content of a database is consistent."""
