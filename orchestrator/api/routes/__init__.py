"""One module per HTTP resource. Each has a function that builds its router; `app.py` includes them all."""
