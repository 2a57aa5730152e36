"""Tools that an agent uses instead of guessing: arithmetic, and whatever a client offers."""
