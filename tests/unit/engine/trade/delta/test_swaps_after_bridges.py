"""Orders with a swap on their destination: recognised by the account alone; logs that end them."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.bridges.arrivals import (
    ARRIVAL_PAID_OUT,
    ARRIVAL_SWAPPED,
    ArrivalTerms,
    arrival_address,
    pack_arrival,
)
from cambist.codecs.bridges.bridge_terms import SELECTORS, AcrossTerms, BridgeFee, BridgeKind, pack_terms
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.eip712_orders.delta import KIND_BUY, KIND_SELL, SAME_CHAIN, DeltaBridge, DeltaOrder
from cambist.config.errors import InvalidInput
from cambist.config.limits import ARRIVAL_UNTIL_MAX_S
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.port import Header, Log
from cambist.engine.store.rows import BridgeEndState, amount32
from cambist.engine.trade.delta.arriving.arrival_ends import ArrivedTransfer, arrived_in, ended_by
from cambist.engine.trade.delta.bridging.bridged_orders import BridgedOrder
from cambist.engine.trade.delta.bridging.origins import TransferParties
from cambist.engine.trade.delta.intake.swap_checks import swap_after
from cambist.engine.trade.delta.orders.arriving import arrival_code, arrival_of
from cambist.engine.trade.delta.orders.transfers import OrderTransfer
from support.store.stores import a_delta_order, a_transfer, an_end

ARRIVALS, ALICE, BOB, USDC, DAI = (bytes([number]) * 20 for number in range(0xA1, 0xA6))
TERMS = ArrivalTerms(ALICE, USDC, DAI, 2_000, 1_800_003_600, b"\x07" * 32)
ACCOUNT = arrival_address(ARRIVALS, TERMS, arrival_code())
BRIDGE = DeltaBridge(
    SELECTORS[BridgeKind.ACROSS],
    31_338,
    USDC,
    0,
    pack_terms(AcrossTerms(BridgeFee(0, 0), 7_200, bytes(20), 0)),
)
ORDER = DeltaOrder(
    ALICE, ACCOUNT, b"\xb1" * 20, b"\xb2" * 20, 10, 9, 9, 1_800_000_000, KIND_SELL, 1, 0, b"",
    pack_arrival(TERMS), BRIDGE,
)  # fmt: skip


def test_an_order_is_recognised_by_terms_and_account() -> None:
    assert arrival_of(ORDER, ARRIVALS) == TERMS


@pytest.mark.parametrize(
    "changed",
    [
        {"beneficiary": BOB},
        {"metadata": b""},
        {"metadata": pack_arrival(replace(TERMS, least=0))},
        {"bridge": SAME_CHAIN},
        {"bridge": replace(BRIDGE, output_token=DAI)},
    ],
)
def test_another_order_has_no_swap(changed: dict[str, Any]) -> None:
    assert arrival_of(replace(ORDER, **changed), ARRIVALS) is None


def test_another_contract_has_no_swap() -> None:
    assert arrival_of(ORDER, b"") is None
    assert arrival_of(ORDER, BOB) is None


LISTED = {token: SimpleNamespace(routed=token) for token in (USDC, DAI)}
WRAPPED = b"\x3e" * 20
LANES: Any = SimpleNamespace(
    swaps_at=lambda _: SimpleNamespace(
        arrivals=ARRIVALS, chain_id=31_338, tokens=SimpleNamespace(by_address=LISTED)
    ),
    unwraps=lambda bridge: bridge.output_token == WRAPPED,
)


def an_order(**terms: Any) -> DeltaOrder:
    """ORDER, with a swap of other terms."""
    changed = replace(TERMS, **terms)
    account = arrival_address(ARRIVALS, changed, arrival_code())
    return replace(ORDER, beneficiary=account, metadata=pack_arrival(changed))


@pytest.mark.parametrize("after_s", [0, ARRIVAL_UNTIL_MAX_S])
def test_a_swap_may_be_made_until_the_orders_deadline_and_a_day_after_it(after_s: int) -> None:
    assert swap_after(an_order(until=ORDER.deadline + after_s), LANES) == ARRIVALS


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"until": ORDER.deadline - 1}, "a swap until"),
        ({"until": ORDER.deadline + ARRIVAL_UNTIL_MAX_S + 1}, "a swap until"),
        ({"dest_token": BOB}, f"got '{to_checksum(BOB)}"),
        ({"dest_token": USDC}, f"got '{to_checksum(USDC)}"),  # what arrives anyway
        ({"beneficiary": bytes(20)}, "order.metadata"),
    ],
)
def test_a_swap_of_other_tokens_or_at_another_time_is_refused(terms: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        swap_after(an_order(**terms), LANES)


WRAP: dict[str, Any] = {"token": WRAPPED, "dest_token": WRAPPED, "until": 0}


def a_wrap(**terms: Any) -> DeltaOrder:
    """An order whose bridge brings native tokens that the owner wants wrapped."""
    return replace(an_order(**WRAP | terms), bridge=replace(BRIDGE, output_token=WRAPPED))


@pytest.mark.parametrize("kind", [KIND_SELL, KIND_BUY])
def test_native_tokens_that_arrive_are_wrapped_at_once(kind: int) -> None:
    order = replace(a_wrap(), kind=kind)
    assert swap_after(order, LANES) == ARRIVALS
    terms = arrival_of(order, ARRIVALS)
    assert terms is not None
    assert terms.is_wrap


@pytest.mark.parametrize(
    ("terms", "says"),
    [({"until": ORDER.deadline}, "a wrap at once"), ({"beneficiary": bytes(20)}, "order.metadata")],
)
def test_a_wrap_that_waits_or_is_nobodys_is_refused(terms: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        swap_after(a_wrap(**terms), LANES)


def test_a_wrap_of_what_arrives_as_it_is_wanted_is_refused() -> None:
    """The relayer would pay for what nobody needs."""
    with pytest.raises(InvalidInput, match="another token than the bridge delivers"):
        swap_after(an_order(dest_token=TERMS.token), LANES)


def test_the_token_that_the_destination_lacks_is_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(LISTED, USDC)
    with pytest.raises(InvalidInput, match=f"got '{to_checksum(USDC)}"):
        swap_after(an_order(), LANES)


def test_a_purchase_has_no_swap() -> None:
    with pytest.raises(InvalidInput, match="SELL"):
        swap_after(replace(an_order(), kind=KIND_BUY), LANES)


def an_arrived(*, state: BridgeEndState = BridgeEndState.ARRIVED, has_swap: bool = True) -> BridgedOrder:
    row = a_delta_order(1)
    sent = a_transfer(row, block=5)
    end = replace(an_end(sent), state=state, end_number=50, end_log=3)
    parties = TransferParties(ALICE, ACCOUNT, b"\xb2" * 20)
    return BridgedOrder(row, parties, (), (OrderTransfer(sent, end),), TERMS if has_swap else None)


def test_arrived_transfers_of_orders_with_a_swap_wait() -> None:
    order = an_arrived()
    (one,) = arrived_in(order)
    assert (one.account, one.terms) == (ACCOUNT, TERMS)
    assert (one.order, one.transfer, one.end) == (order, order.transfers[0], order.transfers[0].end)
    assert arrived_in(an_arrived(has_swap=False)) == []
    for state in (BridgeEndState.SWAPPED, BridgeEndState.PAID_OUT, BridgeEndState.FAILED):
        assert arrived_in(an_arrived(state=state)) == []


def ended(one: ArrivedTransfer, event: bytes, *amounts: int, **changed: Any) -> Any:
    usual = {"account": ACCOUNT, "token": USDC, "address": ARRIVALS, "block": 51, "index": 0}
    given: dict[str, Any] = usual | changed
    data = address_word(given["token"]) + b"".join(map(uint_word, amounts))
    log = Log(
        given["address"],
        (event, address_word(given["account"]), address_word(ALICE)),
        data,
        given["block"],
        b"\xd1" * 32,
        b"\xd2" * 32,
        0,
        given["index"],
    )
    header = Header(given["block"], b"\xd1" * 32, b"\xd0" * 32, 1_800_000_100, 0)
    return ended_by(one, log, ARRIVALS, header)


def test_a_log_of_the_account_ends_its_transfer() -> None:
    (one,) = arrived_in(an_arrived())
    usual = replace(
        one.end,
        end_block=b"\xd1" * 32,
        end_tx=b"\xd2" * 32,
        at_ms=1_800_000_100_000,
        is_final=False,
    )
    swap = replace(usual, state=BridgeEndState.SWAPPED, amount=amount32(2_001), end_number=51, end_log=0)
    assert ended(one, ARRIVAL_SWAPPED, 2_500, 2_001) == swap
    paid = replace(usual, state=BridgeEndState.PAID_OUT, amount=amount32(2_500), end_number=50, end_log=4)
    assert ended(one, ARRIVAL_PAID_OUT, 2_500, block=50, index=4) == paid


@pytest.mark.parametrize(
    "changed",
    [
        {"account": BOB},
        {"token": DAI},
        {"address": BOB},
        {"block": 49},
        {"block": 50, "index": 2},
    ],
)
def test_other_logs_do_not(changed: dict[str, Any]) -> None:
    (one,) = arrived_in(an_arrived())
    assert ended(one, ARRIVAL_PAID_OUT, 2_500, **changed) is None
    assert ended(one, ARRIVAL_SWAPPED, 2_500, 2_001, **changed) is None
