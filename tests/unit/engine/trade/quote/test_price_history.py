"""GET /prices/history: samples at common times, points of a step, answers kept until the next sample."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from cambist.codecs.messages.resource_messages import PriceHistoryAnswer
from cambist.config import limits
from cambist.config.errors import InvalidInput, TokenNotSupported, UnsupportedChain
from cambist.config.timeouts import PRICE_SAMPLE_S
from cambist.config.tokens import TokenSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.quote import price_history
from cambist.engine.trade.quote.price_history import PriceHistory, points_of, step_of
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.feeds.books.price_ring import price_points
from cambist.feeds.slices import Slices
from support.venue.admitting import a_call

WETH, USDC, LONELY = (bytes([byte]) * 20 for byte in (0xE0, 0x5D, 0x10))
START_MS = 1_700_000_000_000 - 1_700_000_000_000 % 3_600_000
DECIMALS = {WETH: 18, USDC: 6, LONELY: 18}


class Prices:
    """Prices of whole tokens, as `UsdPrices` tells those of raw units."""

    def __init__(self) -> None:
        self.usd: dict[bytes, Fraction] = {WETH: Fraction(2_500), USDC: Fraction(1)}
        self.asked = 0

    def price(self, token: bytes) -> Fraction | None:
        self.asked += 1
        price = self.usd.get(token)
        return None if price is None else price / 10 ** DECIMALS[token]


class Clocked:
    """A history on chain 1, at a time that the test sets."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms
        self.prices = Prices()
        tokens = TokenTable(
            [
                TokenSettings(
                    chain_id=1, address=to_checksum(address), symbol=symbol, decimals=DECIMALS[address]
                )
                for symbol, address in (("WETH", WETH), ("USDC", USDC), ("LONELY", LONELY))
            ],
            WETH,
            "ETH",
        )
        chains: Any = {1: SimpleNamespace(chain_id=1, tokens=tokens, usd=self.prices)}
        self.history = PriceHistory(chains, lambda: self.now_ms)

    async def sample(self, weth: int | None = None, later_ms: int = 15_000) -> None:
        if weth is not None:
            self.prices.usd[WETH] = Fraction(weth)
        await self.history.sample()
        self.now_ms += later_ms

    async def show(self, **query: Any) -> dict[str, Any]:
        asked: Mapping[str, Any] = {"chainId": 1, "base": "WETH", "quote": "USDC", "span": 3_600} | query
        text = "&".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        (row,) = self.history.endpoints()
        assert row.coroutine
        reply: Any = await row.coroutine(
            a_call(target=f"/prices/history?{text}".encode(), now_ms=self.now_ms)
        )
        told: dict[str, Any] = msgspec.json.decode(reply.body)
        return told


