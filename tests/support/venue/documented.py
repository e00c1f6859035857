"""A Market route as a client of generated code sends it back: the documented members, and no others.

Source: spec 1.8 (`priceRoute` / `market`); interop.md 3, `side` and `bestRoute[]`.
"""

from typing import Any

Document = dict[str, Any]

_ROUTE = (
    *(
        "blockNumber",
        "network",
        "srcToken",
        "destToken",
        "srcDecimals",
        "destDecimals",
        "srcAmount",
        "destAmount",
    ),
    *(
        "bestRoute",
        "gasCostUSD",
        "gasCost",
        "version",
        "contractAddress",
        "tokenTransferProxy",
        "contractMethod",
    ),
    *("partnerFee", "srcUSD", "destUSD", "partner", "maxImpactReached", "hmac", "side"),
)
_PART = ("percent", "swaps")
_SWAP = ("srcToken", "srcDecimals", "destToken", "destDecimals", "swapExchanges")
_EXCHANGE = ("exchange", "srcAmount", "destAmount", "percent", "data")


def documented(route: Document) -> Document:
    """The route without members that spec 1.8 does not name, the others in its order."""
    return _kept(route, _ROUTE) | {
        "bestRoute": [
            _kept(part, _PART)
            | {
                "swaps": [
                    _kept(swap, _SWAP)
                    | {"swapExchanges": [_kept(one, _EXCHANGE) for one in swap["swapExchanges"]]}
                    for swap in part["swaps"]
                ]
            }
            for part in route["bestRoute"]
        ]
    }


def _kept(document: Document, names: tuple[str, ...]) -> Document:
    return {name: document[name] for name in names if name in document}
