"""Answers of agents: bids that become candidates, and refusals with their texts."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.delta_calldata import (
    CrossedOrder,
    Execution,
    SettlementStep,
    agent_id,
    settle,
    settle_crossed,
    settle_twap,
)
from cambist.codecs.messages.agent_messages import Notice
from cambist.config.errors import InvalidInput
from cambist.config.limits import RELAY_DATA_BYTES_MAX
from cambist.engine.trade.delta.bids.bids import (
    Answer,
    Candidate,
    Rejection,
    answer_of,
    read_answer,
    shown,
    sorted_out,
)
from support.delta.bidding import (
    ONE,
    SIGNATURE,
    USDC_ONE,
    a_delta_order,
    a_round_order,
    a_twap,
    hash_of,
)

SALE, PURCHASE, OTHER = a_round_order(1), a_round_order(2, buys=True), a_round_order(3)
SLICED = a_round_order(4, a_twap())
CHOSEN = a_round_order(5, include_agents=("beta",))
SHUNNED = a_round_order(6, exclude_agents=("alpha",))
ROUND = {one.order_hash: one for one in (SALE, PURCHASE, OTHER, SLICED, CHOSEN, SHUNNED)}
TARGET = "0x" + "77" * 20
STEP = {"target": TARGET, "data": "0xabcd", "gas": 100_000}
FAIR = 2_500 * USDC_ONE


def part(number: int, promised: object = FAIR, **changed: Any) -> dict[str, Any]:
    told = promised if promised is None else str(promised)
    return {"orderHash": "0x" + hash_of(number).hex(), "promisedAmount": told, "steps": [STEP]} | changed


ALPHA = agent_id("alpha")


def read(*bids: Any, agent: str = "alpha") -> tuple[tuple[Candidate, ...], tuple[Rejection, ...]]:
    raw = msgspec.json.encode({"bids": [{"parts": list(bid)} for bid in bids]})
    return sorted_answer(answer_of(agent, 3, 120, raw))


def sorted_answer(answer: Answer) -> tuple[tuple[Candidate, ...], tuple[Rejection, ...]]:
    steps = sorted_out(read_answer(answer, ROUND))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            candidates, rejections = end.value
            return tuple(candidates), tuple(rejections)


def refusal(*parts: Any) -> Rejection:
    candidates, (rejection,) = read(parts)
    assert candidates == ()
    assert (rejection.agent, rejection.arrived_ms) == ("alpha", 120)
    assert rejection.detail.startswith("bids[0]: ")
    return rejection


def test_a_bid_on_a_sale_is_settled_by_settle_with_what_was_signed() -> None:
    (candidate,), rejections = read([part(1, leftovers=[TARGET], given="5", paid="6")])
    assert rejections == ()
    steps = (SettlementStep(bytes.fromhex("77" * 20), 100_000, b"\xab\xcd"),)
    execution = Execution(FAIR, 0, steps, (bytes.fromhex("77" * 20),), ALPHA)
    assert candidate.calldata == settle(a_delta_order(nonce=1), SIGNATURE, ONE, execution)
    assert (candidate.agent, candidate.arrival, candidate.arrived_ms, candidate.place) == ("alpha", 3, 120, 0)
    assert candidate.parts[0].promised == FAIR


def test_a_purchase_gives_what_the_bid_says() -> None:
    (candidate,), _ = read([part(2, ONE, given=str(ONE))])
    execution = Execution(
        ONE, ONE, (SettlementStep(bytes.fromhex("77" * 20), 100_000, b"\xab\xcd"),), (), ALPHA
    )
    order = a_delta_order(buys=True, nonce=2)
    assert candidate.calldata == settle(order, SIGNATURE, FAIR, execution)


def test_a_slice_is_settled_by_settle_twap() -> None:
    (candidate,), _ = read([part(4, steps=[])])
    assert candidate.calldata == settle_twap(a_twap(), SIGNATURE, Execution(FAIR, 0, (), (), ALPHA))


def test_several_parts_are_a_crossing() -> None:
    (candidate,), _ = read(
        [part(1, paid=str(FAIR), steps=[]), part(2, ONE, given=str(ONE), paid="7", steps=[])]
    )
    assert candidate.is_crossing
    assert candidate.calldata == settle_crossed(
        [
            CrossedOrder(a_delta_order(nonce=1), SIGNATURE, ONE, Execution(FAIR, 0, (), (), ALPHA), FAIR),
            CrossedOrder(
                a_delta_order(buys=True, nonce=2), SIGNATURE, FAIR, Execution(ONE, ONE, (), (), ALPHA), 7
            ),
        ]
    )


def test_a_bid_that_cannot_be_read_does_not_cost_the_others() -> None:
    candidates, (rejection,) = read([part(1)], [{"parts": "many"}], [part(3)])
    assert [candidate.place for candidate in candidates] == [0, 2]
    assert (rejection.notice, rejection.orders) == (Notice.MALFORMED, {})
    assert rejection.detail.startswith("bids[1]: ")


def test_bids_are_read_one_by_one() -> None:
    raw = msgspec.json.encode({"bids": [{"parts": [part(1)]}, 7]})
    found = read_answer(answer_of("alpha", 0, 5, raw), ROUND)
    assert isinstance(next(found), Candidate)
    assert isinstance(next(found), Rejection)


def test_each_bid_stands_for_itself() -> None:
    candidates, rejections = read([part(1)], [part(1, "x")], [part(3)], [part(9)])
    assert [candidate.place for candidate in candidates] == [0, 2]
    assert [(one.notice, one.detail[:7]) for one in rejections] == [
        (Notice.MALFORMED, "bids[1]"),
        (Notice.MALFORMED, "bids[3]"),
    ]
    assert [one.orders for one in rejections] == [{hash_of(1): None}, {}]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"bids":{}}', b'{"bids":[],"notReached":["0x12"]}', b"\xff"]
)
def test_what_is_no_answer_is_told(raw: bytes) -> None:
    with pytest.raises(InvalidInput) as raised:
        answer_of("alpha", 0, 5, raw)
    assert raised.value.detail


@pytest.mark.parametrize("raw", [b'{"bids":[{"parts":[]}]}', b'{"bids":[{"parts":[{}]}]}'])
def test_a_bid_that_cannot_be_read_is_one_rejection(raw: bytes) -> None:
    candidates, (rejection,) = sorted_answer(answer_of("alpha", 0, 5, raw))
    assert candidates == ()
    assert (rejection.notice, rejection.orders) == (Notice.MALFORMED, {})
    assert rejection.detail


def test_an_agent_says_which_orders_it_did_not_reach() -> None:
    raw = msgspec.json.encode({"bids": [], "notReached": ["0x" + hash_of(1).hex(), "0x" + hash_of(9).hex()]})
    assert answer_of("alpha", 0, 5, raw).not_reached == {hash_of(1), hash_of(9)}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([part(9)], "parts[0].orderHash: expected an order of the round"),
        ([part(1, orderHash="0x12")], "parts[0].orderHash: expected 0x and 64 hexadecimal digits"),
        ([part(1, orderHash="12")], "parts[0].orderHash"),
        ([part(5)], "parts[0].orderHash: expected an order of the round that admits the agent"),
        ([part(6)], "parts[0].orderHash: expected an order of the round that admits the agent"),
        ([part(1), part(1)], "an order may stand only once in a bid"),
        (
            [part(1), part(4)],
            "parts[1].orderHash: expected an order of type Order: no other type can be crossed",
        ),
        ([part(1, "-1")], "parts[0].promisedAmount"),
        ([part(1, 1 << 256)], "parts[0].promisedAmount"),
        ([part(2, ONE, given="1e18")], "parts[0].given"),
        (
            [part(2, ONE, given=str(11 * ONE // 10 + 1))],
            "parts[0].given: expected at most 1100000000000000000",
        ),
        ([part(1, paid="x")], "parts[0].paid"),
        ([part(1, leftovers=["0x12"])], "parts[0].leftovers[0]"),
        ([part(1, steps=[STEP, STEP | {"target": "0x12"}])], "parts[0].steps[1].target"),
        ([part(1, steps=[STEP | {"data": "0x1"}])], "parts[0].steps[0].data"),
        ([part(1, steps=[STEP | {"gas": 5_000_001}])], "parts[0].steps[0].gas: expected at most 5000000"),
        ([part(1, steps=[STEP | {"data": "0x" + "00" * RELAY_DATA_BYTES_MAX}])], "bytes of calldata"),
        (
            [
                part(number, steps=[STEP | {"data": "0x" + "00" * (RELAY_DATA_BYTES_MAX // 2)}])
                for number in (1, 3)
            ],
            f"at most {RELAY_DATA_BYTES_MAX} bytes of calldata",
        ),
    ],
)
def test_what_makes_no_sense_is_malformed_and_named(parts: list[Any], words: str) -> None:
    rejection = refusal(*parts)
    assert rejection.notice is Notice.MALFORMED
    assert words in rejection.detail
    assert len(rejection.detail) < 400


def test_the_largest_settlement_that_fits_is_taken() -> None:
    room = RELAY_DATA_BYTES_MAX - len(read([part(1, steps=[STEP | {"data": "0x"}])])[0][0].calldata)
    fits = "0x" + "00" * (room // 32 * 32)
    candidates, _ = read([part(1, steps=[STEP | {"data": fits}])])
    assert [len(one.calldata) for one in candidates] == [RELAY_DATA_BYTES_MAX - room % 32]
    _, (rejection,) = read([part(1, steps=[STEP | {"data": fits + "00"}])])
    assert rejection.notice is Notice.MALFORMED


@pytest.mark.parametrize(
    ("number", "promised", "words"),
    [
        (1, 2_400 * USDC_ONE - 1, "parts[0].promisedAmount: expected at least 2400000000, got 2399999999"),
        (4, 2_400 * USDC_ONE - 1, "expected at least 2400000000"),
        (2, 11 * ONE // 10 + 1, "expected at most 1100000000000000000, got 1100000000000000001"),
    ],
)
def test_a_promise_beyond_the_limit_is_below_limit(number: int, promised: int, words: str) -> None:
    rejection = refusal(part(number, promised))
    assert rejection.notice is Notice.BELOW_LIMIT
    assert words in rejection.detail
    assert rejection.orders == {hash_of(number): promised}


@pytest.mark.parametrize(("number", "promised"), [(1, 2_400 * USDC_ONE), (2, 11 * ONE // 10), (2, 0)])
def test_a_promise_at_the_limit_is_taken(number: int, promised: int) -> None:
    candidates, rejections = read([part(number, promised)])
    assert (len(candidates), rejections) == (1, ())


def test_an_agent_that_the_order_names_may_bid() -> None:
    candidates, _ = read([part(5)], [part(6)], agent="beta")
    assert len(candidates) == 2


def test_agents_are_shown_what_is_asked_for_and_nothing_that_is_signed() -> None:
    told = msgspec.json.decode(msgspec.json.encode(shown(SLICED)))
    assert told == {
        "orderHash": "0x" + hash_of(4).hex(),
        "orderType": "TWAPOrder",
        "side": "SELL",
        "owner": told["owner"],
        "srcToken": told["srcToken"],
        "destToken": told["destToken"],
        "srcAmount": str(ONE),
        "destAmount": str(2_400 * USDC_ONE),
        "expectedAmount": "0",
        "partnerAndFee": "0",
        "deadline": 1_800_000_000,
    }
    assert told["owner"].lower() == "0x" + "a1" * 20
    assert SIGNATURE.hex() not in str(told)
