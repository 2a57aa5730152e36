"""Routes of what is remembered of a conversation: blocks, archived turns, traces and explanations."""
