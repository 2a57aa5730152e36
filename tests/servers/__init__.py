"""Fixtures that give a test a real server, started once for the whole run."""
