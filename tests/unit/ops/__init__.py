"""Tests of `orchestrator/ops`."""
