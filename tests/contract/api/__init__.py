"""The HTTP API over a real store, on both databases."""
