"""The ledger of memories made from conversations: what was made, of which messages, and what was deleted."""
