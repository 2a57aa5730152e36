"""A Python client for a running server."""
