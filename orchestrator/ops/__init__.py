"""Logs, metrics, the clock and other helpers for all packages."""
