"""Servers that have models: a chat endpoint and Letta."""
