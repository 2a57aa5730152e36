"""What several tests need: builders, test doubles, clients and servers."""
