"""The shape of the project: who knows whom, and that what the documents say is so."""
