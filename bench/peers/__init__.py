"""Other libraries and servers that do the same work as cambist, each in a process of its own environment."""
