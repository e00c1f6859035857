"""Rows that the logs of our contracts make."""

import json
from importlib.resources import files

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts import contract_events as events
from cambist.config.errors import NodeContradiction, NodeFault
from cambist.engine.chain.index.applied import (
    DELTA_TOPICS,
    RFQ_TOPICS,
    IndexedContracts,
    read_events,
    rows_of,
)
from cambist.engine.chain.port import Log
from cambist.engine.store import rows, tables
from cambist.engine.store.rows import amount32
from support.chain.indexing import (
    CONTRACTS,
    DELTA,
    RFQ,
    a_cancellation,
    a_fill_event,
    a_settlement,
)
from support.chain.log_emitter import Record, record
from support.store.stores import ALICE, BOB, USDC, WETH, hash_of

BLOCK, TX = b"\xbb" * 32, b"\x77" * 32
PLACE = (1, BLOCK, TX, 3)
OF_NO_ORDER = {
    "AgentCallerCreated", "CapChanged", "NativeDeposited", "NativeWithdrawn", "OwnerChanged", "OwnerProposed",
    "PauseChanged", "PauserChanged", "ProtocolChanged", "RelayerChanged",
}  # fmt: skip


def a_log(address: bytes, of: Record, *, index: int = 3, number: int = 9) -> Log:
    return Log(address, *of, number, BLOCK, TX, 0, index)


def kept(address: bytes, event: events.ContractEvent) -> list[tuple[tables.Table, object]]:
    found = read_events(CONTRACTS, [a_log(address, record(event))])
    return list(rows_of(1, found, {9: 1_000}))


def test_a_fill_and_a_cancellation_of_an_rfq_order_are_kept() -> None:
    fill = rows.OtcFill(*PLACE, 9, hash_of(1), ALICE, BOB, WETH, USDC, amount32(10), amount32(20), 1_000_000)
    assert kept(RFQ, a_fill_event()) == [(tables.OTC_FILL, fill)]
    cancel = rows.OtcCancel(*PLACE, 9, hash_of(1), ALICE, 1_000_000)
    assert kept(RFQ, a_cancellation()) == [(tables.OTC_CANCEL, cancel)]


def test_a_settlement_uses_its_nonce_once_it_is_closed() -> None:
    def fill(*, is_closed: bool) -> rows.DeltaFill:
        amounts = amount32(10), amount32(20), 1_000_000, amount32(10)
        return rows.DeltaFill(*PLACE, 9, hash_of(1), None, *amounts, is_closed)

    used = rows.UsedNonce(1, ALICE, amount32(1), TX, 9, hash_of(1))
    assert kept(DELTA, a_settlement(is_closed=False)) == [(tables.DELTA_FILL, fill(is_closed=False))]
    assert kept(DELTA, a_settlement()) == [
        (tables.DELTA_FILL, fill(is_closed=True)),
        (tables.NONCE_USED, used),
    ]
    given_up = rows.UsedNonce(1, ALICE, amount32(1), TX, 9, None)
    assert kept(DELTA, events.NonceInvalidated(ALICE, 1)) == [(tables.NONCE_USED, given_up)]


def test_what_was_handed_to_a_bridge_is_kept() -> None:
    bridged = events.OrderBridged(hash_of(1), b"\xaa\xbb\xcc\xdd", 10, USDC, 7, 6, 5)
    sent = rows.BridgeTransfer(
        *PLACE, 9, hash_of(1), b"\xaa\xbb\xcc\xdd", 10, USDC, amount32(7), amount32(6), amount32(5), 1_000_000
    )
    assert kept(DELTA, bridged) == [(tables.BRIDGE_TRANSFER, sent)]
    ((_, far),) = kept(DELTA, replace(bridged, destination_chain_id=2**256 - 1))
    assert far == replace(sent, destination_chain_id=rows.NEVER_S)


