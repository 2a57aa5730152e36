"""The bytes of each message: a change here is a change of protocol."""
