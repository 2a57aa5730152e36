"""Servers for tests, each a command that starts one and stops it when the test run ends."""
