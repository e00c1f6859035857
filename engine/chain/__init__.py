"""What the roles need of a chain."""
