"""The four memory blocks of a conversation: their fields, their limits, and how they are read and written."""
