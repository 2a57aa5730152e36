"""What must never wait: hears emergencies and crises in what a person writes, by rules alone."""
