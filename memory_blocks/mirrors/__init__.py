"""Copies of the blocks in other places, where others may edit them."""
