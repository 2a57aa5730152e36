"""The search of long-term memory, on both databases."""
