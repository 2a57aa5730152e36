"""Finds emergencies and crises in messages by rules, and checks answers before they are sent."""
