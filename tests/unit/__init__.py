"""Pure code and the whole corridor with our doubles: the suite one runs on every save."""
