"""GET /prices/depth: what sizes cost on both sides, until the books hold no more; answers are kept."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cambist.engine.trade.quote import price_depth
from cambist.engine.trade.quote.price_depth import unit_of
from support.venue.quiet_venue import CHAIN_ID, DAI, LONELY, NATIVE, USDC, WETH, QuietVenue, a_quiet_venue


async def depth(venue: QuietVenue, base: str = WETH, quote: str = USDC, chain_id: int = CHAIN_ID) -> Any:
    return await venue.get("/prices/depth", chainId=chain_id, base=base, quote=quote)


@pytest.mark.parametrize(
    ("worth", "decimals", "unit"),
    [
        ("2500", 18, 10**18),
        ("60000", 8, 10**7),
        ("1", 6, 10**9),
        ("0.0001", 18, 10**25),
        ("9000", 0, 1),
        (None, 6, 10**6),
        ("0", 6, 10**6),
    ],
)
def test_the_least_size_is_worth_about_the_same_for_each_token(
    worth: str | None, decimals: int, unit: int
) -> None:
    assert unit_of(None if worth is None else Decimal(worth), decimals) == unit


async def test_each_size_has_the_amount_of_its_best_route(tmp_path: Path) -> None:
    """The amounts are those of GET /v2/quote without gas; the books hold 110 WETH for sale."""
    async with a_quiet_venue(tmp_path) as venue:
        told = await depth(venue)
        assert (told["base"], told["quote"], told["unit"]) == (WETH, USDC, str(10**18))
        assert [int(size) // 10**18 for size, _ in told["bids"]] == [1, 5, 20, 50, 100]
        assert told["bids"][:2] == [[str(10**18), str(2_500 * 10**6)], [str(5 * 10**18), str(12_500 * 10**6)]]
        assert told["asks"][:2] == [[str(10**18), str(2_501 * 10**6)], [str(5 * 10**18), str(12_505 * 10**6)]]
        prices = [int(amount) / int(size) for size, amount in told["bids"]]
        assert prices == sorted(prices, reverse=True)
        prices = [int(amount) / int(size) for size, amount in told["asks"]]
        assert prices == sorted(prices)


async def test_a_side_ends_at_the_first_size_without_a_route(tmp_path: Path) -> None:
    """Five WETH are offered for DAI, and no book leads to the lonely token."""
    async with a_quiet_venue(tmp_path) as venue:
        told = await depth(venue, quote=DAI)
        assert [len(told[side]) for side in ("bids", "asks")] == [2, 2]
        none = await depth(venue, quote=LONELY)
        assert (none["bids"], none["asks"]) == ([], [])
        assert (await depth(venue, base=NATIVE))["bids"][0][0] == str(10**18)


async def test_an_answer_is_kept_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = price_depth._depth

    def counted(*given: Any) -> Any:
        made.append(given)
        return make(*given)

    monkeypatch.setattr(price_depth, "_depth", counted)
    async with a_quiet_venue(tmp_path) as venue:
        first = await depth(venue)
        assert await depth(venue) == first
        assert len(made) == 1
        monkeypatch.setattr(price_depth, "DEPTH_LIFE_S", 0)
        await depth(venue, base=USDC, quote=WETH)
        await depth(venue, base=USDC, quote=WETH)
        assert len(made) == 3


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"quote": WETH}, (400, "InvalidInput")),
        ({"quote": NATIVE}, (400, "InvalidInput")),
        ({"base": "0x" + "99" * 20}, (400, "TokenNotSupported")),
        ({"chainId": 5}, (422, "UnsupportedChain")),
    ],
)
async def test_wrong_pairs_are_refused(
    tmp_path: Path, changed: dict[str, Any], refusal: tuple[int, str]
) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        query: dict[str, Any] = {"chainId": CHAIN_ID, "base": WETH, "quote": USDC} | changed
        status, told = await venue.answer("/prices/depth", **query)
        assert (status, told["errorType"]) == refusal
