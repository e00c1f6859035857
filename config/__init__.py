"""What the operator sets and what the documents fix: settings, chains, tokens, partners, limits, errors."""
