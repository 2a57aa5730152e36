"""Long-term memories for tests."""
