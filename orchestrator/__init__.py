"""The house: what a person says comes in here, is remembered, answered, and every use of memory is shown."""

__version__ = "0.1.0"
