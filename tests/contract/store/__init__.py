"""The database: what it stores, what it refuses, and the checks of it."""
