"""What a checkout needs, found on the machine or fetched."""
