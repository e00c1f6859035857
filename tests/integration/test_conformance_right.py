"""A right maker passes, in whole runs: plain, strict, without credentials, without prices, bounded.

Time is the clock's own where a run watches or gives up: it passes where harness and maker both wait.
"""

import itertools
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.engine.trader.conformance.check_table import CHECKS
from cambist.engine.trader.conformance.checks.resources import RESOURCES
from cambist.engine.trader.conformance.options import read_base_url
from cambist.engine.trader.conformance.probe import Probe, Unreachable
from cambist.engine.trader.conformance.report import verdict_line
from cambist.engine.trader.conformance.rules import CheckStatus, Selection
from cambist.engine.trader.conformance.run import RunOutcome, RunReport, run_checks
from cambist.engine.trader.conformance.stages import stage_firm, stage_stream
from cambist.feeds.transport import websocket
from cambist.feeds.transport.streams import server_tls
from support.conformance.faulty_maker import Maker, Refused
from support.conformance.faulty_runs import UNTIMED, failed, judge, mock_now_ms, now_ms, options, told
from support.conformance.faulty_serving import Server
from support.conformance.faulty_table import RETIRED_WELL
from support.patience import PATIENCE_S
from support.server.scripted_server import Caller, keep_answering, scripted_server
from support.server.server_harness import make_certificate

_NEED_A_NODE = {check.id for check in CHECKS.values() if check.topic == "chain"}


def status_of(report: RunReport) -> dict[str, CheckStatus]:
    return {verdict.check.id: verdict.status for verdict in report.verdicts}


@pytest.mark.parametrize("strict", [False, True])
async def test_a_right_maker_passes_every_check(strict: bool, autojump_clock: MockClock) -> None:
    report = await judge(Maker(mock_now_ms), strict=strict)
    assert report.conforms, told(report)
    skipped = {check for check, status in status_of(report).items() if status is not CheckStatus.PASSED}
    only_strict = {check.id for check in CHECKS.values() if check.severity == "strict"}
    nothing_to_see = {"life.retired", *UNTIMED}
    assert skipped == _NEED_A_NODE | nothing_to_see | (set() if strict else only_strict), told(report)
    assert report.load is not None
    assert report.load.quotes == 48
    assert report.load.failed == report.load.duplicate_nonces == 0


