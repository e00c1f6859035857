"""OTC: orders between a maker and whoever fills them on chain."""
