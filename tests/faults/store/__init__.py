"""The database is locked, full, replaced or unreachable, or a process dies in a transaction."""
