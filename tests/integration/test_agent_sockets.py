"""An agent over a socket: permitted callers, refusals and their words, and custom strategies."""

from pathlib import Path

import msgspec
import pytest
import trio
from structlog.testing import capture_logs

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.agent_messages import (
    Notice,
    NoticeEntry,
    NotifyRequest,
    SolverBid,
    SolveResponse,
    decode_solve_response,
)
from cambist.codecs.messages.wire import encode
from cambist.config.limits import AGENT_ANSWER_BYTES_MAX
from cambist.crypto.hmac_auth import RequestSigner
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.makers.agent_role import SECRET, RunningAgent, own_module, running_agent
from support.patience import LATE_ROUND_S, PATIENCE_S, until
from support.venue.venue_role import CHAIN_ID

ONE, USDC = 10**18, 10**6
OWN = """
import trio
from cambist.codecs.messages.agent_messages import BidPart, SolverBid


class Own:
    def __init__(self, options, context):
        self.options, self.context, self.heard = options, context, 0

    async def solve(self, request, market):
        order = market.orders[0]
        if self.options.get("raises"):
            raise RuntimeError("of its own")
        if self.options.get("hangs"):
            await trio.sleep_forever()
        if self.options.get("nonsense"):
            return ["nonsense"]
        return [SolverBid((BidPart(order.order_hash, str(order.dest_amount + self.heard)),))]

    def notify(self, notice):
        self.heard += len(notice.notices)
        if self.options.get("raises"):
            raise RuntimeError("when told")


def made(options, context):
    return Own(options, context)
"""


def with_own(folder: Path, factory: str = "Own", fault: str = "") -> str:
    """Settings of an agent with a strategy of its own beside makers' quotes."""
    name = f"{own_module(folder, OWN)}:{factory}"
    text = f'strategies = ["{name}", "firm_quotes"]\n'
    return f'{text}[agent.options."{name}"]\n{fault} = true\n' if fault else text


async def answer(agent: RunningAgent, body: bytes, path: str = "/solve") -> tuple[int, str]:
    """Status, and the error's text."""
    response = await agent.ask("POST", path, body)
    return response.status, msgspec.json.decode(response.body)["error"]


