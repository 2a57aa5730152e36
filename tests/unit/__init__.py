"""Pure code, and whole turns with test doubles: quick enough to run on every save."""
