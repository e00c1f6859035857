"""Two chains with bridges between them, for tests."""