async def test_only_who_signs_rightly_is_let_in(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        body = msgspec.json.encode(agent.request(sale))
        for method, path in (("POST", "/solve"), ("POST", "/notify"), ("GET", "/status")):
            unsigned = await agent.client.request(
                method.encode(), path.encode(), [], body, deadline_s=PATIENCE_S
            )
            assert unsigned.status == 401, path
            for domain, access_key, secret in (
                ("venue", "key-1", "another secret"),
                ("nobody", "key-1", SECRET),
                ("venue", "key-2", SECRET),
            ):
                signer = RequestSigner(domain, access_key, secret.encode())
                wrong = await agent.ask(method, path, body, signer)
                assert wrong.status == 401, path
                assert b"X-AUTH-" in wrong.body
        signed = agent.signer.headers(agent.clock.now_ms(), "POST", "/solve", body)
        headers = [(name.encode(), value.encode()) for name, value in signed.items()]
        changed = body.replace(b'"SELL"', b'"BUY" ')
        other_body = await agent.client.request(b"POST", b"/solve", headers, changed, deadline_s=PATIENCE_S)
        assert other_body.status == 401
        assert agent.app.solver.statistics().rounds == 0
        assert len(await agent.solve(sale)) == 1


async def test_what_is_malformed_is_named(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        request = msgspec.to_builtins(agent.request(sale))
        assert "the JSON ends too early" in (await answer(agent, b"{"))[1]
        for at, value, status, says in (
            ("chainId", 5, 422, f"chainId: expected one of {CHAIN_ID}, got 5"),
            ("delta", agent.devnet.text("rfq"), 400, "delta: expected this agent's, "),
            ("executor", "0x12", 400, "executor: expected an address"),
            ("wrappedNative", agent.devnet.text("USDC"), 400, "wrappedNative: expected this agent's, "),
            ("gasPriceWei", "-1", 400, "gasPriceWei: "),
            ("auctionId", "one", 400, "auctionId: expected an integer"),
        ):
            said = await answer(agent, msgspec.json.encode(request | {at: value}))
            assert (said[0], says in said[1]) == (status, True), said
        for at, value, says in (
            ("srcAmount", "1.5", "orders[0].srcAmount: "),
            ("owner", "0x", "orders[0].owner: expected an address"),
            ("partnerAndFee", str(1 << 20), "orders[0].partnerAndFee: expected partner << 96"),
            ("side", "LEND", "orders[0].side: expected one of SELL, BUY"),
        ):
            changed = request | {"orders": [request["orders"][0] | {at: value}]}
            said = await answer(agent, msgspec.json.encode(changed))
            assert (said[0], says in said[1]) == (400, True), said
        assert (await answer(agent, b'{"auctionId": 1}', "/notify"))[0] == 400
        assert (await agent.ask("GET", "/solve")).status == 405
        assert (await agent.ask("POST", "/elsewhere")).status == 404


async def test_a_round_without_orders_or_time_has_no_bids(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        assert await agent.solve() == ()
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        assert await agent.solve(sale, round_ms=50) == ()
        assert await agent.solve(sale, round_ms=-60_000) == ()
        statistics = agent.app.solver.statistics()
        assert (statistics.rounds, statistics.late) == (1, 2)


async def test_a_venue_whose_clock_is_another_is_answered_all_the_same(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        for behind_ms in (-90_000, 90_000):
            sent_at_ms = agent.clock.now_ms() + behind_ms
            await agent.solve(sale, sent_at_ms=sent_at_ms, closes_at_ms=sent_at_ms + 1_000)
        statistics = agent.app.solver.statistics()
        assert (statistics.rounds, statistics.late) == (2, 0)


async def test_notices_are_taken_and_logged(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        notices = tuple(NoticeEntry(notice, "0x" + "ab" * 32, detail="why") for notice in Notice)
        with capture_logs() as logs:
            response = await agent.notify(NotifyRequest(7, CHAIN_ID, notices))
        assert (response.status, response.body) == (200, b"{}")
        told = [entry for entry in logs if entry["event"] == "outcome of a bid"]
        assert [entry["notice"] for entry in told] == list(Notice)
        assert all((entry["auction"], entry["detail"]) == (7, "why") for entry in told)
        status = msgspec.json.decode((await agent.ask("GET", "/status")).body)
        assert status["solver"]["notices"]["simulationMismatch"] == 1


async def test_its_operator_sees_whether_it_can_trade(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        for path, status in (("/healthz", 200), ("/readyz", 200)):
            response = await agent.client.request(b"GET", path.encode(), deadline_s=PATIENCE_S)
            assert response.status == status
        for name in ("alpha", "beta"):
            (tmp_path / f"maker-{name}" / f"{name}.json").unlink()
        index = agent.app.chains[CHAIN_ID].makers.index
        await until(lambda: not any(index.books()))
        response = await agent.client.request(b"GET", b"/readyz", deadline_s=PATIENCE_S)
        assert response.status == 503
        assert b"no maker has a live book" in response.body


async def test_its_health_has_a_listener_of_its_own(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        async with (
            running_agent(tmp_path, health_listener=listener),
            HttpClient("127.0.0.1", port, connections_max=1, limits=Http1Limits()) as client,
        ):
            for path, status in (("/healthz", 200), ("/readyz", 200), ("/status", 404), ("/solve", 404)):
                response = await client.request(b"GET", path.encode(), deadline_s=PATIENCE_S)
                assert response.status == status


async def test_strategies_of_ones_own_bid_beside_the_shipped_ones(tmp_path: Path) -> None:
    async with running_agent(tmp_path, more=with_own(tmp_path, "made")) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        own, shipped = await agent.solve(sale)
        assert own.parts[0].promised_amount == str(2_400 * USDC)
        assert shipped.parts[0].steps
        await agent.notify(NotifyRequest(1, CHAIN_ID, (NoticeEntry(Notice.LOST),)))
        own, _ = await agent.solve(sale)
        assert own.parts[0].promised_amount == str(2_400 * USDC + 1)


@pytest.mark.parametrize(
    ("fault", "says"),
    [("raises", "of its own"), ("hangs", "was not done in time"), ("nonsense", "raised")],
)
async def test_a_strategy_that_fails_costs_its_own_bids(tmp_path: Path, fault: str, says: str) -> None:
    async with running_agent(tmp_path, more=with_own(tmp_path, fault=fault)) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        with capture_logs() as logs:
            bids = await agent.solve(sale, round_ms=round(1_000 * LATE_ROUND_S))
            notified = await agent.notify(NotifyRequest(1, CHAIN_ID, (NoticeEntry(Notice.LATE),)))
        assert notified.status == 200
        assert [len(bid.parts[0].steps) for bid in bids] == [1]
        (settled,) = await agent.settle(bids[0])
        assert settled.received >= int(bids[0].parts[0].promised_amount)
        failed = [entry for entry in logs if entry["event"] == "a strategy failed"]
        assert failed
        assert all(entry["strategy"].endswith(":Own") for entry in failed)
        assert says in failed[0]["reason"]


LENGTHY = """
from cambist.codecs.messages.agent_messages import BidPart, BidStep, SolverBid


class Lengthy:
    def __init__(self, options, context):
        self.data = "0x" + "00" * options["bytes"]

    async def solve(self, request, market):
        step = BidStep(request.rfq, self.data)
        return [SolverBid((BidPart(order.order_hash, "1", (step,)),)) for order in market.orders]


class More(Lengthy): ...
"""


async def test_bids_that_no_answer_holds_together_cost_the_later_ones_alone(tmp_path: Path) -> None:
    name, nearly_half = own_module(tmp_path, LENGTHY), AGENT_ANSWER_BYTES_MAX // 2 // 2 - 1_000
    first, second = f"{name}:Lengthy", f"{name}:More"
    options = [f'[agent.options."{each}"]\nbytes = {nearly_half}\n' for each in (first, second)]
    text = f'strategies = ["{first}", "{second}", "firm_quotes"]\n' + "".join(options)
    async with running_agent(tmp_path, more=text) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        bids = (await agent.app.solver.solve(agent.request(sale))).bids
        assert [bid.parts[0].promised_amount for bid in bids][:2] == ["1", "1"]
        assert len(bids) == 3
        other = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        with capture_logs() as logs:
            bids = (await agent.app.solver.solve(agent.request(sale, other))).bids
        assert [bid.parts[0].order_hash for bid in bids] == [sale.shown.order_hash, other.shown.order_hash]
        assert len(decode_solve_response(encode(SolveResponse(bids))).bids) == 2
        (line,) = [line for line in logs if line["event"] == "an answer had too many bids"]
        assert line["left_out"] == 4


async def test_a_drain_waits_for_the_answer_of_a_round(tmp_path: Path) -> None:
    async with running_agent(tmp_path, more=with_own(tmp_path, fault="hangs")) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        bids: list[SolverBid] = []

        async def solve() -> None:
            bids.extend(await agent.solve(sale, round_ms=round(1_000 * LATE_ROUND_S)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(solve)
            await until(lambda: agent.app.chains[CHAIN_ID].makers.desk.statistics().filled == 1)
            agent.app.drain()
        assert len(bids) == 1
