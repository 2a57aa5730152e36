"""The safety guard in service: what is said first, what is recorded, who is alerted."""
