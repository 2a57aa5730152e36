"""The store: the tables the protocol speaks of, on SQLite and on Postgres."""
