"""Shows what is stored about a conversation, for the HTTP API and for commands. Every look leaves a trace."""
