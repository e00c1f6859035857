"""The gas model against swaps of the Router, between accounts that already hold both tokens."""

from collections.abc import Callable

import pytest

from cambist.codecs.contracts.router_calldata import Hop
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search.gas import GAS_ERROR_PERCENT, NATIVE_IN, NATIVE_OUT, swap_gas
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.swapping import Venue, a_wide_venue

DAI_OF_ONE = 2_490 * ONE
SOLD = 2_500 * USDC


async def _venue(world: World) -> Venue:
    """Both makers and the user hold all three tokens."""
    venue = await a_wide_venue(world)
    for maker in (world.maker, venue.rival):
        await world.chain.set_balance(maker.address, 100 * ONE)
        await world.give(maker, world.weth, 10 * ONE, world.at.rfq)
    await world.mint(world.weth, world.user, 50 * ONE)
    for token in (world.usdc, world.dai):
        await world.give(world.user, token, 10_000 * ONE, world.at.router)
    return venue


def _parts(venue: Venue, fills: int, quote: Callable[..., RfqOrder], maker: int, taker: int) -> Hop:
    """Quotes of both makers in turn, each a unit above what is needed."""
    makers = venue.world.maker.address, venue.rival.address
    size = {"maker_amount": maker // fills, "taker_amount": taker // fills + 1}
    return venue.hop(*(quote(**size, maker=makers[number % 2]) for number in range(fills)))


def _to_usdc(venue: Venue, fills: int) -> Hop:
    return _parts(venue, fills, venue.quote, SOLD, ONE)


def _to_dai(venue: Venue, fills: int) -> Hop:
    return _parts(venue, fills, venue.second_quote, DAI_OF_ONE, SOLD)


async def _gas(
    venue: Venue,
    hops: Callable[[], list[Hop]],
    *,
    buys: bool = False,
    value_wei: int = 0,
    **changed: int | bytes,
) -> int:
    """Of the second of two swaps: the vault and the partner hold the tokens of the fee by then."""
    fee = int.from_bytes(venue.world.partner.address) << 96 | 1
    used = 0
    for _ in range(2):
        swap = venue.swap(*hops(), **({"dest_amount": 1, "partner_and_fee": fee} | changed))
        done = await (venue.buy if buys else venue.sell)(swap, value_wei=value_wei)
        used = done.receipt.gas_used
    return used


def _assert_close(measured: int, expected: int) -> None:
    assert abs(measured - expected) * 100 <= GAS_ERROR_PERCENT * measured, (measured, expected)


@pytest.mark.parametrize("fills", [1, 2, 3])
async def test_one_hop(world: World, fills: int) -> None:
    venue = await _venue(world)
    measured = await _gas(venue, lambda: [_to_usdc(venue, fills)])
    _assert_close(measured, swap_gas(Side.SELL, 0, fills))


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 1), (1, 2), (2, 3)])
async def test_two_hops(world: World, first: int, second: int) -> None:
    venue = await _venue(world)
    measured = await _gas(
        venue, lambda: [_to_usdc(venue, first), _to_dai(venue, second)], dest_token=world.dai
    )
    _assert_close(measured, swap_gas(Side.SELL, 1, first + second))


async def test_two_paths(world: World) -> None:
    venue, half = await _venue(world), ONE // 2

    def hops() -> list[Hop]:
        direct = venue.quote(maker_asset=world.dai, maker_amount=DAI_OF_ONE // 2, taker_amount=half)
        first = venue.quote(maker_amount=SOLD // 2, taker_amount=half)
        second = venue.second_quote(maker_amount=DAI_OF_ONE // 2, taker_amount=SOLD // 2)
        return [
            venue.hop(direct, taker_amount=half),
            venue.hop(first, taker_amount=half),
            venue.hop(second),
        ]

    _assert_close(await _gas(venue, hops, dest_token=world.dai), swap_gas(Side.SELL, 1, 3))


@pytest.mark.parametrize("count", [1, 2])
async def test_purchase(world: World, count: int) -> None:
    venue = await _venue(world)

    def hops() -> list[Hop]:
        first = venue.hop(venue.quote(), maker_amount=SOLD)
        return [first, venue.hop(venue.second_quote(), maker_amount=DAI_OF_ONE)][:count]

    dest, amount = [(world.usdc, SOLD), (world.dai, DAI_OF_ONE)][count - 1]
    measured = await _gas(
        venue, hops, buys=True, src_amount=11 * ONE // 10, dest_token=dest, dest_amount=amount
    )
    _assert_close(measured, swap_gas(Side.BUY, count - 1, count))


async def test_native_tokens(world: World) -> None:
    venue = await _venue(world)
    measured = await _gas(venue, lambda: [_to_usdc(venue, 1)], src_token=NATIVE, value_wei=ONE)
    _assert_close(measured, swap_gas(Side.SELL, 0, 1) + NATIVE_IN)

    def back() -> list[Hop]:
        assets = {"maker_asset": world.weth, "taker_asset": world.usdc}
        return [venue.hop(venue.quote(**assets, maker_amount=ONE, taker_amount=SOLD))]

    wrapped, native = [
        await _gas(venue, back, src_token=world.usdc, src_amount=SOLD, dest_token=token)
        for token in (world.weth, NATIVE)
    ]
    _assert_close(native, swap_gas(Side.SELL, 0, 1) + NATIVE_OUT)
    assert 0 < native - wrapped < 2 * NATIVE_OUT