async def test_a_pair_without_a_book_of_its_own_has_a_point_for_each_sample() -> None:
    venue = Clocked()
    for price in (2_500, 2_501, 2_499):
        await venue.sample(price)
    told = await venue.show()
    assert told == {
        "chainId": 1,
        "base": to_checksum(WETH),
        "quote": to_checksum(USDC),
        "step": 15,
        "points": [
            [START_MS // 1_000 + at * 15, *[str(price)] * 4] for at, price in enumerate((2_500, 2_501, 2_499))
        ],
    }
    turned = await venue.show(base="USDC", quote=to_checksum(WETH))
    assert [point[1] for point in turned["points"]] == ["0.0004", "0.000399840063", "0.000400160064"]


async def test_a_step_has_the_first_highest_lowest_and_last_price_of_its_samples() -> None:
    venue = Clocked()
    for price in (2_500, 2_510, 2_490, 2_505, 2_600):
        await venue.sample(price)
    told = await venue.show(step=60)
    assert told["points"] == [
        [START_MS // 1_000, "2500", "2510", "2490", "2505"],
        [START_MS // 1_000 + 60, "2600", "2600", "2600", "2600"],
    ]


async def test_what_has_no_price_leaves_a_gap_and_what_is_older_than_the_span_is_left_out() -> None:
    venue = Clocked()
    await venue.sample(1)
    await venue.sample(2)
    del venue.prices.usd[WETH]
    await venue.sample()
    await venue.sample(4, later_ms=45_000)  # the next two are passed over
    await venue.sample(7)
    at = [START_MS // 1_000 + slot * 15 for slot in (0, 1, 3, 6)]
    assert [(point[0], point[1]) for point in (await venue.show())["points"]] == [
        (at[0], "1"), (at[1], "2"), (at[2], "4"), (at[3], "7"),
    ]  # fmt: skip
    assert [point[0] for point in (await venue.show(span=60))["points"]] == at[2:]
    assert (await venue.show(base="LONELY"))["points"] == []


async def test_a_day_is_kept_and_no_more() -> None:
    venue = Clocked()
    samples = limits.PRICE_HISTORY_SAMPLES_MAX + 12  # to the end of a minute
    for number in range(samples):
        await venue.sample(number + 1)
    told = await venue.show(span=86_400)
    assert (told["step"], len(told["points"])) == (300, 288)
    minutes = (await venue.show(span=86_400, step=60))["points"]
    assert len(minutes) == 1_440
    assert minutes[-1][0] - minutes[0][0] == 86_400 - 60
    assert minutes[0] == [START_MS // 1_000 + 180, "13", "16", "13", "16"]
    # A sample that is under way, and has reached the first token alone, takes no price from the day.
    next(venue.history._samples(venue.history._slot + 1))
    venue.history._answers.clear()
    assert (await venue.show(span=86_400, step=60))["points"] == minutes


async def test_the_native_token_has_the_history_of_its_wrapped_form() -> None:
    venue = Clocked()
    await venue.sample()
    told = await venue.show(base="ETH")
    assert (told["base"], told["points"][0][1]) == (limits.NATIVE_PLACEHOLDER, "2500")


@pytest.mark.parametrize("phase_ms", [0, 1, 7_499, 7_500, 14_999])
async def test_samples_that_are_a_little_late_or_early_stay_in_slots_of_their_own(phase_ms: int) -> None:
    venue = Clocked(START_MS + phase_ms)
    for late_ms in (0, 3, -3, 6_000, 0):
        venue.now_ms += late_ms
        await venue.sample(later_ms=15_000 - late_ms)
    times = [point[0] for point in (await venue.show())["points"]]
    assert [later - earlier for earlier, later in pairwise(times)] == [15] * 4


async def test_an_answer_is_kept_until_the_next_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    venue, made = Clocked(), []

    def counted(*given: Any) -> Iterator[Any]:
        made.append(given)
        return price_points(*given)

    monkeypatch.setattr(price_history, "price_points", counted)
    await venue.sample(later_ms=100)
    told = [await venue.show() for _ in range(5)]
    assert len(made) == 1
    assert all(one == told[0] for one in told)
    await venue.show(base="ETH")
    await venue.show(step=60)
    assert len(made) == 3
    await venue.sample(2_600, later_ms=0)
    assert (await venue.show())["points"] != told[0]["points"]
    assert len(made) == 4


async def test_a_sample_between_two_slices_of_an_answer_changes_no_point_of_it() -> None:
    venue = Clocked()
    for price in (1, 2, 3):
        await venue.sample(price)
    answer = PriceHistoryAnswer(chain_id=1, base="", quote="", step=15, points=())
    steps = venue.history._filled(answer, WETH, USDC, 3)
    next(steps)
    for slot in range(3):
        venue.history._rings[1, WETH].put(venue.history._slot + slot, Fraction(9))
    told = await Slices().work(steps)
    assert [point[1] for point in told.points] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"span": None}, "span"),
        ({"span": 14}, "span"),
        ({"span": 86_401}, "span"),
        ({"span": "1h"}, "span"),
        ({"step": 30}, "step"),
        ({"step": 7_200}, "step"),
        ({"span": 86_400, "step": 15}, "step"),
        ({"span": 22_501, "step": 15}, "step"),
        ({"base": "nothing"}, "base"),
        ({"quote": None}, "quote"),
        ({"quote": "WETH"}, "quote"),
        ({"quote": "ETH"}, "quote"),
        ({"chainId": "x"}, "chainId"),
    ],
)
async def test_anything_else_is_refused_by_the_name_of_its_field(query: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await Clocked().show(**query)
    assert refusal.value.field == field


async def test_unknown_tokens_and_chains_are_refused_as_elsewhere() -> None:
    with pytest.raises(TokenNotSupported):
        await Clocked().show(base=to_checksum(b"\x77" * 20))
    with pytest.raises(UnsupportedChain):
        await Clocked().show(chainId=2)


@pytest.mark.parametrize(
    ("span_s", "step_s"),
    [(15, 15), (3_600, 15), (9_000, 15), (9_001, 60), (36_000, 60), (36_001, 300), (86_400, 300)],
)
def test_the_step_is_the_least_that_keeps_within_the_default_number_of_points(
    span_s: int, step_s: int
) -> None:
    assert step_of(span_s, None) == step_s
    assert points_of(span_s, step_s) <= limits.PRICE_HISTORY_POINTS_DEFAULT


async def test_one_task_samples_all_chains_at_common_times(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    venue = Clocked()
    monkeypatch.setattr(venue, "now_ms", START_MS)
    start_s = trio.current_time()
    history = PriceHistory(
        {**venue.history._chains, 2: venue.history._chains[1]},
        lambda: START_MS + round((trio.current_time() - start_s) * 1_000),
    )
    nursery.start_soon(history.run)
    for number in range(1, 4):
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(PRICE_SAMPLE_S)
        await trio.testing.wait_all_tasks_blocked()
        assert venue.prices.asked == number * 2 * len(DECIMALS)


async def test_the_number_of_tokens_with_a_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_history, "PRICE_HISTORY_TOKENS_MAX", 1)
    venue = Clocked()
    await venue.sample()
    assert list(venue.history._rings) == [(1, WETH)]
    assert (await venue.show())["points"] == []
