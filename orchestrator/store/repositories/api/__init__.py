"""The API's keys, its kept answers, and lists that it shows."""
