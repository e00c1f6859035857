"""Callers that may have makers sign, and the amount that they may leave unfilled: an attack on stock."""

import pytest

from cambist.config.errors import InsufficientAllowance, InsufficientBalance, NoRoute, RateLimited
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.market.unfilled import Asker
from support.venue.market_place import (
    ANYBODY,
    CHAIN_ID,
    KEYED,
    NOW_MS,
    ONE,
    STRANGER,
    USER,
    USER_PLACES,
    Shop,
    a_shop,
)

SELL = f"srcToken=WETH&destToken=USDC&network={CHAIN_ID}&amount={ONE}&version=6.2"
BODY = {"srcAmount": str(ONE), "slippage": 100}
UNCHECKED = "ignoreChecks=true"
LIFE_MS = 120_000
OTHER = Asker("address 198.51.100.7", False, 2)


async def build(
    shop: Shop, asker: Asker = ANYBODY, query: str = "", now_ms: int = NOW_MS, user: bytes = USER
) -> None:
    route = shop.prices(SELL, now_ms)
    await shop.build(route, BODY | {"userAddress": to_checksum(user)}, query, now_ms=now_ms, asker=asker)


async def swap(shop: Shop, asker: Asker) -> None:
    query = f"{SELL}&userAddress={to_checksum(USER)}&slippage=100"
    await shop.desk.swap(query.encode(), NOW_MS, asker)


@pytest.mark.parametrize("query", ["", UNCHECKED])
async def test_without_a_key_makers_sign_only_for_who_could_fill(query: str) -> None:
    shop = a_shop()
    shop.chain.funds[USER] = (ONE - 1, ONE)
    with pytest.raises(InsufficientBalance):
        await build(shop, query=query)
    shop.chain.funds[USER] = (ONE, ONE - 1)
    with pytest.raises(InsufficientAllowance):
        await build(shop, query=query)
    with pytest.raises(InsufficientAllowance):
        await swap(shop, ANYBODY)
    assert shop.firm.asked == []
    await build(shop, KEYED, UNCHECKED)
    await swap(shop, KEYED)
    assert len(shop.firm.asked) == 2


async def test_a_caller_without_a_key_has_a_few_swaps_that_nobody_filled() -> None:
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop)
    with pytest.raises(RateLimited) as told:
        await swap(shop, ANYBODY)
    assert told.value.retry_after_s == LIFE_MS // 1_000 + 1
    assert "2 swaps are signed and not filled" in told.value.detail
    await build(shop, KEYED)
    await build(shop, OTHER)
    assert len(shop.firm.asked) == ANYBODY.places + 2


async def test_a_user_has_a_few_however_many_callers_name_it() -> None:
    shop = a_shop()
    for number in range(USER_PLACES):
        await build(shop, Asker(f"address {number}", False, 2))
    with pytest.raises(RateLimited):
        await build(shop, ANYBODY)
    await build(shop, ANYBODY, user=STRANGER)
    await build(shop, KEYED)


async def test_what_expires_makes_room() -> None:
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop)
    with pytest.raises(RateLimited):
        await build(shop, now_ms=NOW_MS + LIFE_MS)
    await build(shop, now_ms=NOW_MS + LIFE_MS + 1_000)


@pytest.mark.parametrize(("left", "is_filled"), [(1, True), (ONE // 10 + 1, True), (ONE // 10 + 2, False)])
async def test_what_is_filled_makes_room_and_a_drop_of_it_does_not(left: int, *, is_filled: bool) -> None:
    """`left` is the RFQ contract's number: 1 for a closed order, else the remaining amount plus 1."""
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop)
    shop.chain.left[(1).to_bytes(32, "big")] = left
    if is_filled:
        await build(shop)
    with pytest.raises(RateLimited):
        await build(shop)


async def test_a_swap_for_which_nobody_signs_takes_no_place() -> None:
    shop = a_shop()
    shop.firm.is_silent = True
    for _ in range(10):
        with pytest.raises(NoRoute):
            await build(shop)
    shop.firm.is_silent = False
    for _ in range(ANYBODY.places):
        await build(shop)


async def test_what_is_over_is_forgotten_though_its_caller_never_comes_back() -> None:
    shop = a_shop()
    unfilled = shop.desk.unfilled[CHAIN_ID]
    for number in range(40):
        await build(shop, Asker(f"address {number}", False, 2), user=(number + 1).to_bytes(20, "big"))
    assert len(unfilled) == 80
    for number in range(20):
        await build(shop, KEYED, now_ms=NOW_MS + LIFE_MS + 1_000 + number)
    assert len(unfilled) == 1
