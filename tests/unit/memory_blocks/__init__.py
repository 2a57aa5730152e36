"""Tests of `memory_blocks`."""
