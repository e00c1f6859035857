"""Benchmarks of an auction round (64 orders, bids of 8 agents) and of the chain logs of its settlements.

The baseline is the plain form of the same work: bids in lists, sorted by destination amount less gas; the
answer decoded by `json`, with a calldata encoder that walks words; for the logs, the sum of the fills. The
plain forms check, record and publish nothing: the ratio shows the cost of the venue's rules.
"""

import hashlib
import itertools
import json
from typing import Any

import msgspec

from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import KIND_SELL, SAME_CHAIN, DeltaOrder
from cambist.codecs.messages.agent_messages import BidPart, BidStep, SolverBid, SolveResponse
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.codecs.messages.wire import encode
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow, Effect, EffectState, amount32
from cambist.engine.trade.delta.auction.auction import decide
from cambist.engine.trade.delta.bids.bids import Candidate, CandidatePart, RoundOrder, answer_of, read_answer
from cambist.engine.trade.delta.bids.simulation import Proven, SettlementOutcome
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.life import SETTLE, DeltaFacts, step_from_logs
from cambist.engine.trade.delta.orders.terms import next_part, terms_of
from cambist.engine.trade.orders.order_units import effect_key

ORDERS, AGENTS, ROUNDS = 64, 8, 16
ONE, USDC = 10**18, 10**6
WETH_AT, USDC_AT, AGENT_AT = b"\x0e" * 20, b"\x5d" * 20, b"\xa9" * 20
GAS_PRICE_WEI = 10**9
WEI_OF_A_UNIT = 400_000_000  # of USDC
NOW_MS = 1_795_000_000_000
GAS = 200_000


def hash_of(number: int) -> bytes:
    return hashlib.sha256(b"order %d" % number).digest()


def round_order(number: int) -> RoundOrder:
    owner = hash_of(number)[:20]
    order = DeltaOrder(
        owner, owner, WETH_AT, USDC_AT, ONE, 2_400 * USDC, 2_500 * USDC, 1_900_000_000, KIND_SELL, number, 0,
        b"", b"", SAME_CHAIN,
    )  # fmt: skip
    part = next_part(order, 0)
    assert part is not None
    kept = DeltaDocument("Order", order_json("Order", order), bytes(64))
    return RoundOrder(hash_of(number), order, kept, terms_of(order), part)


def promised(number: int, agent: int, turn: int) -> int:
    """Promised amount of an agent's bid, different for each bid and not sorted by agent."""
    more = hashlib.sha256(b"%d %d %d" % (number, agent, turn)).digest()[:3]
    return 2_450 * USDC + int.from_bytes(more, "big")


def bids(orders: list[RoundOrder], turn: int) -> list[Proven]:
    found = []
    for agent in range(AGENTS):
        for place, order in enumerate(orders):
            amount = promised(place, agent, turn)
            part = CandidatePart(order, order.part, amount, 0, 0, (SettlementStep(USDC_AT, GAS, b""),), ())
            calldata = b"%d %d" % (agent, place)
            candidate = Candidate(f"agent-{agent}", agent, 10 * agent, place, (part,), calldata)
            found.append(Proven(candidate, (SettlementOutcome(ONE, amount, GAS + agent),)))
    return found


