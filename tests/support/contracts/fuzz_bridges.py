"""Bridges in a fuzz: orders that leave the chain, and the tokens that they hand over."""

from collections import Counter
from typing import TYPE_CHECKING

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    CctpTerms,
    input_of,
    output_of,
    pack_terms,
    parse_terms,
)
from cambist.codecs.contracts.abi import Dynamic, address_word, bytes_tail, encode, uint_word
from cambist.codecs.contracts.contract_events import OrderBridged, OrderSettled, decode_event
from cambist.codecs.eip712_orders.delta import SAME_CHAIN, AnyDeltaOrder, DeltaBridge, ExternalOrder
from cambist.config.errors import InvalidInput
from cambist.engine.chain.port import Receipt
from support.chain.world import HOUR_S, MOST, NOBODY

if TYPE_CHECKING:
    from support.contracts.contract_fuzz import Fuzz

FAR = 10


def a_bridge(fuzz: "Fuzz") -> DeltaBridge:
    """The bridge of an order: none in most cases, else Across, else one that the contracts refuse."""
    rng = fuzz.rng
    if rng.random() < 0.8:
        return SAME_CHAIN
    fee = BridgeFee(rng.choice((0, 1, 500, 400_000)), rng.choice((0, 1, 30_000)))
    bridge = DeltaBridge(
        SELECTORS[BridgeKind.ACROSS],
        FAR,
        b"\xfa" * 20,
        rng.choice((0, 0, 3, -3)),
        pack_terms(AcrossTerms(fee, HOUR_S, NOBODY, 0)),
    )
    if rng.random() < 0.9:
        return bridge
    burn = pack_terms(CctpTerms(fee, 2_000, 2))
    selector4, chain, scaling, data = rng.choice(
        (
            (rng.randbytes(4), FAR, 0, bridge.protocol_data),
            (bridge.protocol_selector, fuzz.world.chain.chain_id, 0, bridge.protocol_data),
            (bridge.protocol_selector, FAR, -31, bridge.protocol_data),
            (bridge.protocol_selector, FAR, 0, rng.randbytes(160)),
            (SELECTORS[BridgeKind.CCTP], FAR, 0, burn),
        )
    )
    return DeltaBridge(selector4, chain, b"\xfa" * 20, scaling, data)


def entering(order: AnyDeltaOrder, output: int) -> int:
    """Raw units that have to enter an order's bridge for `output` to arrive; `output` itself without one."""
    if isinstance(order, ExternalOrder) or order.bridge == SAME_CHAIN:
        return output
    try:
        return input_of(parse_terms(order.bridge).fee, order.bridge.scaling_factor, output)
    except InvalidInput:
        return output  # a bridge that the contracts refuse


def module_call(bridge: DeltaBridge, kind: BridgeKind, token: bytes, amount: int, thief: bytes) -> bytes:
    """Calldata of a call of the bridge module by somebody else than Delta, to its own benefit."""
    terms = encode(
        bridge.protocol_selector.ljust(32, b"\0"),
        uint_word(bridge.destination_chain_id),
        address_word(bridge.output_token),
        uint_word(bridge.scaling_factor % (MOST + 1)),
        bytes_tail(bridge.protocol_data),
    )
    its = address_word(thief)
    transfer = encode(its, its, address_word(token), uint_word(amount), Dynamic(terms))
    return SELECTORS[kind] + encode(Dynamic(transfer))


def check_bridged(
    fuzz: "Fuzz",
    receipt: Receipt,
    before: dict[tuple[bytes, bytes], int],
    after: dict[tuple[bytes, bytes], int],
) -> None:
    """Assert that the pool gained what orders handed over, each for its signed least, and nobody else did."""
    at, pool = fuzz.world.at, fuzz.world.spoke_pool
    gained: Counter[bytes] = Counter()
    settled: OrderSettled | None = None
    left: list[OrderBridged] = []
    for log in receipt.logs:
        event = decode_event(log.topics, log.data) if log.address == at.delta else None
        if isinstance(event, OrderBridged):
            left.append(event)
        elif isinstance(event, OrderSettled):
            settled = event
    for event in left:
        assert settled is not None
        assert settled.order_hash == event.order_hash
        assert settled.received == event.amount
        known = (fuzz.known | fuzz.twaps | fuzz.others)[event.order_hash]
        bridge: DeltaBridge = known.order.bridge
        fee = parse_terms(bridge).fee
        assert event.output == output_of(fee, bridge.scaling_factor, event.amount) > 0
        gained[settled.dest_token] += event.amount
        fuzz.did["bridged"] += 1
    for token in fuzz.tokens:
        assert after[pool, token] - before[pool, token] == gained[token]
        assert after[at.bridges, token] == 0
