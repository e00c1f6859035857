"""The venue's HTTP surface, a file per group of endpoints."""
