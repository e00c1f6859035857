"""Market makers and agents: right, slow and bad; live books."""
