"""One repository per group of tables."""
