"""POST /v2/delta/orders/build (spec 1.16): each field, default and rule, and the route as it was quoted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.crypto.typed_data import hash_typed_data
from support.oracles import javascript_oracle
from support.venue.quiet_venue import (
    A_PURCHASE,
    CHAIN_ID,
    DAI,
    DELTA,
    HOUR_S,
    NATIVE,
    ONE,
    OTHER,
    USDC,
    USER,
    WETH,
    ZERO,
    QuietVenue,
    a_quiet_venue,
    asked_to_build,
    fault,
    order,
    routed,
)

SAME_CHAIN = {
    "protocolSelector": "0x00000000",
    "destinationChainId": 0,
    "outputToken": ZERO,
    "scalingFactor": 0,
    "protocolData": "0x",
}


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue


# --- A sale and a purchase ----------------------------------------------------------------------------


async def test_a_sale(venue: QuietVenue) -> None:
    route = await routed(venue)
    expected = int(route["destination"]["output"]["amount"])
    deadline = venue.clock.now_ms() // 1_000 + HOUR_S
    value = await order(venue, route=route, deadline=deadline, nonce="7")
    assert value == {
        "owner": USER,
        "beneficiary": USER,
        "srcToken": WETH,
        "destToken": USDC,
        "srcAmount": str(ONE),
        "destAmount": str(expected * 9_900 // 10_000),
        "expectedAmount": str(expected),
        "deadline": deadline,
        "kind": 0,
        "nonce": "7",
        "partnerAndFee": str(1 << 9 | 1),
        "permit": "0x",
        "metadata": "0x",
        "bridge": SAME_CHAIN,
    }


async def test_a_purchase(venue: QuietVenue) -> None:
    route = await routed(venue, **A_PURCHASE)
    expected = int(route["origin"]["input"]["amount"])
    value = await order(venue, route=route, side="BUY", slippage=33)
    assert value["kind"] == 1
    assert value["destAmount"] == A_PURCHASE["amount"]
    assert (value["expectedAmount"], value["srcAmount"]) == (str(expected), str(expected * 10_033 // 10_000))


async def test_the_side_is_that_of_the_quote(venue: QuietVenue) -> None:
    """A route says which amounts are swapped, and its quote, which of them is fixed."""
    sale, purchase = await routed(venue), await routed(venue, **A_PURCHASE)
    value = await order(venue, route=purchase, slippage=33)
    assert (value["kind"], value["destAmount"]) == (1, A_PURCHASE["amount"])
    assert value == await order(venue, route=purchase, slippage=33, side="buy") | {"nonce": value["nonce"]}
    for route, quoted, asked in ((sale, "SELL", "BUY"), (purchase, "BUY", "SELL")):
        status, error_type, details = await fault(venue, route=route, side=asked)
        assert (status, error_type) == (400, "InvalidInput")
        assert details == f"Invalid input: side: expected the route's, {quoted}, got '{asked}'"
    twap = {
        "orderType": "TWAPBuyOrder",
        "interval": 60,
        "numSlices": 2,
        "totalDestAmount": "9",
        "maxSrcAmount": "9",
    }
    sold = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 2, "totalSrcAmount": "9"}
    for route, quoted, of_one_side, own in (
        (sale, "SELL", twap, "BUY"),
        (purchase, "BUY", sold, "SELL"),
    ):
        kind = of_one_side["orderType"]
        words = f"route: expected a route quoted with side={own}, got '{quoted}'"
        expected = f"Invalid input: {words}: {kind} has no other side"
        told = await fault(venue, route=route, **of_one_side)
        assert told == (
            400,
            "InvalidInput",
            f"{expected}; the body names no side, which stands for {own} here",
        )
        told = await fault(venue, route=route, side=own, **of_one_side)
        assert told == (400, "InvalidInput", expected)


async def test_a_limit_stands_in_for_bound_and_guess(venue: QuietVenue) -> None:
    value = await order(venue, route=await routed(venue), limitAmount="2600000000", slippage=5_000)
    assert (value["srcAmount"], value["destAmount"], value["expectedAmount"]) == (
        str(ONE),
        *2 * ("2600000000",),
    )
    value = await order(venue, route=await routed(venue, **A_PURCHASE), limitAmount="1", side="BUY")
    assert (value["srcAmount"], value["destAmount"], value["expectedAmount"]) == (
        "1",
        A_PURCHASE["amount"],
        "1",
    )


@pytest.mark.parametrize("slippage", [0, 1, 10_000])
async def test_slippage_favours_nobody_by_more_than_a_unit(venue: QuietVenue, slippage: int) -> None:
    route = await routed(venue)
    expected = int(route["destination"]["output"]["amount"])
    value = await order(venue, route=route, slippage=slippage)
    assert int(value["destAmount"]) == expected * (10_000 - slippage) // 10_000


async def test_native_tokens_keep_their_placeholder(venue: QuietVenue) -> None:
    value = await order(venue, route=await routed(venue, srcToken=NATIVE))
    assert value["srcToken"] == NATIVE
    value = await order(
        venue,
        route=await routed(venue, srcToken=DAI, destToken=NATIVE, destDecimals=18, amount=str(5_000 * ONE)),
    )
    assert value["destToken"] == NATIVE


async def test_a_beneficiary_and_metadata_of_ones_own(venue: QuietVenue) -> None:
    value = await order(venue, route=await routed(venue), beneficiary=OTHER, metadata="0xbeef")
    assert (value["owner"], value["beneficiary"], value["metadata"]) == (
        USER,
        OTHER,
        "0xbeef",
    )


async def test_metadata_of_four_kibibytes(venue: QuietVenue) -> None:
    metadata = "0x" + "ab" * 4_096
    assert (await order(venue, route=await routed(venue), metadata=metadata))["metadata"] == metadata


async def test_orders_without_a_nonce_never_share_one(venue: QuietVenue) -> None:
    route = await routed(venue)
    nonces = {(await order(venue, route=route))["nonce"] for _ in range(20)}
    assert len(nonces) == 20
    assert all(0 <= int(nonce) < 2**256 for nonce in nonces)


# --- What wallets make of it ----------------------------------------------------------------------------


async def every_kind(venue: QuietVenue) -> list[dict[str, Any]]:
    """A built answer of each kind that can be settled."""
    twap = {"interval": 60, "numSlices": 3}
    bodies: list[dict[str, Any]] = [
        {"route": await routed(venue)},
        {"route": await routed(venue, **A_PURCHASE), "side": "BUY", "limitAmount": "123"},
        {
            "route": await routed(venue),
            "orderType": "TWAPOrder",
            "totalSrcAmount": str(3 * ONE + 2),
            **twap,
        },
        {
            "route": await routed(venue, **A_PURCHASE),
            "orderType": "TWAPBuyOrder",
            "totalDestAmount": str(3 * int(A_PURCHASE["amount"]) + 1),
            "maxSrcAmount": str(2 * ONE),
            **twap,
        },
    ]
    answers = []
    for body in bodies:
        status, told = await asked_to_build(venue, **body)
        assert status == 200, told
        answers.append(told)
    return answers


async def test_the_hash_is_that_of_the_typed_data(venue: QuietVenue) -> None:
    for told in await every_kind(venue):
        to_sign = told["toSign"]
        assert to_sign["domain"] == {
            "name": "Portikus",
            "version": "2.0.0",
            "chainId": CHAIN_ID,
            "verifyingContract": DELTA,
        }
        assert "EIP712Domain" not in to_sign["types"]
        assert told["orderHash"] == "0x" + hash_typed_data(to_sign).digest.hex()


@pytest.mark.oracle
async def test_ethers_and_viem_sign_it_unchanged(venue: QuietVenue) -> None:
    with javascript_oracle() as wallets:
        for told in await every_kind(venue):
            to_sign = told["toSign"]
            primary = next(iter(to_sign["types"]))
            signed = wallets.ask(**to_sign, primaryType=primary, key="0x" + "11" * 32)
            assert signed["inferredPrimaryType"] == primary
            assert signed["ethersDigest"] == signed["viemDigest"] == told["orderHash"]
            assert signed["ethersSignature"] == signed["viemSignature"]
