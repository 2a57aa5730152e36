"""Tests of `orchestrator`: its own modules, `connection`, `client` and `cli`."""
