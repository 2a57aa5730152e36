"""The protocol as types and bytes: envelopes, the messages in them, and how both become MessagePack."""
