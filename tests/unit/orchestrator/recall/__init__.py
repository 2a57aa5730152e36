"""How a query is read, and how what was found is packaged."""
