"""Danger over several messages: told in parts, denied, taken back, or over."""
