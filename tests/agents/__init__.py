"""The agents as shipped, with the embedding model: how they route, and whole conversations with them."""
