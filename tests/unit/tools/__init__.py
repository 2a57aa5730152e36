"""Tests of `tools` and of the wheel."""
