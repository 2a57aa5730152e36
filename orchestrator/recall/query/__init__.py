"""Reads a query: its words, what it asks for, its time words and its spelling."""