async def test_without_credentials_authentication_is_skipped_and_says_why(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.flags.add("no-auth")
    report = await judge(maker, credentials=None)
    assert report.conforms, told(report)
    reasons = {
        verdict.reason
        for verdict in report.verdicts
        if verdict.check.topic == "auth" or verdict.check.id == "stream.unsigned"
    }
    assert reasons == {"no credentials are given: --domain, --access-key, --secret"}


async def test_without_a_domain_signatures_are_reported_as_not_checked() -> None:
    report = await judge(Maker(now_ms), ("firm.*",), chain_id=None)
    verdict = next(verdict for verdict in report.verdicts if verdict.check.id == "firm.signature")
    assert (verdict.status, verdict.reason) == (CheckStatus.SKIPPED, "needs --chain-id and --rfq-contract")


async def test_a_maker_without_a_socket_is_right_and_one_that_was_promised_is_missed(
    autojump_clock: MockClock,
) -> None:
    maker = Maker(mock_now_ms)
    maker.flags.add("no-socket")
    report = await judge(maker, ("stream.*",))
    assert {verdict.status for verdict in report.verdicts} == {CheckStatus.SKIPPED}
    promised = read_base_url("ws://127.0.0.1:9/ws", "--ws-url", ("ws", "wss"))
    report = await judge(maker, ("stream.*",), socket=promised)
    assert failed(report) == {"stream.handshake"}


async def test_a_pair_that_was_disabled_first_may_go() -> None:
    maker = Maker(now_ms)
    RETIRED_WELL.apply(maker)
    report = await judge(maker, ("life.*", "firm.quotes"))
    assert status_of(report)["life.retired"] is CheckStatus.PASSED, told(report)


async def test_a_maker_without_prices_has_no_fault_and_proves_nothing() -> None:
    maker = Maker(now_ms)
    maker.entries["prices"] = lambda prices: {}
    report = await judge(maker, ("prices.*", "firm.*", "refuse.*", "load.*"))
    assert report.outcome is RunOutcome.INCONCLUSIVE, told(report)
    assert {topic: report.thin[topic] for topic in ("firm", "refuse", "load")} == {
        "firm": "no pair is quoted",
        "refuse": "no quote was given to start from",
        "load": "no pair is quoted",
    }
    reasons = {verdict.reason for verdict in report.verdicts if verdict.check.topic in ("firm", "load")}
    assert "no pair is quoted" in reasons


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
@pytest.mark.parametrize("only", [(), ("firm.*", "tokens.*"), ("firm.user", "tokens.*")])
async def test_a_maker_that_never_gave_a_firm_quote_passes_only_if_allowed(
    status: int, only: tuple[str, ...], autojump_clock: MockClock
) -> None:
    maker = Maker(mock_now_ms)

    def refuse(raw: bytes) -> Any:
        raise Refused(status, "not today")

    maker._firm = refuse  # type: ignore[method-assign]
    report = await judge(maker, only)
    assert not report.conforms
    if report.outcome is RunOutcome.INCONCLUSIVE:
        assert "the maker gave no firm quote (--allow-no-quotes accepts that)" in verdict_line(report)
    allowed = await judge(maker, only, allow_no_quotes=True)
    assert allowed.conforms, told(allowed)
    assert allowed.count(CheckStatus.SKIPPED)


async def test_a_maker_that_quotes_is_judged_on_its_quotes_where_none_are_allowed_too(
    autojump_clock: MockClock,
) -> None:
    report = await judge(Maker(mock_now_ms), allow_no_quotes=True)
    assert report.conforms
    assert status_of(report)["firm.quotes"] is CheckStatus.PASSED


@pytest.mark.parametrize("pair_id", ["WETH/USDC", "WBTC/USDC"])
async def test_a_pair_that_is_disabled_between_two_looks_is_no_fault(pair_id: str) -> None:
    maker = Maker(now_ms)
    looks = itertools.count()
    maker.entries["prices"] = lambda prices: prices | ({pair_id: {}} if next(looks) % 2 else {})
    report = await judge(maker, ("prices.*", "firm.*", "refuse.*", "load.*"))
    assert (report.broken, failed(report)) == ((), set()), told(report)


async def test_prices_that_fail_now_and_then_are_a_fault_and_end_nothing() -> None:
    maker = Maker(now_ms)
    looks = itertools.count(1)
    route = maker.resource

    def failing(name: str) -> Any:
        if name == "prices" and next(looks) % 10 == 0:
            raise Refused(500, "down")
        return route(name)

    maker.resource = failing  # type: ignore[method-assign]
    report = await judge(maker, ("prices.*", "firm.*", "refuse.*", "load.*"))
    assert (report.broken, failed(report)) == ((), {"prices.status"}), told(report)


async def test_a_bug_of_the_harness_costs_one_stage_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("WETH/USDC")

    monkeypatch.setattr(stage_firm, "judge_terms", broken)
    report = await judge(Maker(now_ms), ("firm.*", "auth.stale"))
    assert report.outcome is RunOutcome.INCONCLUSIVE
    assert report.broken == ("firm quotes: KeyError('WETH/USDC')", "deep quotes: KeyError('WETH/USDC')")
    assert "has a bug, please report it: firm quotes: KeyError" in verdict_line(report)
    assert status_of(report)["auth.stale"] is CheckStatus.PASSED


async def test_the_run_is_bounded_and_says_what_it_did_not_reach(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.flags.add("hang-firm")
    report = await judge(maker, run_timeout_s=0.3)
    assert failed(report) == {"run.complete"}, told(report)
    assert status_of(report)["auth.stale"] is CheckStatus.SKIPPED


async def test_a_slow_maker_is_right_and_its_slowness_is_told(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.slow_s = 3.0
    report = await judge(maker, skip=(), run_timeout_s=86_400)
    assert report.conforms, told(report)
    advised = {check for check, status in status_of(report).items() if status is CheckStatus.ADVISED}
    assert advised == {"run.speed", "load.latency"}
    assert "run.speed: the run: expected answers within 500 ms, got answers take 3.0 s" in told(report)


async def test_a_run_that_a_slow_maker_outlasts_says_how_slow_it_is(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.slow_s = 3.0
    report = await judge(maker, run_timeout_s=300)
    assert failed(report) == {"run.complete"}, told(report)
    assert "stopped after 300 s, at refusals: answers take 3.0 s" in told(report)


async def test_answers_beyond_the_timeout_are_told_as_slow(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.slow_s = 7.0
    report = await judge(maker, skip=())
    assert failed(report) == {f"{name}.status" for name in RESOURCES}
    assert "got no answer within 5 s: slow, or hanging" in told(report)
    assert "answers take more than 5 s (4 of 4)" in told(report)


async def test_the_report_counts_what_the_maker_hears(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    report = await judge(maker)
    halves = 2  # requests that stop in the middle are never whole
    assert report.requests == maker.heard + halves
    maker = Maker(mock_now_ms)
    report = await judge(maker, ("firm.*", "refuse.*", "auth.*", "load.*"))
    assert report.firm_requests == maker.firm_requests


async def test_an_expiry_as_a_string_is_shown_as_one() -> None:
    maker = Maker(now_ms)
    maker.order = lambda order: order.update(expiry=str(order["expiry"]))
    report = await judge(maker, ("firm.order-form",))
    assert "expiry: expected a JSON integer, without fraction or exponent, got '1" in told(report)


async def test_the_same_seed_asks_the_same() -> None:
    asked: list[list[int]] = []
    for _ in range(2):
        maker = Maker(now_ms)
        maker.flags.add("still")
        amounts: list[int] = []
        maker.terms = lambda terms, amounts=amounts: amounts.append(terms["maker_amount"])  # type: ignore[misc]
        await judge(maker, ("firm.price-*",), seed=7)
        asked.append(amounts)
    assert asked[0] == asked[1]
    assert len(asked[0]) > 10


async def test_prices_that_move_between_the_grids_are_no_fault() -> None:
    maker = Maker(now_ms)
    moves = iter(range(10_000))

    def moving(prices: dict[str, object]) -> dict[str, object]:
        maker.tick = next(moves) * 7
        return prices

    maker.flags.add("still")
    maker.entries["prices"] = moving
    report = await judge(maker, ("firm.*", "load.*"))
    assert report.conforms, told(report)


async def test_what_the_maker_says_back_of_the_credentials_is_hidden() -> None:
    maker = Maker(now_ms)
    maker.refusal = lambda status, text: (500, b'{"wrong": "access-1"}')  # type: ignore[method-assign]
    report = await judge(maker, ("errors.*",))
    assert "errors.text" in failed(report)
    assert "access-1" not in told(report)
    assert "(hidden)" in told(report)


async def test_what_is_no_address_in_the_blacklist_is_passed_over() -> None:
    maker = Maker(now_ms)
    maker.entries["blacklist"] = lambda blacklist: ["\ud800", "", 7, *blacklist]
    report = await judge(maker, ("firm.*", "blacklist.*"))
    assert (report.broken, failed(report)) == ((), {"blacklist.addresses"}), told(report)
    assert status_of(report)["firm.blacklisted"] is CheckStatus.PASSED


async def test_an_access_key_that_is_said_back_changed_is_hidden_too() -> None:
    """As the harness sent it: in another case, and cut."""
    maker = Maker(now_ms)
    maker.flags.add("any-access-key")
    maker.raw["prices"] = lambda raw: b'{"message": "ACCESS-1 access- access-10"}'
    report = await judge(maker, ("auth.wrong-access-key",))
    assert "access-1" not in told(report).lower()
    assert "(hidden) (hidden) (hidden)0" in told(report)


async def test_a_socket_that_refuses_the_right_signature_is_there_and_at_fault(
    autojump_clock: MockClock,
) -> None:
    maker = Maker(mock_now_ms)
    maker.flags.add("deny")
    report = await judge(maker, ("stream.*",))
    assert failed(report) == {"stream.handshake"}, told(report)


async def test_an_answer_429_proves_nothing() -> None:
    maker = Maker(now_ms)
    maker.error_status = 429
    report = await judge(maker, ("refuse.*",))
    assert report.outcome is RunOutcome.INCONCLUSIVE, told(report)
    passed = {check for check, status in status_of(report).items() if status is CheckStatus.PASSED}
    assert passed == {"refuse.recovers"}
    reasons = {verdict.reason for verdict in report.verdicts if verdict.check.id == "refuse.zero-amount"}
    assert reasons == {"the maker limits the rate of requests: see --pause"}


async def test_a_maker_behind_tls_and_its_socket_are_judged_as_well(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    report = await judge(Maker(mock_now_ms), certificate=make_certificate(tmp_path))
    assert report.conforms, told(report)
    assert status_of(report)["stream.agrees"] is CheckStatus.PASSED


async def test_an_unknown_certificate_cannot_be_reached(tmp_path: Path) -> None:
    server = Server(Maker(now_ms), server_tls(*make_certificate(tmp_path)))
    async with trio.open_nursery() as nursery:
        port = await nursery.start(server.run)
        place = read_base_url(f"https://127.0.0.1:{port}", "URL", ("https",))
        with pytest.raises(
            Unreachable, match="TLS failed: CERTIFICATE_VERIFY_FAILED: self-signed certificate"
        ):
            await run_checks(options(port, base=place), now_ms=now_ms)
        nursery.cancel_scope.cancel()


async def test_a_maker_that_never_answers_is_given_up_at_once(autojump_clock: MockClock) -> None:
    maker = Maker(mock_now_ms)
    maker.flags |= {f"hang-{name}" for name in RESOURCES}
    report = await judge(maker, timeout_s=0.2)
    assert failed(report) == {f"{name}.status" for name in RESOURCES}, told(report)
    reasons = {verdict.reason for verdict in report.verdicts if verdict.check.topic in ("firm", "auth")}
    assert reasons == {"no endpoint answers"}


async def test_a_slow_maker_is_asked_at_the_times_that_the_cases_name() -> None:
    maker = Maker(lambda: now_ms() + 2_500 * maker.requests)
    report = await judge(maker, ("auth.*",))
    assert report.conforms, told(report)
    assert not report.count(CheckStatus.ADVISED), told(report)


async def test_a_pause_comes_behind_the_answer_so_that_a_signature_never_waits() -> None:
    maker, heard = Maker(now_ms), trio.Event()
    maker.flags.add("no-auth")
    maker.entries["tokens"] = lambda tokens: heard.set() or tokens
    async with trio.open_nursery() as nursery:
        base = options(await nursery.start(Server(maker).run)).base
        async with Probe(base, timeout_s=5.0, now_ms=now_ms, pause_s=3_600) as probe:
            nursery.start_soon(probe.get, "tokens")
            with trio.fail_after(PATIENCE_S):
                await heard.wait()
            nursery.cancel_scope.cancel()


async def test_a_request_that_is_given_up_leaves_no_half_answered_connection() -> None:
    """As a stage does that stops asking when its time is over."""
    heard = trio.Event()

    async def silent(caller: Caller) -> None:
        await caller.request()
        heard.set()
        await trio.sleep_forever()

    async with (
        scripted_server(silent, keep_answering) as port,
        Probe(options(port).base, timeout_s=PATIENCE_S, now_ms=now_ms) as probe,
    ):
        with trio.CancelScope() as leaving:

            async def leave() -> None:
                await heard.wait()
                leaving.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(leave)
                await probe.get("prices")
        assert leaving.cancelled_caught
        assert (await probe.get("tokens")).body == b"ok"


async def test_a_maker_that_goes_away_is_told_and_does_not_end_the_run() -> None:
    maker, serving = Maker(now_ms), trio.CancelScope()
    maker.firm_body = lambda answer: serving.cancel() or answer

    async def serve(task_status: trio.TaskStatus[int]) -> None:
        with serving:
            await Server(maker).run(task_status)

    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve)
        report = await run_checks(
            options(port, selection=Selection(("hostile.half-request",))), now_ms=now_ms
        )
    assert failed(report) == {"hostile.half-request"}
    assert "no connection" in told(report)


async def test_a_close_that_nobody_answers_is_advice(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    for module in (stage_stream, websocket):
        monkeypatch.setattr(module, "WEBSOCKET_CLOSE_S", 0.2)
    maker = Maker(mock_now_ms)
    maker.flags.add("deaf-socket")
    report = await judge(maker, ("stream.closes",))
    assert report.conforms, told(report)
    assert status_of(report)["stream.closes"] is CheckStatus.ADVISED
