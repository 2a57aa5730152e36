"""The database: conversations, messages, traces, turns and blocks, on SQLite and on PostgreSQL."""
