"""The protocol as types and bytes: envelopes, messages, and their encoding in MessagePack."""
