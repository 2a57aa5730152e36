"""Everything on the Letta server: agents, copies of the memory blocks, and their upkeep."""
