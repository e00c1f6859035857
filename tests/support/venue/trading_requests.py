"""Requests to a venue's trading endpoints, and options of a venue with partners and an API key.

async with running_venue(tmp_path, **OPTIONS) as venue:
    response = await posted(venue, await a_sale(venue))
"""

from typing import Any

import msgspec

from cambist.codecs.http1 import Response
from cambist.crypto.addresses import to_checksum
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue

Body = dict[str, Any]

NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
NOBODY = to_checksum(b"\x99" * 20)
PARTNER = to_checksum(b"\xaa" * 20)
TRADER = to_checksum(USER.address)
API_KEY = "a-key-of-an-integrator"
PARTNERS = f"""
[partners.acme]
address = "{PARTNER}"
fee_bps = 10
[partners.small]
address = "{PARTNER}"
fee_bps = 5
tier = "low"
[tiers.low]
fee_bps_max = 20
takes_surplus = false
[venue.api_keys.known]
secret = "env:API_KEY"
partner = "acme"
"""
OPTIONS: dict[str, Any] = {"more": PARTNERS, "environ": {"API_KEY": API_KEY}}
"""Options of `running_venue`."""


def plain(venue: RunningVenue, path: str) -> dict[str, Any]:
    """A request that is answered 200."""
    if path == "/v2/quote":
        return venue.selling("WETH", 1, "USDC")
    sale = venue.selling("WETH", 1, "USDC", network=CHAIN_ID)
    del sale["chainId"]
    return sale if path == "/prices" else sale | {"userAddress": TRADER, "slippage": 100}


async def a_sale(venue: RunningVenue) -> Body:
    """A body that is built; its route is new."""
    route = (await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="MARKET")))["market"]
    return {
        "priceRoute": route,
        "srcToken": route["srcToken"],
        "destToken": route["destToken"],
        "srcAmount": route["srcAmount"],
        "slippage": 100,
        "userAddress": TRADER,
    }


async def posted(venue: RunningVenue, body: Body | bytes, query: str = "", slash: str = "") -> Response:
    if not isinstance(body, bytes):
        body = msgspec.json.encode({name: value for name, value in body.items() if value is not None})
    target = f"/transactions/{CHAIN_ID}{slash}" + (f"?{query}" if query else "")
    return await venue.ask("POST", target, body)
