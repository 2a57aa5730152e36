"""One turn: from a stored message to a finished answer."""
