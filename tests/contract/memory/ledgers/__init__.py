"""The ledger of memories made of conversations, in files and in the tables of both databases."""
