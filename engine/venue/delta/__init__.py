"""Delta: prices of intents."""
