"""The steps of a turn that ask a brain or the embedding model: understand, embed."""
