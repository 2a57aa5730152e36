"""The only way to read or write a block, and how blocks are repaired."""
