"""The load of firm quotes: the work is fair, and a wrong answer is seen."""

import json
from typing import Any

import pytest
from bench.firm_check import amounts, fault, nonce
from bench.maker_fixture import Maker, answering, build_maker, prepared_calls
from bench.maker_work import BLACKLISTED, PAIRS, body, grid, signed_request, snapshot, wall_ms, work

from cambist.codecs.http1 import Http1Limits, Request, ServerConnection
from cambist.engine.host.server import HttpCall

ROUND_OF_WORK = 4 * PAIRS  # all pairs, both directions, both kinds of amount


@pytest.fixture(scope="module")
def maker() -> Maker:
    return build_maker()


def answered(maker: Maker, call: HttpCall) -> bytes:
    return maker.surface.firm(call).body


# --- The work -----------------------------------------------------------------------------------------


def test_ten_thousand_bodies_in_a_row_are_different_and_cover_all_pairs_directions_and_amounts() -> None:
    asked = [work(number) for number in range(10_000)]
    assert len({body(one) for one in asked}) == len(asked)
    assert len({one.user for one in asked}) == len(asked)
    kinds = {(one.pair, one.gives_base, one.names_maker_amount) for one in asked}
    assert len(kinds) == ROUND_OF_WORK


def test_every_kind_of_work_gets_the_right_answer_with_all_limits_on(maker: Maker) -> None:
    now_ms = wall_ms()
    for number, call in enumerate(prepared_calls(range(ROUND_OF_WORK), now_ms)):
        assert not fault(work(number), answered(maker, call), now_ms // 1_000)
    settings = maker.role.settings
    assert len(maker.role.blacklist) == BLACKLISTED
    assert settings.auth == "required"
    assert settings.unused_quotes_max
    assert all(token.quote_max for token in settings.tokens.values())
    assert all(pair.notional_max and pair.open_notional_max for pair in settings.pairs.values())
    assert sum(holding.reserved > 0 for holding in maker.role.holdings) == len(maker.role.holdings)
    assert maker.role.desk.signed >= ROUND_OF_WORK


def test_a_request_on_the_wire_is_one_that_our_framing_takes_and_the_handler_admits(maker: Maker) -> None:
    connection = ServerConnection(Http1Limits())
    connection.receive_data(signed_request(7, wall_ms()))
    request = connection.next_event()
    assert isinstance(request, Request)
    reply = answering(maker)(request.target, request.headers, request.body)
    assert reply.status == 200
    assert not fault(work(7), reply.body, wall_ms() // 1_000)


def test_a_request_that_is_not_signed_right_is_refused_by_the_peers_handler_too(maker: Maker) -> None:
    (call,) = prepared_calls(range(1), wall_ms())
    headers = [(name, value.replace(b"venue", b"thief")) for name, value in call.request.headers]
    assert answering(maker)(call.request.target, headers, call.request.body).status == 401
    assert answering(maker)(b"/elsewhere", call.request.headers, call.request.body).status == 404


def test_from_one_snapshot_to_the_next_half_of_the_levels_change() -> None:
    for before, after in zip(snapshot(0, PAIRS).values(), snapshot(1, PAIRS).values(), strict=True):
        for old, new in ((before.bids, after.bids), (before.asks, after.asks)):
            assert isinstance(old, tuple)
            assert isinstance(new, tuple)
            changed = [one != other for one, other in zip(old, new, strict=True)]
            assert sum(changed) == len(changed) // 2
    grids = snapshot(0, PAIRS).values()
    prices = [level[0] for one in grids for level in (*(one.bids or ()), *(one.asks or ()))]
    assert len(set(prices)) == len(prices)


# --- The check ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"makerAmount": "1"},
        {"nonceAndMeta": "1"},
        {"expiry": 1_900_000_000},
        {"taker": "0x" + "11" * 20},
        {"makerAsset": "0x" + "11" * 20},
        {"signature": "0x" + "11" * 65},
        {"signature": "nothing"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_wrong_answer_is_seen(maker: Maker, change: dict[str, Any]) -> None:
    (call,) = prepared_calls(range(1), wall_ms())
    order = json.loads(answered(maker, call))["order"]
    assert not fault(work(0), json.dumps({"order": order}).encode(), wall_ms() // 1_000)
    assert fault(work(0), json.dumps({"order": order | change}).encode(), wall_ms() // 1_000)


def test_an_answer_without_an_order_is_seen() -> None:
    assert fault(work(0), b'{"message":"blacklisted"}', 0)
    assert nonce(b'{"message":"blacklisted"}') == -1


def test_amounts_of_another_version_of_the_prices_are_right_only_where_that_one_may_be_in_force() -> None:
    maker = build_maker(pairs=5)
    number = 12 * PAIRS  # of the first pair, and beyond its first level
    call = next(prepared_calls(range(number, number + 1), wall_ms()))
    maker.role.board.apply("B0/Q0", grid(0, 1), wall_ms())
    answer = answered(maker, call)
    assert amounts(work(number), 1) != amounts(work(number), 0)
    assert fault(work(number), answer, wall_ms() // 1_000)
    assert not fault(work(number), answer, wall_ms() // 1_000, versions=2)
