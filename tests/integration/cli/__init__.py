"""Commands, run as a person or a script runs them."""
