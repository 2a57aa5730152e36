"""Block stores that need nothing but this package."""
