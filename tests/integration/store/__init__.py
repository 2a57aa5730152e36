"""Migrations, and the PostgreSQL server of the tests."""
