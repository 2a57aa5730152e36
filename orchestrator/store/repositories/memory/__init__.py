"""Memory blocks, facts and long-term memories."""
