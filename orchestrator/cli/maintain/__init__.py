"""Commands that check and maintain an installation."""
