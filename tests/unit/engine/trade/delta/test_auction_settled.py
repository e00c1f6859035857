"""Outcomes of the settlements that closed rounds started, as the store tells them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.messages.auction_messages import AuctionedOrder, AuctionSettlement
from cambist.codecs.messages.vocabulary import Side
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.rows import (
    ChainIntent,
    ChainTx,
    DeltaFill,
    Effect,
    EffectState,
    IntentState,
    TxStatus,
    amount32,
)
from cambist.engine.store.tables import CHAIN_INTENT, CHAIN_TX, DELTA_FILL, EFFECT, Table
from cambist.engine.store.units import Done, Unit, new, put
from cambist.engine.trade.delta.orders.life import CANCEL, SETTLE
from cambist.engine.trade.delta.settlement import auction_settled
from cambist.engine.trade.delta.settlement.auction_settled import with_settlements
from cambist.engine.trade.delta.settlement.settling import Settlement
from support.store.stores import NOW_MS, Engine, a_relay_intent, a_transaction, hash_of

ROUND, ORDER, TX = 7, hash_of(1), hash_of(90)
_S = IntentState


def an_order(order_hash: bytes = ORDER) -> AuctionedOrder:
    """An order in a round's record, without outcomes."""
    return AuctionedOrder(
        order_hash=to_hex(order_hash),
        order_id="id",
        side=Side.SELL,
        src_token="",
        dest_token="",
        src_amount="1",
        dest_amount="2",
        winner="ann",
        runners_up=(),
        bids=(),
        bids_left_out=0,
    )


def an_effect(
    name: str,
    *,
    order_hash: bytes = ORDER,
    kind: str = SETTLE,
    at_ms: int = 0,
    state: EffectState = EffectState.INTENDED,
    **settlement: Any,
) -> Effect:
    """A settlement of an order, by an agent of the effect's name."""
    body: dict[str, Any] = {"key": name, "agent": name, "auction_id": ROUND, "amount": "30", "promised": "20"}
    found = Settlement(data=b"", gas=1, deadline_s=1, **body | settlement)
    payload, at_ms = msgspec.msgpack.encode(found), NOW_MS + at_ms
    return Effect(name, order_hash, order_hash[0], kind, payload, at_ms, 1, state, 0, at_ms, at_ms)


def an_intent(key: str, state: IntentState, mined: bytes | None = None, reason: str = "") -> ChainIntent:
    return replace(a_relay_intent(key, state=state), mined_hash=mined, reason=reason)


def a_fill(order_hash: bytes = ORDER, tx_hash: bytes = TX, number: int = 0) -> DeltaFill:
    amounts = amount32(5), amount32(9), NOW_MS, amount32(5)
    return DeltaFill(1, hash_of(50), tx_hash, number, 10, order_hash, None, *amounts, is_closed=True)


async def told(folder: Path, rows: list[Any], *orders: tuple[int, AuctionedOrder]) -> list[Any]:
    """Settlements of each order of some rounds, by what is stored."""
    tables: dict[Any, Table] = {Effect: EFFECT, ChainIntent: CHAIN_INTENT, ChainTx: CHAIN_TX}
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        for row in rows:
            written = put(DELTA_FILL, row) if isinstance(row, DeltaFill) else new(tables[type(row)], row)
            assert await store.write(Unit((written,))) == Done()
        found = await with_settlements(store, orders)
    assert [replace(order, settlements=()) for order in found] == [order for _, order in orders]
    return [order.settlements for order in found]


@pytest.mark.parametrize(
    ("effect_state", "intent", "state", "tx_hash", "detail"),
    [
        (EffectState.INTENDED, None, "settling", None, ""),
        (EffectState.FAILED, None, "notSent", None, ""),
        (EffectState.DONE, None, "notSent", None, ""),
        (EffectState.INTENDED, an_intent("ann", _S.WAITING, reason="soon"), "settling", None, "soon"),
        (EffectState.INTENDED, an_intent("ann", _S.PENDING), "settling", None, ""),
        (EffectState.FAILED, an_intent("ann", _S.PENDING), "notSent", None, ""),
        (EffectState.INTENDED, an_intent("ann", _S.MINED, hash_of(8)), "settled", hash_of(8), ""),
        (EffectState.DONE, an_intent("ann", _S.FINAL, hash_of(8)), "settled", hash_of(8), ""),
        (EffectState.INTENDED, an_intent("ann", _S.REVERTED, TX, "no"), "reverted", TX, "no"),
        (EffectState.FAILED, an_intent("ann", _S.FAILED, TX, "no"), "reverted", TX, "no"),
        (EffectState.FAILED, an_intent("ann", _S.FAILED, None, "late"), "notSent", None, "late"),
        (EffectState.FAILED, an_intent("ann", _S.CANCELLED, None, "late"), "notSent", None, "late"),
    ],
)
async def test_a_settlement_has_the_state_of_its_intent_else_of_its_effect(
    tmp_path: Path,
    effect_state: EffectState,
    intent: ChainIntent | None,
    state: str,
    tx_hash: bytes | None,
    detail: str,
) -> None:
    rows = [an_effect("ann", state=effect_state), *([] if intent is None else [intent])]
    expected = AuctionSettlement(
        agent="ann",
        state=state,
        promised_amount="20",
        simulated_amount="30",
        settled_amount=None,
        tx_hash=None if tx_hash is None else to_hex(tx_hash),
        detail=detail,
    )
    assert await told(tmp_path, rows, (ROUND, an_order())) == [(expected,)]


