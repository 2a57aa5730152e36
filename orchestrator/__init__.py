"""The orchestrator: receives messages, stores and answers them, and reports every use of memory."""

__version__ = "0.1.0"
