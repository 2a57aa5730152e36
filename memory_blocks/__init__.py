"""The four memory blocks of a conversation: what they hold, their limits, and the one door to them."""
