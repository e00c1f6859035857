"""Write a price source for a market maker, which `cambist maker serve` runs.

    class MyPrices:
        def __init__(self, options, context): ...

        async def updates(self):
            while True:
                yield {"WETH/USDC": {"bids": [("2499.5", "1")], "asks": [("2500.5", "1")]}}
                await trio.sleep(0.5)

The names in `__all__` are public: docs/reference/stability.md. docs/guides/maker-kit describes price sources.
"""

from .config.errors import CambistError, ConfigError
from .config.secret import Secret
from .engine.roles.maker.prices.replay import encode_record
from .engine.roles.maker.prices.source import Grid, PriceSource, SourceContext, SourcePair, read_options

__all__ = [
    "CambistError",
    "ConfigError",
    "Grid",
    "PriceSource",
    "Secret",
    "SourceContext",
    "SourcePair",
    "encode_record",
    "read_options",
]
