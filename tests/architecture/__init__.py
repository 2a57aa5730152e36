"""The structure of the project: its imports, its tree and its documents."""
