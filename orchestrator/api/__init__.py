"""The HTTP API: the application, its routes, and who may call them."""
