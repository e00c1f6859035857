"""The tape by examples: what comes, goes and is listed, the statistics, arrivals for streams."""

from typing import Any

import pytest

from cambist.codecs.messages.tape_messages import TradeKind
from cambist.engine.trade.tape.trade_tape import TradeTape
from cambist.engine.trade.tape.trades import MakerPart, TapeTrade
from support.store.stores import NOW_MS, USDC, WETH, hash_of
from support.tape.tape_rows import ONE, USD

DAY_MS, HOUR_MS = 86_400_000, 3_600_000


def a_trade(number: int, **changed: Any) -> TapeTrade:
    """A WETH for 2,500 USDC, at log 1 of block `number`, as many seconds after NOW_MS."""
    values: dict[str, Any] = {
        "kind": TradeKind.DELTA,
        "chain_id": 1,
        "log_id": (hash_of(number), hash_of(10_000 + number), 1),
        "place": (number, 1),
        "at_ms": NOW_MS + 1_000 * number,
        "src_token": WETH,
        "dest_token": USDC,
        "src_amount": ONE,
        "dest_amount": 2_500 * USD,
        "src_cents": 250_000,
        "dest_cents": 249_000,
        "agent": "ann",
    }
    return TapeTrade(**values | changed)


def a_tape(*trades: TapeTrade, now_ms: int = NOW_MS, **bounds: int) -> TradeTape:
    tape = TradeTape(1, **bounds)
    tape.replace_above(-1, trades, now_ms)
    return tape


def numbers(tape: TradeTape, kind: TradeKind | None = None, limit: int = 100) -> list[int]:
    return [entry.trade.place[0] for entry in tape.listed(kind, limit)]


def test_the_latest_trades_come_first() -> None:
    tape = a_tape(a_trade(2), a_trade(3, kind=TradeKind.MARKET), a_trade(1))
    assert numbers(tape) == [3, 2, 1]
    assert numbers(tape, limit=2) == [3, 2]
    assert numbers(tape, TradeKind.DELTA) == [2, 1]
    assert numbers(tape, TradeKind.MARKET) == [3]
    assert (len(tape), tape.newest) == (3, (3, 1))


def test_trades_above_a_height_are_replaced() -> None:
    tape = a_tape(a_trade(1), a_trade(2), a_trade(3))
    mined_again = a_trade(2, log_id=(hash_of(77), hash_of(10_002), 1))
    assert tape.replace_above(1, [mined_again, a_trade(3)], NOW_MS) == 1
    assert numbers(tape) == [3, 2, 1]
    assert tape.find(a_trade(2).log_id) is None
    assert tape.find(mined_again.log_id) == mined_again
    assert tape.statistics(NOW_MS).fills == 3
    assert tape.replace_above(1, [], NOW_MS) == 0
    assert numbers(tape) == [1]


def test_what_is_there_already_changes_nothing() -> None:
    tape = a_tape(a_trade(1), a_trade(2))
    version = tape.version
    assert tape.replace_above(0, [a_trade(1, src_cents=9), a_trade(2)], NOW_MS) == 0
    assert tape.version == version
    found = tape.find(a_trade(1).log_id)
    assert found is not None
    assert found.src_cents == 250_000


def test_the_oldest_trade_goes_for_its_number_and_does_not_come_back() -> None:
    tape = a_tape(*map(a_trade, range(1, 5)), trades_max=3)
    assert (numbers(tape), tape.is_full) == ([4, 3, 2], True)
    end = tape.end
    assert tape.replace_above(-1, map(a_trade, range(1, 5)), NOW_MS) == 0
    assert (numbers(tape), tape.end) == ([4, 3, 2], end)
    assert tape.statistics(NOW_MS).fills == 3


def test_a_trade_goes_after_a_day() -> None:
    tape = a_tape(a_trade(1), a_trade(2))
    tape.forget(NOW_MS + 1_000 + DAY_MS)
    assert numbers(tape) == [2, 1]
    tape.forget(NOW_MS + 1_001 + DAY_MS)
    assert numbers(tape) == [2]
    assert tape.replace_above(0, [a_trade(1), a_trade(2)], NOW_MS + 1_001 + DAY_MS) == 0


def test_trades_of_before_the_start_are_put_below_and_are_no_arrivals() -> None:
    tape = TradeTape(1, trades_max=4)
    tape.prepend([a_trade(5), a_trade(4)], NOW_MS)
    tape.prepend([a_trade(2), a_trade(3), a_trade(1)], NOW_MS)
    assert (numbers(tape), tape.end, tape.is_full) == ([5, 4, 3, 2], 0, True)
    tape.prepend([a_trade(1)], NOW_MS)
    assert numbers(tape) == [5, 4, 3, 2]
    assert tape.statistics(NOW_MS + HOUR_MS).volume_usd == "10000.00"


def test_an_old_page_brings_what_is_young_enough() -> None:
    tape = TradeTape(1)
    tape.prepend([a_trade(1), a_trade(2)], NOW_MS + 1_001 + DAY_MS)
    assert numbers(tape) == [2]


