"""Connections break: WebSockets and LiveKit rooms."""
