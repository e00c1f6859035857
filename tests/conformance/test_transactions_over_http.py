"""POST /transactions/{chainId} over HTTP (spec 1.14), asked by httpx: each field's part in the calldata.

A row is a change of a plain body and the changed members of the swap; a test lists the names of failing rows
and expects none. `test_trading_over_http.py` has the refusals.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from cambist.codecs.contracts.router_calldata import RouterSwap
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.transact import transact
from support.contracts import permit2
from support.patience import PATIENCE_S
from support.venue.trading_requests import NOBODY, OPTIONS, PARTNER, TRADER, a_sale
from support.venue.venue_role import API_KEY, CHAIN_ID, USER, RunningVenue, running_venue

KEY = {"x-api-key": API_KEY}  # a user without one has a few swaps that nobody fills
LATE = 4_000_000_000
CAPPED, TAKEN, AT_ONCE = 1 << 9, 1 << 8, 1 << 10
Json = dict[str, Any]
Row = tuple[Json, Callable[[RouterSwap, RouterSwap], bool]]


def same(was: RouterSwap, now: RouterSwap) -> bool:
    """But for the firm quotes, which are signed anew."""
    return terms(was) == terms(now)


def terms(swap: RouterSwap) -> tuple[Any, ...]:
    return (
        swap.src_token, swap.dest_token, swap.src_amount, swap.dest_amount, swap.receiver,
        swap.partner_and_fee, swap.permit,
    )  # fmt: skip


def fee(swap: RouterSwap) -> tuple[int, int]:
    """Basis points, and whose they are."""
    return swap.partner_and_fee & 0xFF, swap.partner_and_fee >> 96


def flag(bit: int) -> Callable[[RouterSwap, RouterSwap], bool]:
    return lambda was, now: was.partner_and_fee ^ now.partner_and_fee == bit


def rows(quoted: int) -> list[Row]:
    """`quoted` is the route's destination amount."""
    partner = int(PARTNER, 16)
    return [
        ({}, lambda was, now: same(was, now) and now.dest_amount == quoted * 99 // 100),
        ({"srcToken": "WETH", "destToken": "USDC"}, same),
        ({"srcDecimals": 18, "destDecimals": 6}, same),
        ({"slippage": 0}, lambda _, now: now.dest_amount == quoted),
        ({"slippage": 10_000}, lambda _, now: now.dest_amount == 0),
        ({"destAmount": str(quoted - 7)}, lambda _, now: now.dest_amount == quoted - 7),
        ({"destAmount": str(quoted), "slippage": None}, lambda _, now: now.dest_amount == quoted),
        ({"txOrigin": NOBODY}, same),
        ({"receiver": NOBODY}, lambda _, now: now.receiver == parse_hex(NOBODY, "receiver")),
        ({"partner": "anon"}, same),
        ({"partner": "acme"}, lambda was, now: (fee(was)[0], fee(now)) == (1, (10, partner))),
        ({"partnerAddress": PARTNER, "partnerFeeBps": "30"}, lambda _, now: fee(now) == (30, partner)),
        ({"partner": "acme", "partnerFeeBps": "7"}, lambda _, now: fee(now) == (17, partner)),
        ({"permit": "0x01"}, lambda was, now: (was.permit, now.permit) == (b"", b"\x01")),
        ({"deadline": LATE}, lambda was, now: was.deadline < now.deadline == LATE),
        ({"isCapSurplus": True, "takeSurplus": False, "isSurplusToUser": False}, same),
        ({"isCapSurplus": False}, flag(CAPPED)),
        ({"takeSurplus": True}, flag(TAKEN)),
        ({"takeSurplus": True, "isSurplusToUser": True}, same),
        ({"isDirectFeeTransfer": False}, same),
        ({"isDirectFeeTransfer": True}, flag(AT_ONCE)),
    ]


async def permitted(venue: RunningVenue) -> None:
    """The user has allowed Permit2, and the Router there: the permit of one byte says so."""
    devnet = venue.devnet
    await devnet.allow(USER, "WETH", "permit2")
    allow = permit2.allow(devnet.at("WETH"), devnet.at("router"), 10**18, LATE)
    await transact(devnet.chain, USER, devnet.at("permit2"), allow)


async def test_each_field_is_in_the_calldata(tmp_path: Path) -> None:
    faults = []
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        await permitted(venue)

        async def built(client: httpx.AsyncClient, changed: Json) -> RouterSwap:
            body = {
                name: value for name, value in (await a_sale(venue) | changed).items() if value is not None
            }
            answer = await client.post(f"/transactions/{CHAIN_ID}", json=body)
            assert answer.status_code == 200, (changed, answer.text)
            told = answer.json()
            assert (told["from"], told["chainId"]) == (TRADER, CHAIN_ID)
            return decode_swap(parse_hex(told["data"], "data"))[1]

        async with httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S, headers=KEY) as client:
            was = await built(client, {})
            quoted = (await a_sale(venue))["priceRoute"]["destAmount"]
            for changed, holds in rows(int(quoted)):
                now = await built(client, changed)
                faults += [] if holds(was, now) else [f"{changed}: {terms(now)}"]
    assert faults == []
