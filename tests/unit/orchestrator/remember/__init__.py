"""Making memories of conversations: the parts that are pure."""
