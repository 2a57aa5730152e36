"""Which intent a message belongs to, learned from examples."""
