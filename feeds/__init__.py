"""Market makers' books: pure book-keeping, and the drivers that keep it current."""
