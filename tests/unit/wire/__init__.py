"""Tests of `orchestrator/wire`."""
