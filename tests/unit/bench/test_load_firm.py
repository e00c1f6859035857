"""The load benches: the work is fair, a wrong answer is seen, verdicts go by quiet rounds."""

import json
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from bench import (
    load_book,
    load_firm_client,
    load_intake,
    load_quote,
    load_store,
    load_waiting,
    load_websocket,
)
from bench.compare import LoadBudget, LoadVerdict, Rounds, judge_loads, read_load_budgets
from bench.firm_check import amounts, fault, nonce
from bench.firm_server import SNAPSHOT_EVERY_S, Snapshots, Watch, feed_of
from bench.load_firm import FOREIGN_MAX, OURS, PROTOCOL, UVICORN, FirmLoad, Plan, Row, metrics, told
from bench.load_report import latency_lines, latency_plot, report
from bench.maker_fixture import Maker, answering, build_maker, prepared_calls
from bench.maker_work import BLACKLISTED, PAIRS, body, grid, signed_request, snapshot, wall_ms, work
from bench.measured import PERCENTILES, Measured
from bench.waiting_orders import TASK, TIMER, WHOLE, Waited

from cambist.codecs.http1 import Http1Limits, Request, ServerConnection
from cambist.engine.server import HttpCall

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


# --- Our server -------------------------------------------------------------------------------------


async def test_snapshots_go_through_the_feed_one_after_the_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    maker, watch = build_maker(pairs=5), Watch(lambda: 0)
    feed = feed_of(maker, Snapshots([snapshot(version, 5) for version in range(3)], watch))
    shown = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.follow_source)
        for number in range(4):  # between two snapshots each time
            await trio.sleep(SNAPSHOT_EVERY_S if number else SNAPSHOT_EVERY_S / 2)
            shown.append(maker.role.board.pairs["B0/Q0"].grid)
        nursery.cancel_scope.cancel()
    assert shown == [grid(0, version) for version in (1, 2, 0, 1)]
    assert (feed.refused, feed.restarts, feed.updates, len(watch.snapshot_s)) == (0, 0, 20, 4)


async def test_only_naps_beside_work_are_noted(autojump_clock: trio.testing.MockClock) -> None:
    done = 0
    watch = Watch(lambda: done)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.nap)
        await trio.sleep(1.0)
        assert watch.late_s == []
        for _ in range(5):
            done += 1
            await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert len(watch.late_s) == 5


# --- Verdicts and the report --------------------------------------------------------------------------


def row(phase: str, at: int, server: str, rate: float, slow: float = 1.0, foreign: float = 0.0) -> Row:
    measured = Measured(
        rate=rate,
        answers=1,
        used=1,
        latency_ms=[slow * (number + 1) for number in range(len(PERCENTILES))],
        server_core=1.0,
        load_core=0.5,
        foreign_core=foreign,
        waited_core=0.0,
        failures=[],
    )
    late = [1.0, 2.0, 3.0] if phase in ("flood", "quiet", "snapshots") else []
    return Row(phase=phase, round=at, server=server, measured=measured, rate=rate, late_ms=late)


def a_run(foreign: float = 0.0) -> list[Row]:
    rows = []
    for at, pace in enumerate((1.0, 2.0, 1.0)):
        rows += [
            row("throughput", at, OURS, 1_400 * pace),
            row("throughput", at, UVICORN, 1_000 * pace, foreign=foreign),
            row("throughput", at, PROTOCOL, 1_500 * pace),
            row("latency", at, OURS, 600, slow=0.5),
            row("latency", at, UVICORN, 600),
            row("quiet", at, OURS, 600),
            row("snapshots", at, OURS, 600, slow=1.8),
            row("flood", at, OURS, 1_400),
        ]
    return rows


def test_ratios_are_taken_round_by_round() -> None:
    found = metrics(a_run())
    assert found["throughput_uvicorn"].values == pytest.approx((1.4, 1.4, 1.4))
    assert found["p99_uvicorn"].values == pytest.approx((0.5, 0.5, 0.5))
    assert found["p99_snapshots"].values == pytest.approx((1.8, 1.8, 1.8))
    assert found["wait_ms_flood"].values == (2.0, 2.0, 2.0)


