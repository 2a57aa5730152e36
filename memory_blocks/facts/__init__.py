"""Facts about people: changes to them, and how they are shown in a block."""
