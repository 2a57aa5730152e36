"""Every promise of the project, as something that can fail."""
