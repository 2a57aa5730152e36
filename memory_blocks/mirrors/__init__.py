"""Places that show the blocks to others."""
