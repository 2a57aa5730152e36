"""Tests of the facts in the blocks."""
