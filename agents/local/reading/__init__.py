"""Reads a message without a language model: its clauses, what each does, and the facts it changes."""
