"""Tests of `orchestrator/api`."""
