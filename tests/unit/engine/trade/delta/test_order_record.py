"""The record of an order: times, percentages, and its members before and after settlements."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    SAME_CHAIN,
    DeltaBridge,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.codecs.iso_time import iso_ms
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, Side
from cambist.codecs.messages.wire import encode
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.rows import DeltaFill, amount32
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.record import order_record
from cambist.engine.trade.delta.orders.transfers import OrderTransfer
from support.store.stores import (
    ALICE,
    BOB,
    NOW_MS,
    ONE,
    USDC,
    WETH,
    a_delta_order,
    a_refund_of,
    a_transfer,
    an_end,
    hash_of,
)

PARTIES = (ALICE, BOB, WETH, USDC)
SALE = DeltaOrder(*PARTIES, ONE, 2_400, 2_500, 2**40, 0, 1, 0, b"", b"", SAME_CHAIN)
PURCHASE = msgspec.structs.replace(SALE, kind=KIND_BUY)
TWAP = TwapOrder(*PARTIES, 1, 0, 2**40, 60, 3, 800, ONE, b"", b"", SAME_CHAIN)
TWAP_PURCHASE = TwapBuyOrder(*PARTIES, 1, 0, 2**40, 60, 3, 2_500, ONE, b"", b"", SAME_CHAIN)
NAMES = {DeltaOrder: "Order", TwapOrder: "TWAPOrder", TwapBuyOrder: "TWAPBuyOrder"}


def a_record(order: Any, *fills: DeltaFill, transfers: tuple[OrderTransfer, ...] = ()) -> dict[str, Any]:
    name = NAMES[type(order)]
    buys = isinstance(order, TwapBuyOrder) or getattr(order, "kind", 0) == KIND_BUY
    row = a_delta_order(
        owner=ALICE, kind=OnChainOrderType(name), side=Side.BUY if buys else Side.SELL, expires_s=2**40
    )
    record = order_record(row, DeltaDocument(name, order_json(name, order), b""), fills, transfers)
    told: dict[str, Any] = msgspec.json.decode(encode(record))
    return told


def a_fill(filled: int, spent: int, received: int, number: int = 1) -> DeltaFill:
    return DeltaFill(
        1, bytes(32), bytes([number]) * 32, 0, number, bytes(32), None, amount32(spent), amount32(received),
        NOW_MS, amount32(filled), False,
    )  # fmt: skip


# --- Shapes ---------------------------------------------------------------------------------------------


def test_a_sale() -> None:
    src, dest = to_checksum(WETH), to_checksum(USDC)
    before = a_record(SALE)
    assert before["input"] == {"chainId": 1, "token": src, "amount": str(ONE)}
    assert before["output"] == {
        "chainId": 1, "token": dest, "expectedAmount": "2500", "executedAmount": None, "minAmount": "2400",
    }  # fmt: skip
    after = a_record(SALE, a_fill(ONE // 4, ONE // 4, 700), a_fill(ONE, ONE * 3 // 4, 1_900, 2))
    assert after["input"] == before["input"]
    assert after["output"] == before["output"] | {"executedAmount": "2600"}
    assert after["transactions"] == [
        {
            "originTx": "0x" + "01" * 32, "destinationTx": "0x" + "01" * 32, "filledPercent": 25,
            "spentAmount": str(ONE // 4), "receivedAmount": "700",
        },
        {
            "originTx": "0x" + "02" * 32, "destinationTx": "0x" + "02" * 32, "filledPercent": 75,
            "spentAmount": str(ONE * 3 // 4), "receivedAmount": "1900",
        },
    ]  # fmt: skip


def test_a_purchase() -> None:
    before = a_record(PURCHASE)
    assert before["input"] == {
        "chainId": 1, "token": to_checksum(WETH), "expectedAmount": "2500", "executedAmount": None,
        "maxAmount": str(ONE),
    }  # fmt: skip
    assert before["output"] == {"chainId": 1, "token": to_checksum(USDC), "amount": "2400"}
    after = a_record(PURCHASE, a_fill(2_400, ONE // 2, 2_400))
    assert after["input"] == before["input"] | {"executedAmount": str(ONE // 2)}
    assert after["output"] == before["output"]
    assert after["transactions"][0]["filledPercent"] == 100


def test_a_twap() -> None:
    """A TWAP has no expected amount; its least output includes the remainder of its last slice."""
    record = a_record(TWAP, a_fill(1, ONE // 3, 900))
    assert record["input"]["amount"] == str(ONE)
    assert (record["output"]["expectedAmount"], record["output"]["executedAmount"]) == (None, "900")
    assert record["output"]["minAmount"] == "2401"
    assert record["transactions"][0]["filledPercent"] == 33.333333


def test_a_twap_purchase() -> None:
    record = a_record(TWAP_PURCHASE, a_fill(1, 5, 833), a_fill(2, 7, 833, 2))
    assert record["output"] == {"chainId": 1, "token": to_checksum(USDC), "amount": "2500"}
    assert (record["input"]["expectedAmount"], record["input"]["executedAmount"]) == (None, "12")
    assert record["input"]["maxAmount"] == str(ONE)


def test_what_all_have() -> None:
    record = a_record(msgspec.structs.replace(SALE, beneficiary=bytes(20)))
    assert record["owner"] == record["beneficiary"] == to_checksum(ALICE)
    assert record["order"]["owner"] == to_checksum(ALICE)
    assert a_record(SALE)["beneficiary"] == to_checksum(BOB)
    assert record["createdAt"] == record["updatedAt"] == "2023-11-14T22:13:20.001Z"
    assert record["expiresAt"] == "9999-12-31T23:59:59.999Z"
    assert (record["refunds"], record["transactions"], record["partner"]) == ([], [], "anon")
    assert record["status"] == OrderStatus.PENDING
    msgspec.convert(record | {"order": msgspec.Raw(b"{}")}, OrderRecord)


# --- Across chains --------------------------------------------------------------------------------------

OUTPUT = b"\x0d" * 20
BRIDGE = DeltaBridge(
    SELECTORS[BridgeKind.ACROSS],
    10,
    OUTPUT,
    0,
    pack_terms(AcrossTerms(BridgeFee(400, 3), 7_200, bytes(20), 0)),
)
BRIDGED_TWAP = msgspec.structs.replace(TWAP, bridge=BRIDGE)


def a_slice(number: int) -> tuple[DeltaFill, OrderTransfer]:
    """A settled slice with its transfer under way, whose log comes first in the same transaction."""
    transfer = a_transfer(a_delta_order(), block=number, amount=amount32(900), output=amount32(890))
    fill = a_fill(number, ONE // 3, 900, number)
    fill = msgspec.structs.replace(
        fill, block_hash=transfer.block_hash, tx_hash=transfer.tx_hash, log_index=transfer.log_index + 1
    )
    return fill, OrderTransfer(transfer)


def test_a_bridged_order_names_both_chains_and_counts_only_verified_deliveries() -> None:
    (first, sent), (second, other) = a_slice(1), a_slice(2)
    before = a_record(msgspec.structs.replace(SALE, bridge=BRIDGE))
    assert before["input"]["chainId"] == 1
    assert before["output"] == {
        "chainId": 10, "token": to_checksum(OUTPUT), "expectedAmount": "2500", "executedAmount": None,
        "minAmount": "2400",
    }  # fmt: skip
    under_way = a_record(BRIDGED_TWAP, first, second, transfers=(sent, other))
    assert under_way["output"]["executedAmount"] is None
    assert [(one["destinationTx"], one["receivedAmount"]) for one in under_way["transactions"]] == [
        (None, None)
    ] * 2
    assert [one["spentAmount"] for one in under_way["transactions"]] == [str(ONE // 3)] * 2
    arrived = msgspec.structs.replace(other, end=an_end(other.sent))
    after = a_record(BRIDGED_TWAP, first, second, transfers=(sent, arrived))
    assert after["output"]["executedAmount"] == "890"
    assert [(one["destinationTx"], one["receivedAmount"]) for one in after["transactions"]] == [
        (None, None),
        (to_hex(an_end(other.sent).end_tx or b""), "890"),
    ]


def test_a_purchase_across_chains_spends_on_the_origin() -> None:
    fill, sent = a_slice(1)
    record = a_record(msgspec.structs.replace(PURCHASE, bridge=BRIDGE), fill, transfers=(sent,))
    assert record["input"]["executedAmount"] == str(ONE // 3)
    assert record["output"] == {"chainId": 10, "token": to_checksum(OUTPUT), "amount": "2400"}


def test_two_settlements_of_one_transaction_have_the_transfers_before_them() -> None:
    (first, sent), (_, other) = a_slice(1), a_slice(2)
    second = msgspec.structs.replace(first, log_index=9)
    later = msgspec.structs.replace(
        other, sent=msgspec.structs.replace(other.sent, tx_hash=first.tx_hash, block_hash=first.block_hash)
    )
    arrived = msgspec.structs.replace(later, end=an_end(later.sent))
    record = a_record(BRIDGED_TWAP, first, second, transfers=(sent, arrived))
    assert [one["receivedAmount"] for one in record["transactions"]] == [None, "890"]


def test_a_refund() -> None:
    fill, sent = a_slice(1)
    back = msgspec.structs.replace(
        sent, end=an_end(sent.sent, is_delivered=False), refunds=(a_refund_of(sent.sent),)
    )
    record = a_record(BRIDGED_TWAP, fill, transfers=(back,))
    assert record["refunds"] == [
        {"tx": to_hex(hash_of(3_000_001)), "chainId": 1, "token": to_checksum(WETH), "amount": "900"}
    ]
    assert record["output"]["executedAmount"] is None
    assert record["transactions"][0]["destinationTx"] is None


# --- Percentages ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 10**20), min_size=1, max_size=12))
def test_percentages_of_a_filled_order_add_up(parts: list[int]) -> None:
    order = msgspec.structs.replace(SALE, src_amount=sum(parts))
    so_far, fills = 0, []
    for number, part in enumerate(parts):
        so_far += part
        fills.append(a_fill(so_far, part, 1, number % 255 + 1))
    row = a_delta_order(kind=OnChainOrderType.ORDER)
    document = DeltaDocument("Order", order_json("Order", order), b"")
    percents = [one.filled_percent for one in order_record(row, document, fills, ()).transactions]
    assert sum(percents) == Decimal(100)
    for percent, part in zip(percents, parts, strict=True):
        assert abs(percent - Decimal(100 * part) / order.src_amount) <= Decimal("0.000001")


# --- Times ----------------------------------------------------------------------------------------------


@given(st.integers(0, 253_402_300_799_999))
def test_times_as_python_writes_them(time_ms: int) -> None:
    expected = datetime.fromtimestamp(time_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert iso_ms(time_ms) == f"{expected}.{time_ms % 1_000:03d}Z"


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
        (1_099_511_627_776_000, "9999-12-31T23:59:59.999Z"),
        ((2**53 - 1) * 1_000, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_beyond_the_year_9999(time_ms: int, text: str) -> None:
    assert iso_ms(time_ms) == text
