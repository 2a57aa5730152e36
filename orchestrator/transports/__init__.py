"""Adapters of the `Transport` port: each carries frames in another way."""
