"""Commands for what is remembered."""
