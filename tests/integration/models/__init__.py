"""A model endpoint; the files of the embedding model."""
