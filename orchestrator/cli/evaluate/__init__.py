"""Commands that try messages out and measure quality."""
