"""Whole conversations over the wire, as a client sees them."""
