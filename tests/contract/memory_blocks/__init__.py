"""Block stores and mirrors."""
