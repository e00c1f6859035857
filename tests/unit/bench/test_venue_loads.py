"""The work of the venue's load benches: it is fair, it never repeats, and a wrong answer is seen."""

import json
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from bench.book_client import measure
from bench.book_corpus import AGAIN, EVEN, TRIMMED, grids
from bench.firm_asks import Asking, asked_for, body_of, order_of
from bench.quote_generator import Corpus, fault
from bench.quote_server import Books
from bench.quote_work import LINE, PAIRS, TOKENS, WIDE, Asked, Token, expected, request
from bench.quote_work import asked_for as quote_asked_for
from bench.quote_work import grids as quoted

from cambist.codecs.messages.maker_messages import FirmOrder, decode_firm_request
from cambist.codecs.messages.vocabulary import Side
from cambist.crypto.addresses import parse_address
from cambist.engine.routing.search.pathfinder import Pathfinder
from cambist.engine.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.firm.firm_check import FirmAsked

# --- Books --------------------------------------------------------------------------------------------


def test_half_of_a_pairs_levels_change_and_no_string_that_changed_was_there_before() -> None:
    seen: dict[str, list[Any]] = {}
    for applied in grids(EVEN, 0, 500):
        seen.setdefault(applied.pair, []).append(applied.grid)
    for history in seen.values():
        for before, after in pairwise(history[1:]):
            for old, new in ((before.bids, after.bids), (before.asks, after.asks)):
                changed = [one for one, other in zip(new, old, strict=True) if one != other]
                assert len(changed) == len(new) // 2
                assert not {price for price, _ in changed} & {price for price, _ in old}


def test_trimmed_grids_are_the_same_numbers_and_a_grid_that_comes_again_alone_is_measured() -> None:
    pairs = zip(grids(EVEN, 0, 200), grids(TRIMMED, 0, 200), strict=True)
    texts, shorter = set(), 0
    for even, trimmed in pairs:
        for level, other in zip(
            even.grid.bids + even.grid.asks, trimmed.grid.bids + trimmed.grid.asks, strict=True
        ):
            assert [*map(Decimal, level)] == [*map(Decimal, other)]
            texts |= {*other}
            shorter += sum(len(one) > len(two) for one, two in zip(level, other, strict=True))
    assert shorter
    assert not [text for text in texts if "." in text and text.endswith(("0", "."))]
    again = [*grids(AGAIN, 0, 3)]
    assert [one.is_measured for one in again] == [False, True] * 3
    assert all(first.grid == second.grid for first, second in zip(again[::2], again[1::2], strict=True))


def test_our_side_applies_every_kind_of_string() -> None:
    digests = {kind: measure(kind, 0, 100).split()[1] for kind in (EVEN, TRIMMED, AGAIN)}
    assert digests[EVEN] == digests[TRIMMED] != digests[AGAIN]


# --- The firm client ----------------------------------------------------------------------------------


def test_bodies_never_repeat_and_ask_for_their_own_amount() -> None:
    bodies = [body_of(asked_for(number)) for number in range(10_000)]
    assert len({*bodies}) == len(bodies)
    read = decode_firm_request(bodies[7])
    assert read.taker_amount == str(asked_for(7).amount)
    assert read.maker_amount is None


async def test_an_answer_to_another_question_ends_the_measurement() -> None:
    order = FirmOrder("1", 1, "0x", "0x", "0x", "0x", "1", str(asked_for(5).amount), "0x")

    async def ask(asked: FirmAsked) -> FirmOrder:
        return order

    asking = Asking(5)
    asking.begin(60.0)
    with pytest.raises(RuntimeError, match="answered 1000000000000000005"):
        await asking.call(ask)
    assert asking.answered == 1
    with pytest.raises(RuntimeError, match="status 401"):
        order_of(401, b"unknown")


# --- Quotes -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def books() -> dict[str, PairIndex]:
    indexes = {LINE: PairIndex(), WIDE: PairIndex()}
    for graph, index in indexes.items():
        Books(index, graph)
    return indexes


def plan_of(index: PairIndex, asked: Asked) -> RoutePlan | None:
    side = Side.SELL if asked.sells else Side.BUY
    weth = next(token for token in TOKENS if token.symbol == "WETH")
    wanted = SwapRequest(address_of(asked.src), address_of(asked.dest), asked.amount, side)
    return Pathfinder(index, address_of(weth)).find(wanted)


def address_of(token: Token) -> bytes:
    return parse_address(token.address, "address")


def test_quotes_are_asked_for_in_both_directions_and_never_twice() -> None:
    requests = [request(number) for number in range(5_000)]
    assert len({*requests}) == len(requests)
    asked = [quote_asked_for(number) for number in range(5_000)]
    assert len({(one.src.symbol, one.dest.symbol, one.sells) for one in asked}) == 4 * 4 * 2 * 2
    corpus = Corpus(7, 1)
    assert corpus.take() == (7, request(7))


@pytest.mark.parametrize("graph", [LINE, WIDE])
def test_every_quote_is_three_hops_near_the_mid_prices(graph: str, books: dict[str, PairIndex]) -> None:
    for number in range(16):
        asked = quote_asked_for(number)
        plan = plan_of(books[graph], asked)
        assert plan is not None
        assert {len(path.hops) for path in plan.paths} == {3}
        other = plan.dest_amount if asked.sells else plan.src_amount
        assert abs(other - expected(asked)) < expected(asked) / 50


def test_half_of_the_quoted_levels_change_and_makers_differ() -> None:
    before, after = quoted(LINE, 3, 1), quoted(LINE, 3, 2)
    for pair in PAIRS[LINE]:
        levels = zip(before[pair].bids or (), after[pair].bids or (), strict=True)
        assert sum(old != new for old, new in levels) == 10
        assert quoted(LINE, 4, 1)[pair] != before[pair]


def an_answer(asked: Asked, other: int, *, gas: int = 0) -> dict[str, Any]:
    paid, received = (asked.amount, other) if asked.sells else (other, asked.amount)

    def end(token: Token, amount: int) -> dict[str, Any]:
        return {"token": {"address": token.address}, "amount": str(amount)}

    fees = {"gas": end(asked.dest if asked.sells else asked.src, gas)}
    route = {
        "origin": {"input": end(asked.src, paid)},
        "destination": {"output": end(asked.dest, received)},
        "fees": fees,
    }
    return {"delta": {"route": route}}


@pytest.mark.parametrize("number", range(4))
def test_a_quote_far_from_the_mid_prices_is_seen(number: int) -> None:
    asked = quote_asked_for(number)
    right = int(expected(asked))

    def told(other: int, of: Asked = asked, gas: int = 0) -> str:
        return fault(asked, json.dumps(an_answer(of, other, gas=gas)).encode())

    assert not told(right)
    assert not told(right * 101 // 100)
    assert "at mid prices" in told(right * 110 // 100)
    assert not told(right * 110 // 100, gas=right // 10)
    assert "the amount is" in told(right, Asked(asked.src, asked.dest, asked.sells, asked.amount + 1))
    assert "tokens are" in told(right, Asked(asked.dest, asked.src, asked.sells, asked.amount))
    assert "no price" in fault(asked, b'{"market":{}}')
