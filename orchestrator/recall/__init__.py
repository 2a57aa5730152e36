"""Searches long-term memory. It only reads memories; all it writes is the record of a search."""
