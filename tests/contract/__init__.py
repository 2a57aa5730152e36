"""One suite per port, over every adapter of it."""