def test_pre_signatures_and_cancellations_of_many_are_kept_and_a_fee_is_an_event_alone() -> None:
    signed = rows.PreSignature(*PLACE, 9, hash_of(1), ALICE, False, 1_000_000)
    assert kept(DELTA, events.OrderPreSigned(hash_of(1), ALICE, False)) == [(tables.PRE_SIGNATURE, signed)]
    for told, until_s in ((7, 7), (rows.NEVER_S, rows.NEVER_S), ((1 << 128) - 1, rows.NEVER_S)):
        until = rows.OtcCancelUntil(*PLACE, 9, ALICE, until_s, 1_000_000)
        assert kept(RFQ, events.OrdersCancelledUntil(ALICE, told)) == [(tables.OTC_CANCEL_UNTIL, until)]
    fee = a_log(DELTA, record(events.FeeAccrued(hash_of(1), BOB, USDC, 7, True)))
    (event,) = read_events(CONTRACTS, [fee])
    assert event.event == events.FeeAccrued(hash_of(1), BOB, USDC, 7, True)
    assert rows_of(1, [event], {9: 1_000}) == []


def test_a_nonce_is_kept_as_the_first_log_that_used_it() -> None:
    both = [
        a_log(DELTA, record(a_settlement()), index=1),
        a_log(DELTA, record(events.NonceInvalidated(ALICE, 1)), index=2, number=10),
    ]
    made = rows_of(1, read_events(CONTRACTS, both), {9: 1_000, 10: 1_012})
    assert [row for table, row in made if table is tables.NONCE_USED] == [
        rows.UsedNonce(1, ALICE, amount32(1), TX, 9, hash_of(1))
    ]


@pytest.mark.parametrize(
    ("address", "event"),
    [(RFQ, a_settlement()), (DELTA, a_fill_event()), (b"\x99" * 20, a_fill_event())],
)
def test_an_event_of_another_contract_is_nobodys(address: bytes, event: events.ContractEvent) -> None:
    assert read_events(CONTRACTS, [a_log(address, record(event))]) == []


def test_a_log_of_ours_that_is_not_as_it_should_be_is_the_nodes_fault() -> None:
    topics, data = record(a_fill_event())
    with pytest.raises(NodeContradiction, match=r"foreign log: log 3 of block 9: .*OrderFilled") as caught:
        read_events(CONTRACTS, [a_log(RFQ, (topics, data[:-1]))])
    assert caught.value.fault is NodeFault.FOREIGN_LOG


@pytest.mark.parametrize(
    ("name", "kept_topics", "of_no_order"),
    [
        ("Rfq", RFQ_TOPICS, set()),
        ("Delta", DELTA_TOPICS, OF_NO_ORDER),
    ],
)
def test_every_event_of_the_contracts_about_orders_is_asked_for(
    name: str, kept_topics: tuple[bytes, ...], of_no_order: set[str]
) -> None:
    path = files("cambist.engine.chain") / "contracts" / "artifacts" / f"{name}.json"
    abi = json.loads(path.read_text(encoding="utf-8"))["abi"]
    events_of_it = {
        f"{one['name']}({','.join(member['type'] for member in one['inputs'])})"
        for one in abi
        if one["type"] == "event" and one["name"] not in of_no_order
    }
    assert {events.topic(signature) for signature in events_of_it} == set(kept_topics)


def test_a_chain_without_one_of_the_contracts_asks_for_the_other_alone() -> None:
    rfq, delta = IndexedContracts(rfq=RFQ).filter(), IndexedContracts(delta=DELTA).filter()
    assert (rfq.addresses, delta.addresses) == ((RFQ,), (DELTA,))
    fill, settlement = (a_log(RFQ, record(a_fill_event())), a_log(DELTA, record(a_settlement())))
    assert [rfq.matches(fill), rfq.matches(settlement)] == [True, False]
    assert [delta.matches(fill), delta.matches(settlement)] == [False, True]
