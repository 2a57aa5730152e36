"""Benchmarks of whole servers."""
