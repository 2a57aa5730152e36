"""Benchmarks of the memory blocks and of long-term memory."""
