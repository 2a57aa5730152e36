"""Embedders turn a text into a vector that is near the vectors of texts with the same meaning."""
