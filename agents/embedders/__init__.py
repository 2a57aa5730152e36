"""Ways to turn a text into a vector that is near those of texts that mean the same."""