def test_a_later_price_values_what_had_none() -> None:
    parts = (MakerPart("alpha", USDC, 9),)
    tape = a_tape(a_trade(1, src_cents=None, dest_cents=None, parts=parts), a_trade(2))
    assert tape.statistics(NOW_MS).volume_usd == "2500.00"
    version = tape.version
    assert tape.revalue(lambda *_: None) == 1
    assert tape.version == version
    assert tape.revalue(lambda *_: 100) == 0
    found = tape.statistics(NOW_MS)
    assert (found.volume_usd, found.makers[0].volume_usd) == ("2501.00", "1.00")
    assert numbers(tape) == [2, 1]
    assert tape.listed(None, 2)[1].message.count(b'"srcUSD":"1.00"') == 1
    assert tape.version == version + 1


def test_statistics_of_a_day() -> None:
    tape = a_tape(
        a_trade(1, surplus_tenths=30, fill_ms=800, parts=(MakerPart("alpha", USDC, 1, 200_000),)),
        a_trade(2, surplus_tenths=-5, fill_ms=900, agent="bob", parts=(MakerPart("beta", USDC, 1, 50_000),)),
        a_trade(3, kind=TradeKind.MARKET, agent=None, parts=(MakerPart("alpha", USDC, 1, 50_000),) * 2),
        a_trade(4, surplus_tenths=44, fill_ms=None, src_cents=None, dest_cents=None),
        a_trade(5, surplus_tenths=46, fill_ms=100, src_cents=None),
    )
    found = tape.statistics(NOW_MS + 6_000)
    assert (found.from_, found.to) == ("2023-11-13T22:13:26.000Z", "2023-11-14T22:13:26.000Z")
    assert (found.fills, found.volume_usd) == (5, "9990.00")
    assert (found.median_surplus_bps, found.median_fill_ms) == ("3.0", 800)
    assert [(one.maker, one.fills, one.volume_usd, one.share) for one in found.makers] == [
        ("alpha", 3, "3000.00", "85.7"),
        ("beta", 1, "500.00", "14.2"),
    ]
    assert [(one.agent, one.fills, one.volume_usd, one.share) for one in found.agents] == [
        ("ann", 3, "4990.00", "66.6"),
        ("bob", 1, "2500.00", "33.3"),
    ]
    assert [one.median_surplus_bps for one in found.agents] == ["4.4", "-0.5"]
    assert len(found.hours) == 24
    assert (found.hours[-1].fills, found.hours[-1].volume_usd) == (5, "9990.00")
    assert {hour.fills for hour in found.hours[:-1]} == {0}


def test_an_hour_has_its_own_trades_and_the_last_one_those_of_a_fast_clock() -> None:
    tape = a_tape(a_trade(1), a_trade(2, at_ms=NOW_MS + 2 * HOUR_MS), a_trade(3, at_ms=NOW_MS + 9 * HOUR_MS))
    hours = tape.statistics(NOW_MS + 3 * HOUR_MS).hours
    assert [(at, hour.fills) for at, hour in enumerate(hours) if hour.fills] == [(21, 1), (23, 2)]
    assert hours[23].volume_usd == "5000.00"
    assert hours[23].from_ == "2023-11-15T00:13:20.000Z"


def test_an_empty_tape_has_statistics_too() -> None:
    found = TradeTape(1).statistics(NOW_MS)
    assert (found.fills, found.volume_usd, found.median_fill_ms, found.makers) == (0, "0.00", None, ())
    assert len(found.hours) == 24


def test_agents_without_a_value_have_no_share() -> None:
    tape = a_tape(a_trade(1, src_cents=None, dest_cents=None))
    assert [(one.share, one.volume_usd) for one in tape.statistics(NOW_MS).agents] == [("0.0", "0.00")]


@pytest.mark.parametrize("kind", [None, TradeKind.MARKET])
def test_arrivals_are_told_in_the_order_in_which_they_came(kind: TradeKind | None) -> None:
    tape = a_tape(a_trade(5))
    number = tape.end
    tape.replace_above(5, [a_trade(6, kind=TradeKind.MARKET)], NOW_MS)
    tape.replace_above(3, [a_trade(4, kind=TradeKind.MARKET), a_trade(6, kind=TradeKind.MARKET)], NOW_MS)
    assert [entry.trade.place[0] for entry in tape.arrived(number, kind)] == [6, 4]
    assert tape.arrived(tape.end, kind) == []
    assert tape.arrived(number, TradeKind.DELTA) == []


def test_an_arrival_that_was_undone_is_not_told() -> None:
    tape = a_tape(a_trade(1))
    tape.replace_above(0, [a_trade(2)], NOW_MS)
    assert [entry.trade.place[0] for entry in tape.arrived(0, None)] == [2]


def test_a_number_too_far_back_gets_the_last_arrivals() -> None:
    tape = a_tape(*map(a_trade, range(1, 8)), arrivals_max=3)
    assert [entry.trade.place[0] for entry in tape.arrived(0, None)] == [5, 6, 7]
    assert [entry.trade.place[0] for entry in tape.arrived(6, None)] == [7]


def test_trades_after_a_place_are_the_latest_ones() -> None:
    tape = a_tape(*map(a_trade, range(1, 8)), arrivals_max=3)
    assert [entry.trade.place[0] for entry in tape.later((6, 1), None)] == [7]
    assert [entry.trade.place[0] for entry in tape.later((6, 0), None)] == [6, 7]
    assert [entry.trade.place[0] for entry in tape.later((0, 0), None)] == [5, 6, 7]
    assert tape.later((0, 0), TradeKind.MARKET) == []
