"""The ways a frame can travel, each behind the `Transport` port."""
