"""Decisions: what a message means, who should answer it, and what is said."""