def test_a_noisy_round_does_not_count_and_without_a_quiet_one_nothing_is_kept() -> None:
    rows = a_run()
    rows[1] = row("throughput", 0, UVICORN, 10_000, foreign=FOREIGN_MAX * 2)
    assert metrics(rows)["throughput_uvicorn"] == Rounds((1.4, 1.4))
    noisy = metrics(a_run(foreign=FOREIGN_MAX * 2))["throughput_uvicorn"]
    assert (noisy.noisy, len(noisy.values)) == (True, 3)
    assert not LoadVerdict(LoadBudget("", "", 1.3, 1.4, at_least=True), noisy).kept


@pytest.mark.parametrize(
    ("at_least", "ratio", "kept"),
    [(True, 1.31, True), (True, 1.29, False), (False, 1.29, True), (False, 1.31, False)],
)
def test_a_budget_bounds_from_below_or_from_above(at_least: bool, ratio: float, kept: bool) -> None:
    budget = LoadBudget("ours to theirs", "it", must=1.3, stretch=1.3, at_least=at_least)
    (verdict,) = judge_loads([budget], {"it": Rounds((ratio, ratio, 9.9 if ratio > 1.3 else 0.1))})
    assert verdict.kept is kept


def an_open_loop(rate: float, server_core: float) -> Measured:
    return Measured(
        rate=rate,
        answers=1_000,
        used=1_000,
        latency_ms=[1.0] * len(PERCENTILES),
        server_core=server_core,
        load_core=0.5,
        foreign_core=0.0,
        waited_core=0.0,
        failures=[],
    )


SOCKETS = [
    load_websocket.Row(work=work, client=client, round=0, rate=rate, cpu_us=3.0, digest="", foreign_core=0.0)
    for work in (load_websocket.RECEIVE, load_websocket.BOOK)
    for client, rate in ((load_websocket.OURS, 90.0), (load_websocket.PICOWS, 100.0))
]


def test_sockets_measured_beside_something_else_are_not_kept_either() -> None:
    noisy = [msgspec.structs.replace(one, foreign_core=2 * load_websocket.FOREIGN_MAX) for one in SOCKETS]
    budgets = [one for one in read_load_budgets() if one.metric.startswith("websocket_")]
    assert all(verdict.kept for verdict in judge_loads(budgets, load_websocket.metrics(SOCKETS)))
    assert not any(verdict.kept for verdict in judge_loads(budgets, load_websocket.metrics(noisy)))


STORES = [
    load_store.Row(what=what, round=0, rate=rate, p50_ms=1.0, p99_ms=4.0, batch=64.0)
    for what, rate in {
        "raw sqlite3": 100.0,
        "SQLite, 64": 60.0,
        "SQLite, 64, busy": 30.0,
        "raw unnest": 100.0,
        "pgbench": 40.0,
        "PostgreSQL, 64": 80.0,
        "event lag": 10.0,
    }.items()
]
BOOKS = [
    load_book.Row(kind=kind, book=book, round=0, us=us, digest="", foreign_core=0.0)
    for kind in load_book.KINDS
    for book, us in ((load_book.OURS, 40.0), (load_book.NAUTILUS, 600.0), (load_book.RUST, 50.0))
]
CLIENTS = [
    load_firm_client.Row(client=client, round=0, rate=rate, cpu_us=60.0, server_core=0.4, foreign_core=0.0)
    for client, rate in (
        (load_firm_client.OURS, 16_000.0),
        (load_firm_client.AIOHTTP, 8_000.0),
        (load_firm_client.HTTPX, 200.0),
    )
]
QUOTES = [
    load_quote.Row(
        graph=graph,
        round=0,
        capacity=4_000.0,
        measured=an_open_loop(2_400.0, 0.5),
        signature_us=20.0,
        walk_us=2.0,
    )
    for graph in ("line", "wide")
]
INTAKE = [
    load_intake.Row(what=what, round=0, measured=an_open_loop(rate, 0.5))
    for what, rate in (
        (load_intake.FLOOR, 2_000.0),
        (load_intake.VENUE, 1_000.0),
        (load_intake.EMBEDDED, 500.0),
    )
]
WAITING = [
    load_waiting.Row(what=what, round=0, waited=Waited(each, each, 64.0 * each, 2_000.0))
    for what, each in ((TASK, 40.0), (TIMER, 4.0), (WHOLE, 24.0))
]
BESIDES = (
    load_intake.metrics(INTAKE)
    | load_waiting.metrics(WAITING)
    | load_websocket.metrics(SOCKETS)
    | load_store.metrics(STORES)
    | load_book.metrics(BOOKS)
    | load_firm_client.metrics(CLIENTS)
    | load_quote.metrics(QUOTES)
)


