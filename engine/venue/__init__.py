"""The venue: routes swaps over makers' books, and takes them to the chain."""
