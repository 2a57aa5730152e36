"""Makes long-term memories of conversations: the only code that writes the ledger of memories."""
