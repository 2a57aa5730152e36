"""Measures routing, follow-ups and safety on files of cases."""
