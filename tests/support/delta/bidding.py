"""Rounds, bids and what simulations say of them, without a chain.

asked = a_round_order(1)                                   Alice sells 1 WETH for 2,400 USDC at least
one = a_proven("alpha", (asked, 2_500 * USDC_ONE))         what it promises, it does
decide([asked], [one], 0, {})

Orders that name a further contract, a vault or a handler, without a chain.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict

from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapOrder,
)
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.delta.bids.bids import Candidate, CandidatePart, RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven, SettlementOutcome
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.terms import next_part, terms_of

ALICE, WETH, USDC, DELTA = b"\xa1" * 20, b"\x0e" * 20, b"\x5d" * 20, b"\xde" * 20
ONE, USDC_ONE = 10**18, 10**6
DEADLINE_S = 1_800_000_000
SIGNATURE = b"\x51" * 64


def hash_of(number: int) -> bytes:
    """32 bytes that no other number has."""
    return hashlib.sha256(b"asked %d" % number).digest()


def a_delta_order(*, buys: bool = False, **changed: Any) -> DeltaOrder:
    """Sells 1 WETH for 2,400 USDC at least; or buys 2,500 USDC for 1.1 WETH at most."""
    order = DeltaOrder(
        owner=ALICE,
        beneficiary=ALICE,
        src_token=WETH,
        dest_token=USDC,
        src_amount=11 * ONE // 10 if buys else ONE,
        dest_amount=(2_500 if buys else 2_400) * USDC_ONE,
        expected_amount=ONE if buys else 2_500 * USDC_ONE,
        deadline=DEADLINE_S,
        kind=KIND_BUY if buys else KIND_SELL,
        nonce=1,
        partner_and_fee=0,
        permit=b"",
        metadata=b"",
        bridge=SAME_CHAIN,
    )
    return msgspec.structs.replace(order, **changed)


def a_twap() -> TwapOrder:
    """Sells 3 WETH in three slices, for 2,400 USDC each."""
    return TwapOrder(
        ALICE, ALICE, WETH, USDC, 2, 0, DEADLINE_S, 60, 3, 2_400 * USDC_ONE, 3 * ONE, b"", b"", SAME_CHAIN
    )


def a_round_order(
    number: int = 1,
    order: DeltaOrder | TwapOrder | None = None,
    *,
    buys: bool = False,
    filled: int = 0,
    **document: Any,
) -> RoundOrder:
    """An order of a round; the number makes its hash."""
    found = a_delta_order(buys=buys, nonce=number) if order is None else order
    kind = "TWAPOrder" if isinstance(found, TwapOrder) else "Order"
    part = next_part(found, filled)
    assert part is not None
    kept = DeltaDocument(kind, order_json(kind, found), SIGNATURE, **document)
    return RoundOrder(hash_of(number), found, kept, terms_of(found), part)


def a_candidate(
    agent: str,
    *parts: tuple[RoundOrder, int],
    arrival: int = 0,
    place: int = 0,
    calldata: bytes | None = None,
    amount: int | None = None,
) -> Candidate:
    """A bid with what it promises for each order; of one order alone, maybe for a part of that amount."""
    return Candidate(
        agent,
        arrival,
        10 * arrival,
        place,
        tuple(
            CandidatePart(
                asked,
                asked.part if amount is None else asked.part_of(amount),
                promised,
                0,
                0,
                (SettlementStep(USDC, 1, b""),),
                (),
            )
            for asked, promised in parts
        ),
        f"{agent}:{arrival}:{place}".encode() if calldata is None else calldata,
    )


def a_proven(
    agent: str,
    *parts: tuple[RoundOrder, int],
    gas: int = 200_000,
    better: Iterable[int] = (),
    **candidate: Any,
) -> Proven:
    """A bid that keeps what it promises, and does `better` for the user by so much, part by part."""
    extra = [*better, *[0] * len(parts)]
    outcomes = []
    found = a_candidate(agent, *parts, **candidate)
    for part, more in zip(found.parts, extra, strict=False):
        sells = part.asked.terms.side is Side.SELL
        outcomes.append(
            SettlementOutcome(part.part.src_amount, part.promised + more, gas)
            if sells
            else SettlementOutcome(part.promised - more, part.part.dest_amount, gas)
        )
    return Proven(found, tuple(outcomes))


VAULT, HANDLER, RELAYER = b"\x7a" * 20, b"\x4a" * 20, b"\x4e" * 20


def a_productive_order(**changed: Any) -> ProductiveOrder:
    """Sells 1 WETH out of a vault, of which there are 3 shares for 4 WETH; `changed` are members."""
    members = asdict(a_delta_order())
    del members["kind"]
    terms: dict[str, Any] = {"strategy": VAULT, "shares": 10**18, "use_shares": True}
    return ProductiveOrder(**members | terms | changed)


def an_external_order(*, buys: bool = False, **changed: Any) -> ExternalOrder:
    """Sells 1 WETH by a handler for 2,400 USDC; or buys 2,500 USDC for 1.1 WETH at most, 1 expected."""
    members = asdict(a_delta_order(buys=buys))
    del members["beneficiary"], members["bridge"]
    terms: dict[str, Any] = {"handler": HANDLER, "data": b"\1"}
    return ExternalOrder(**members | terms | changed)


def asked_for(order: ProductiveOrder | ExternalOrder, number: int = 1) -> RoundOrder:
    """An order of a round; the number makes its hash."""
    kind = type(order).__name__
    part = next_part(order, 0)
    assert part is not None
    kept = DeltaDocument(kind, order_json(kind, order), SIGNATURE)
    return RoundOrder(hash_of(number), order, kept, terms_of(order), part)
