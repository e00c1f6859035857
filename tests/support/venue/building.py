"""Orders that are built over HTTP, on the routes of a quiet venue."""

from typing import Any

import msgspec

from cambist.crypto.addresses import to_checksum
from support.venue.quiet_venue import A_SALE, USER, QuietVenue

BUILD = "/v2/delta/orders/build"
HOUR_S = 3_600
OTHER = to_checksum(b"\xcc" * 20)
ZERO = "0x" + "00" * 20


async def routed(venue: QuietVenue, **asked: Any) -> dict[str, Any]:
    """Route of a quote, by default of one WETH for USDC."""
    quote = await venue.get("/v2/quote", **{**A_SALE, **asked, "mode": "DELTA"})
    route: dict[str, Any] = quote["delta"]["route"]
    return route


async def asked_to_build(venue: QuietVenue, **body: Any) -> tuple[int, Any]:
    """Status and JSON of a build. Owner and deadline have defaults; a member that is None is left out."""
    given = {"owner": USER, "deadline": venue.clock.now_ms() // 1_000 + HOUR_S} | body
    told = {name: value for name, value in given.items() if value is not None}
    reply = await venue.ask("POST", BUILD, msgspec.json.encode(told))
    return reply.status, msgspec.json.decode(reply.body)


async def order(venue: QuietVenue, **body: Any) -> dict[str, Any]:
    """Build an order and return `toSign.value`."""
    status, told = await asked_to_build(venue, **body)
    assert status == 200, told
    value: dict[str, Any] = told["toSign"]["value"]
    return value


async def fault(venue: QuietVenue, **body: Any) -> tuple[int, str, str]:
    """(status, errorType, details) of a refusal."""
    status, told = await asked_to_build(venue, **body)
    assert told["details"] == told["description"] == told["error"], told
    return status, told["errorType"], told["details"]


def fee_of(value: dict[str, Any]) -> tuple[str, bool, bool, int]:
    """(partner, capped, takes surplus, basis points) of `partnerAndFee`, as clients unpack it."""
    packed = int(value["partnerAndFee"])
    assert packed >> 10 & ((1 << 86) - 1) == 0
    return f"0x{packed >> 96:040x}", bool(packed >> 9 & 1), bool(packed >> 8 & 1), packed & 0xFF
