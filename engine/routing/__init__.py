"""Routes and prices over live books."""
