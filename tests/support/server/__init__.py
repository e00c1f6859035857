"""Servers, raw sockets and floods."""
