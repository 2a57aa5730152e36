"""The server: stores what people write, has it answered, and sends a trace of every use of memory."""

__version__ = "0.1.0"
