"""Conversations, who is connected to them, and what was sent."""
