"""docs/reference/contracts.md says which odd tokens work where; each word of its table is tried."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cambist.codecs.bridges.bridge_terms import SELECTORS, AcrossTerms, BridgeFee, BridgeKind, pack_terms
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.router_calldata import swap_exact_in
from cambist.codecs.eip712_orders.delta import SAME_CHAIN, DeltaBridge
from cambist.config.errors import Reverted
from support.chain.world import HOUR_S, NOBODY, ONE, World
from support.contracts.settling import Market
from support.contracts.swapping import a_venue

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(r"^## Odd tokens\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
_HEAD, _, *_ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("|")
]
TABLE = {(row[0], column): row[at] for row in _ROWS for at, column in enumerate(_HEAD) if at}

Fit = Callable[[World, bytes], Awaitable[object]]


def _calls(signature: str, *numbers: int) -> Fit:
    data = selector(signature) + b"".join(map(uint_word, numbers))
    return lambda world, token: world.send(world.stranger, token, data)


async def _as_it_is(world: World, token: bytes) -> None:
    pass


async def _blocked(world: World, token: bytes) -> None:
    data = selector("setBlocked(address,bool)") + address_word(world.at.executor) + uint_word(1)
    await world.send(world.stranger, token, data)


KINDS: dict[str, tuple[str, Fit]] = {
    "returns nothing": ("DevTokenWithoutReturn", _as_it_is),
    "takes 1 % on transfers": ("DevToken", _calls("setTransferFee(uint256)", 100)),
    "rounds by 2 units": ("DevToken", _calls("setRounding(uint256)", 2)),
    "rounds by 3 units": ("DevToken", _calls("setRounding(uint256)", 3)),
    "blocks the executor": ("DevToken", _blocked),
}


async def _rfq(world: World, _: Market, odd: bytes, *, is_given: bool) -> bool:
    order = world.an_rfq_order(
        maker_asset=world.usdc if is_given else odd,
        taker_asset=odd if is_given else world.usdc,
        maker_amount=ONE // 2,
        taker_amount=ONE // 2,
    )
    data = calldata.fill_order(order, world.signed(order))
    return (await world.forced(world.taker, world.at.rfq, data)).succeeded


async def _agent(
    world: World, market: Market, odd: bytes, *, is_given: bool, bridge: DeltaBridge = SAME_CHAIN
) -> bool:
    src, dest = (odd, world.usdc) if is_given else (world.usdc, odd)
    order = await world.a_delta_order(
        src_token=src, dest_token=dest, src_amount=ONE // 2, dest_amount=1, expected_amount=0, bridge=bridge
    )
    deliver = market.from_agent(ONE // 2, dest)
    return await _done(market.settle(order, deliver, receiver=market.agent))


async def _leaving(world: World, market: Market, odd: bytes, *, is_given: bool) -> bool:
    terms = pack_terms(AcrossTerms(BridgeFee(0, 0), HOUR_S, NOBODY, 0))
    bridge = DeltaBridge(SELECTORS[BridgeKind.ACROSS], 10, b"\1" * 20, 0, terms)
    return await _agent(world, market, odd, is_given=is_given, bridge=bridge)


async def _quote(world: World, market: Market, odd: bytes, *, is_given: bool) -> bool:
    src, dest = (odd, world.usdc) if is_given else (world.usdc, odd)
    order = await world.a_delta_order(
        src_token=src, dest_token=dest, src_amount=ONE // 2, dest_amount=1, expected_amount=0
    )
    half = ONE // 2
    quote = world.a_firm_quote(maker_asset=dest, taker_asset=src, maker_amount=half, taker_amount=half)
    return await _done(market.settle(order, market.fill_step(quote), leftovers=(src,)))


async def _router(world: World, _: Market, odd: bytes, *, is_given: bool) -> bool:
    venue = await a_venue(world)
    src, dest = (odd, world.usdc) if is_given else (world.usdc, odd)
    half = ONE // 2
    quote = venue.quote(maker_asset=dest, taker_asset=src, maker_amount=half, taker_amount=half)
    swap = venue.swap(venue.hop(quote), src_token=src, dest_token=dest, src_amount=half, dest_amount=1)
    return (await world.forced(world.user, world.at.router, swap_exact_in(swap))).succeeded


WAYS: dict[str, Callable[..., Awaitable[bool]]] = {
    "Rfq": _rfq,
    "Delta, an agent": _agent,
    "Delta, then Across": _leaving,
    "Delta, a firm quote": _quote,
    "Router": _router,
}


def test_every_kind_and_way_is_in_the_table() -> None:
    columns = {f"{way}: {side}" for way in WAYS for side in ("given", "received")}
    assert TABLE.keys() == {(kind, column) for kind in KINDS for column in columns}
    assert set(TABLE.values()) <= {"works", "refused"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_as_the_table_says(world: World, market: Market, kind: str, way: str) -> None:
    name, fit = KINDS[kind]
    for side in ("given", "received"):
        odd = await world.new_token(name)
        for token in (odd, world.usdc):
            for key in (world.user, world.taker, world.maker, world.stranger):
                await world.mint(token, key, ONE)
            for key, spenders in (
                (world.user, (world.at.delta, world.at.router)),
                (world.taker, (world.at.rfq,)),
                (world.maker, (world.at.rfq,)),
            ):
                for spender in spenders:
                    await world.approve(key, token, spender)
            await world.send(world.stranger, token, calldata.transfer(market.agent, ONE))
        await fit(world, odd)
        done = await WAYS[way](world, market, odd, is_given=side == "given")
        assert TABLE[kind, f"{way}: {side}"] == ("works" if done else "refused"), side


async def _done(settling: Awaitable[object]) -> bool:
    try:
        await settling
    except Reverted:
        return False
    return True
