"""What follows a finding: messages after danger, first aid, what may be said, the command."""
