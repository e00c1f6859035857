"""OTC orders: fronts, stories, the engine."""