def gas_cost(wei: int) -> int:
    return -(-wei // WEI_OF_A_UNIT)


def bench_auction_decision(benchmark: Any) -> None:
    """Measure the decision on all orders of an auction round: winner, and rank of every bid."""
    orders = [round_order(number) for number in range(ORDERS)]
    rounds = [bids(orders, turn) for turn in range(ROUNDS)]
    costs = {order.order_hash: gas_cost for order in orders}
    decision = decide(orders, rounds[0], GAS_PRICE_WEI, costs)
    ranks = plain_ranks(plain_bids(0))
    for place, order in enumerate(orders):
        winner = decision.verdicts[order.order_hash].winner
        assert winner is not None
        assert winner.candidate.agent == ranks[place][0][0]
    following = itertools.cycle(rounds).__next__
    benchmark(lambda: decide(orders, following(), GAS_PRICE_WEI, costs))


def plain_bids(turn: int) -> list[list[tuple[str, int, int]]]:
    """Return the bids on each order of a round: (agent, promised destination amount, gas units)."""
    return [
        [(f"agent-{agent}", promised(place, agent, turn), GAS + agent) for agent in range(AGENTS)]
        for place in range(ORDERS)
    ]


def plain_ranks(by_order: list[list[tuple[str, int, int]]]) -> list[list[tuple[str, int, int]]]:
    return [
        sorted(some, key=lambda bid: (gas_cost(bid[2] * GAS_PRICE_WEI) - bid[1], bid[0])) for some in by_order
    ]


def bench_auction_decision_plain(benchmark: Any) -> None:
    following = itertools.cycle([plain_bids(turn) for turn in range(ROUNDS)]).__next__
    assert len(benchmark(lambda: plain_ranks(following()))) == ORDERS


def answers(orders: list[RoundOrder]) -> list[bytes]:
    """Encode an agent's answers to auction rounds; each has a bid of two steps for every order."""
    return [
        encode(
            SolveResponse(
                tuple(
                    SolverBid(
                        (
                            BidPart(
                                "0x" + order.order_hash.hex(),
                                str(promised(place, 0, turn)),
                                (
                                    BidStep("0x" + WETH_AT.hex(), "0xa9059cbb" + f"{turn:0128x}", GAS),
                                    BidStep("0x" + AGENT_AT.hex(), "0x5d1be9ba" + f"{place:0192x}", GAS),
                                ),
                            ),
                        )
                    )
                    for place, order in enumerate(orders)
                )
            )
        )
        for turn in range(ROUNDS)
    ]


def bench_auction_answer(benchmark: Any) -> None:
    """Measure the decoding of an agent's answer to 64 bids, with the calldata of their settlements."""
    orders = [round_order(number) for number in range(ORDERS)]
    by_hash = {order.order_hash: order for order in orders}
    made = [answer_of("agent-0", 0, 10, raw) for raw in answers(orders)]
    candidates = [
        candidate for candidate in read_answer(made[0], by_hash) if isinstance(candidate, Candidate)
    ]
    assert len(candidates) == ORDERS
    assert all(candidate.parts[0].steps[1].data in candidate.calldata for candidate in candidates)
    following = itertools.cycle(made).__next__
    benchmark(lambda: list(read_answer(following(), by_hash)))


def plain_answer(raw: bytes) -> list[bytes]:
    """Baseline: encode each bid's steps as ABI words, without order and signature, and without checks."""
    made = []
    for bid in json.loads(raw)["bids"]:
        words = []
        for step in bid["parts"][0]["steps"]:
            data = bytes.fromhex(step["data"][2:])
            words += [bytes.fromhex(step["target"][2:]).rjust(32, b"\0"), step["gas"].to_bytes(32, "big")]
            words += [len(data).to_bytes(32, "big"), data, bytes(-len(data) % 32)]
        made.append(int(bid["parts"][0]["promisedAmount"]).to_bytes(32, "big") + b"".join(words))
    return made


def bench_auction_answer_plain(benchmark: Any) -> None:
    following = itertools.cycle(answers([round_order(number) for number in range(ORDERS)])).__next__
    assert len(benchmark(lambda: plain_answer(following()))) == ORDERS


def row_of(number: int) -> DeltaOrderRow:
    order_hash = hash_of(number)
    return DeltaOrderRow(
        order_hash, order_hash[0], 31_337, order_hash[:20], amount32(number), OnChainOrderType.ORDER,
        OrderType.MARKET, Side.SELL, "anon", NOW_MS, 1_900_000_000, 2, OrderStatus.ACTIVE, NOW_MS,
        amount32(0), amount32(0), False,
    )  # fmt: skip


def fill_of(number: int) -> DeltaFill:
    return DeltaFill(
        31_337, b"\xb1" * 32, hash_of(number + ORDERS), 3, 100, hash_of(number), None, amount32(ONE),
        amount32(2_500 * USDC), NOW_MS, amount32(ONE), is_closed=True,
    )  # fmt: skip


def bench_told_by_chain(benchmark: Any) -> None:
    """Measure the change of 64 orders to COMPLETED after their settlements were read from the chain."""
    facts = []
    for number in range(ORDERS):
        row, fill = row_of(number), fill_of(number)
        effect = Effect(
            effect_key(row.order_hash, 2, SETTLE), row.order_hash, row.shard, SETTLE, b"", NOW_MS, 1,
            EffectState.INTENDED, 0, NOW_MS, NOW_MS,
        )  # fmt: skip
        facts.append((row, DeltaFacts((fill,), None, False, 90, None), [effect]))

    def completed() -> list[Any]:
        return [step_from_logs(row, fact, effects, 10, NOW_MS) for row, fact, effects in facts]

    steps = benchmark(completed)
    assert {step.after.status for step in steps} == {OrderStatus.COMPLETED}


def bench_told_by_chain_plain(benchmark: Any) -> None:
    rows = [(row_of(number), fill_of(number)) for number in range(ORDERS)]

    def completed() -> list[DeltaOrderRow]:
        return [
            msgspec.structs.replace(
                row, status=OrderStatus.COMPLETED, version=row.version + 1, updated_ms=NOW_MS,
                spent=amount32(int.from_bytes(fill.spent, "big")),
                received=amount32(int.from_bytes(fill.received, "big")),
            )
            for row, fill in rows
        ]  # fmt: skip

    assert len(benchmark(completed)) == ORDERS
