"""Reads from the store the outcomes of the settlements that closed auction rounds started.

    an order of a round --> its effects `settle` of that round --> the relayer's intents --> the logs

No table stores these outcomes: a settlement's promised amount is in its stored effect, and its result in its
log on chain. The indexer may store that log before the relayer notes that its transaction is mined; a log of
one of the intent's transactions then says so.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from .....codecs.messages.auction_messages import AuctionedOrder, AuctionSettlement
from .....crypto.hexadecimal import parse_hex, to_hex
from ....store.queries import IDS_MAX, among
from ....store.rows import ChainIntent, DeltaFill, Effect, EffectState, IntentState
from ....store.store import Store
from ....store.tables import CHAIN_INTENT, CHAIN_TX, DELTA_FILL, EFFECT, Table
from ....store.units import row_of
from ..orders.life import SETTLE
from .settling import Settlement, settlement_in

_STATES = {IntentState.MINED: "settled", IntentState.FINAL: "settled", IntentState.REVERTED: "reverted"}
_UNDER_WAY, _NOT_SENT = "settling", "notSent"


async def with_settlements(
    store: Store, orders: Sequence[tuple[int, AuctionedOrder]]
) -> tuple[AuctionedOrder, ...]:
    """Return orders of closed auction rounds with the outcomes of the settlements that each round started.

    Args:
        orders: pairs of (auction id, order in the record of that auction's round), at most IDS_MAX.

    Raises:
        StoreUnavailable: the outcomes cannot be read now.
    """
    hashes = sorted({parse_hex(order.order_hash, "orderHash") for _, order in orders})
    effect_rows, fill_rows = await store.read(
        among(EFFECT, "order_hash", hashes), among(DELTA_FILL, "order_hash", hashes)
    )
    # A round may have several settlements of an order: its winner's, and those of runners-up that follow a
    # failed one.
    found: dict[tuple[int, str], list[tuple[Effect, Settlement]]] = {}
    for values in effect_rows:
        effect: Effect = row_of(EFFECT, values)
        if effect.kind == SETTLE:
            settlement = settlement_in(effect)
            key = settlement.auction_id, to_hex(effect.order_hash)
            found.setdefault(key, []).append((effect, settlement))
    wanted = {
        settlement.key
        for auction_id, order in orders
        for _, settlement in found.get((auction_id, order.order_hash), ())
    }
    # The intents are read by the settlements' keys: crossed orders share the intent of one order's key.
    intents = await _rows_of_keys(store, CHAIN_INTENT, sorted(wanted))
    by_key: dict[str, ChainIntent] = {intent.effect_key: intent for intent in intents}
    fills: list[DeltaFill] = [row_of(DELTA_FILL, values) for values in fill_rows]
    by_transaction = {(fill.order_hash, fill.tx_hash): fill for fill in fills}
    # The intents first: one that is mined between the two reads counts as pending, and its log then shows it.
    pending = [key for key, intent in by_key.items() if intent.state is IntentState.PENDING]
    with_log = {fill.tx_hash for fill in fills}
    seen: dict[str, bytes] = {
        sent.effect_key: sent.tx_hash
        for sent in (await _rows_of_keys(store, CHAIN_TX, pending) if with_log else ())
        if sent.tx_hash in with_log
    }
    return tuple(
        [
            replace(
                order,
                settlements=tuple(
                    [
                        _auction_settlement(
                            effect,
                            settlement,
                            by_key.get(settlement.key),
                            seen.get(settlement.key),
                            by_transaction,
                        )
                        for effect, settlement in sorted(
                            found.get((auction_id, order.order_hash), ()), key=lambda pair: pair[0].created_ms
                        )
                    ]
                ),
            )
            for auction_id, order in orders
        ]
    )


async def _rows_of_keys(store: Store, table: Table, keys: Sequence[str]) -> list[Any]:
    """Read the rows of a table with an `effect_key` among the given ones, IDS_MAX keys at a time."""
    found: list[Any] = []
    for at in range(0, len(keys), IDS_MAX):
        (rows,) = await store.read(among(table, "effect_key", keys[at : at + IDS_MAX]))
        found += [row_of(table, values) for values in rows]
    return found


def _auction_settlement(
    effect: Effect,
    settlement: Settlement,
    intent: ChainIntent | None,
    seen: bytes | None,
    fills: Mapping[tuple[bytes, bytes], DeltaFill],
) -> AuctionSettlement:
    """Describe a settlement.

    Args:
        seen: hash of a pending intent's transaction of which a log is stored.
    """
    mined = seen if intent is None or intent.mined_hash is None else intent.mined_hash
    fill = None if mined is None else fills.get((effect.order_hash, mined))
    is_over = effect.state is not EffectState.INTENDED
    state = _NOT_SENT if is_over else _UNDER_WAY
    if intent is not None:
        state = _STATES.get(intent.state, state)
        if intent.state is IntentState.FAILED and mined is not None:  # the revert is final
            state = _STATES[IntentState.REVERTED]
    if fill is not None and seen is not None:
        state = _STATES[IntentState.MINED]
    return AuctionSettlement(
        agent=settlement.agent,
        state=state,
        promised_amount=settlement.promised,
        simulated_amount=settlement.amount,
        settled_amount=None if fill is None else str(settlement.amount_in(fill)),
        tx_hash=None if mined is None else to_hex(mined),
        detail="" if intent is None else intent.reason,
    )
