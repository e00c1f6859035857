"""Streams of order events and receivers of webhooks."""
