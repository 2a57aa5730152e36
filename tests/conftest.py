"""What every test can ask for, and what is asked of every test."""

pytest_plugins = ["tools.ledger", "tests.servers.once", "tests.servers.postgres"]
