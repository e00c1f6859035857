"""The roles and the capabilities they share; the composition root."""