def test_the_store_is_compared_round_by_round() -> None:
    measured = load_store.metrics(STORES)
    assert {name: rounds.values for name, rounds in measured.items()} == {
        "store_sqlite_raw": (0.6,),
        "store_sqlite_busy": (0.5,),
        "store_postgres_raw": (0.8,),
        "store_postgres_pgbench": (2.0,),
        "store_event_lag_ms": (4.0,),
    }
    assert measured.keys() - load_store.metrics(STORES[:3]).keys() == load_store.OF_POSTGRES


def test_what_is_measured_of_books_clients_and_quotes_is_judged() -> None:
    found = {metric: rounds.values for metric, rounds in BESIDES.items()}
    assert found["book_even"] == found["book_trimmed"] == found["book_again"] == (15.0,)
    assert found["firm_client_aiohttp"] == (2.0,)
    assert found["firm_client_httpx"] == (80.0,)
    assert found["quote_p99_ms"] == (1.0,)
    assert [round(of) for of in found["quote_cpu_walks"]] == [104]
    assert found["intake_floor"] == (2.0,)
    assert found["waiting_timer_bytes"] == found["waiting_timer_time"] == (0.1,)
    assert found["waiting_whole_bytes"] == found["waiting_whole_time"] == (0.6,)
    noisy = [
        *load_book.metrics([msgspec.structs.replace(one, foreign_core=0.5) for one in BOOKS]).values(),
        *load_firm_client.metrics(
            [msgspec.structs.replace(one, foreign_core=0.5) for one in CLIENTS]
        ).values(),
    ]
    assert len(noisy) == 5
    assert all(rounds.noisy for rounds in noisy)
    for part, rows in (
        (load_book, BOOKS),
        (load_firm_client, CLIENTS),
        (load_quote, QUOTES),
        (load_intake, INTAKE),
        (load_waiting, WAITING),
    ):
        assert part.table(rows).row_count >= 2


def test_every_load_budget_is_of_something_that_is_measured() -> None:
    budgets = read_load_budgets()
    assert {budget.metric for budget in budgets} == {*metrics(a_run()), *BESIDES}
    assert all(budget.keeps(budget.stretch, budget.must) for budget in budgets)


def test_the_open_loop_runs_at_a_share_of_what_the_slowest_can_do() -> None:
    load = FirmLoad(Plan(), print)
    load.rows = a_run()
    assert load.rate((OURS, UVICORN, PROTOCOL)) == 600


def test_the_report_tells_every_figure_and_draws_every_server() -> None:
    rows = a_run()
    rows[0] = row("throughput", 0, OURS, 1_400, foreign=FOREIGN_MAX * 2)
    verdicts = judge_loads(read_load_budgets(), metrics(rows) | BESIDES)
    text = report(rows, verdicts, [])
    for budget in read_load_budgets():
        assert budget.what in text
    assert "Still noisy: throughput 1 ours" in text
    assert "| uvicorn + uvloop, raw ASGI | 1,000 |" in text
    plot = latency_plot(latency_lines(rows))
    assert plot.count("<polyline") == 2
    assert plot.startswith("<svg")
    assert "noisy" in told(rows[0])