@pytest.mark.parametrize(("is_purchase", "amount"), [(False, "9"), (True, "5")])
async def test_a_mined_settlement_has_the_amount_of_its_own_fill(
    tmp_path: Path, is_purchase: bool, amount: str
) -> None:
    """Other orders of the transaction, and other transactions of the order, have fills too."""
    rows = [an_effect("ann", is_purchase=is_purchase), an_intent("ann", IntentState.MINED, TX)]
    others = [replace(a_fill(number=1), tx_hash=hash_of(91)), a_fill(hash_of(2), number=2)]
    rows += [replace(fill, spent=amount32(1), received=amount32(1)) for fill in others]
    ((without,),) = await told(tmp_path, rows, (ROUND, an_order()))
    assert without.settled_amount is None
    (tmp_path / "again").mkdir()
    ((settlement,),) = await told(tmp_path / "again", [*rows, a_fill()], (ROUND, an_order()))
    assert settlement.settled_amount == amount


async def test_each_round_of_an_order_has_its_own_settlements_in_the_sequence_of_their_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The intents are read two at a time."""
    monkeypatch.setattr(auction_settled, "IDS_MAX", 2)
    rows = [
        an_effect("second", at_ms=20),
        an_effect("third", at_ms=30),
        an_effect("first", at_ms=10),
        an_effect("of another round", auction_id=8),
        an_effect("of another order", order_hash=hash_of(2)),
        an_effect("no settlement", kind=CANCEL),
        *(an_intent(key, IntentState.FINAL, TX) for key in ("first", "second", "third", "of another order")),
    ]
    asked = [(8, an_order()), (ROUND, an_order()), (ROUND, an_order(hash_of(2))), (9, an_order())]
    found = await told(tmp_path, rows, *asked)
    assert [[(one.agent, one.state) for one in settlements] for settlements in found] == [
        [("of another round", "settling")],
        [("first", "settled"), ("second", "settled"), ("third", "settled")],
        [("of another order", "settled")],
        [],
    ]


async def test_crossed_orders_have_the_outcome_of_the_one_intent_that_they_share(tmp_path: Path) -> None:
    rows = [
        an_effect("ann"),
        an_effect("hers", order_hash=hash_of(2), key="ann", agent="ann"),
        an_intent("ann", IntentState.MINED, TX),
        a_fill(),
        replace(a_fill(hash_of(2), number=1), received=amount32(8)),
    ]
    found = await told(tmp_path, rows, (ROUND, an_order()), (ROUND, an_order(hash_of(2))))
    assert [[(one.state, one.settled_amount) for one in settlements] for settlements in found] == [
        [("settled", "9")],
        [("settled", "8")],
    ]


@pytest.mark.parametrize(
    ("state", "expected"), [(IntentState.PENDING, "settled"), (IntentState.WAITING, "settling")]
)
async def test_a_log_of_a_pending_settlement_shows_that_it_is_mined(
    tmp_path: Path, state: IntentState, expected: str
) -> None:
    """The indexer has stored the log, and the relayer has not noted its transaction yet."""
    sent = replace(a_transaction("ann", nonce=1, status=TxStatus.SIGNED), tx_hash=TX)
    rows = [an_effect("ann"), an_intent("ann", state), sent, a_fill()]
    ((settlement,),) = await told(tmp_path, rows, (ROUND, an_order()))
    hash_and_amount = (to_hex(TX), "9") if expected == "settled" else (None, None)
    assert (settlement.state, settlement.tx_hash, settlement.settled_amount) == (expected, *hash_and_amount)


async def test_another_transaction_says_nothing_about_a_pending_settlement(tmp_path: Path) -> None:
    sent = replace(a_transaction("ann", nonce=1, status=TxStatus.SIGNED), tx_hash=hash_of(77))
    rows = [an_effect("ann"), an_intent("ann", IntentState.PENDING), sent, a_fill()]
    ((settlement,),) = await told(tmp_path, rows, (ROUND, an_order()))
    assert (settlement.state, settlement.tx_hash) == ("settling", None)
