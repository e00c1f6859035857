"""Settings of the operator and facts of the specification: chains, tokens, partners, limits, errors."""
