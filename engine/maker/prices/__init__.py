"""Where a market maker's prices come from: a file, a random walk, a recording, or the maker's own class."""
