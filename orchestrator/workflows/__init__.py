"""Workflows: JSON files whose nodes create memories, read them, or ask a model."""
