"""Benchmarks: the project compared with bare libraries that do the same work in the same run."""
