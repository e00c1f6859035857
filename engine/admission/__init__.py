"""Who may ask how much: API keys and rate limits."""
