"""Refunds of failed deposits: each paid unit counts once, for the oldest transfer of its owner and token."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.codecs.contracts.contract_events import Transfer
from cambist.engine.chain.port import Log
from cambist.engine.store.rows import DeltaRefund, amount32, amount_of
from cambist.engine.trade.delta.bridging.log_windows import first_block, window
from cambist.engine.trade.delta.bridging.refund_entries import (
    OwedTransfer,
    RefundEntry,
    allocated,
    entries_in,
    used_up,
)
from cambist.engine.trade.delta.orders.transfers import OrderTransfer, key_of, refunded_key
from support.chain.bridge_logs import refunded
from support.chain.log_emitter import Record, record
from support.store.stores import ALICE, BOB, USDC, WETH, a_delta_order, a_transfer, an_end

POOL = b"\x0a" * 20
TIMES = {number: 1_000 + number for number in range(200)}


def logs(*made: tuple[bytes, Record], block: int = 150) -> list[Log]:
    return [
        Log(address, *of, block, b"\xbb" * 32, b"\x77" * 32, 0, at) for at, (address, of) in enumerate(made)
    ]


def paid(account: bytes, amount: int, token: bytes = USDC, by: bytes = POOL) -> tuple[bytes, Record]:
    return token, record(Transfer(by, account, amount))


def owed(number: int, amount: int, owner: bytes = ALICE, token: bytes = USDC) -> OwedTransfer:
    sent = a_transfer(a_delta_order(number), block=number, amount=amount32(amount))
    return OwedTransfer(OrderTransfer(sent, an_end(sent, is_delivered=False)), owner, token)


def an_entry(amount: int, at: int = 0, *, block: int = 150, account: bytes = ALICE) -> RefundEntry:
    (log,) = logs((POOL, refunded(USDC, [(account, amount)])), block=block)
    return RefundEntry(replace(log, log_index=at), 0, USDC, account, amount)


def pays(entries: list[RefundEntry], waiting: list[OwedTransfer]) -> list[tuple[int, int, int]]:
    """(block of the transfer, taken before, amount) of each refund."""
    found = allocated(entries, waiting, {}, TIMES)
    blocks = {key_of(one.transfer.sent): one.transfer.sent.block_number for one in waiting}
    return [(blocks[refunded_key(one)], amount_of(one.taken), amount_of(one.amount)) for one in found]


# --- Entries --------------------------------------------------------------------------------------------


def test_an_entry_counts_if_the_pool_paid_it() -> None:
    leaf = POOL, refunded(USDC, [(ALICE, 5), (BOB, 6), (ALICE, 7), (ALICE, 0)])
    made = logs(paid(ALICE, 5), paid(ALICE, 7, by=BOB), paid(ALICE, 7, token=WETH), paid(BOB, 6), leaf)
    found = entries_in(made, POOL)
    assert [(one.entry, one.account, one.amount) for one in found] == [(0, ALICE, 5), (1, BOB, 6)]
    assert entries_in(made, BOB) == []


def test_one_payment_pays_one_entry() -> None:
    leaf = POOL, refunded(USDC, [(ALICE, 5), (ALICE, 5)])
    assert len(entries_in(logs(paid(ALICE, 5), leaf), POOL)) == 1
    assert len(entries_in(logs(paid(ALICE, 5), paid(ALICE, 5), leaf), POOL)) == 2
    topics, data = leaf[1]
    assert entries_in(logs(paid(ALICE, 5), (POOL, (topics, data[:-32]))), POOL) == []


def test_malformed_and_other_logs_count_for_nothing_wherever_they_stand() -> None:
    leaf = POOL, refunded(USDC, [(ALICE, 5), (ALICE, 5)])
    cut = [(address, (topics, data[:-1])) for address, (topics, data) in (paid(ALICE, 5), leaf)]
    other = POOL, paid(ALICE, 5)[1]
    made = [*cut, other, paid(ALICE, 5), *cut, other, leaf, *cut, other]
    (found,) = entries_in(logs(*made), POOL)
    assert (found.log.log_index, found.entry, found.amount) == (made.index(leaf), 0, 5)
    assert entries_in(logs(*cut), POOL) == []


def test_a_refund_names_its_entry_and_its_transfer() -> None:
    waiting, entry = owed(10, 60), replace(an_entry(100, 3), entry=2)
    (found,) = allocated([entry], [waiting], {entry.key: 30}, TIMES)
    sent, log = waiting.transfer.sent, entry.log
    assert found == DeltaRefund(
        sent.chain_id, log.block_hash, log.tx_hash, 3, 2, amount32(30), 1, 150, sent.order_hash,
        sent.block_hash, sent.tx_hash, sent.log_index, USDC, amount32(60), 1_150_000, is_final=False,
    )  # fmt: skip


# --- Allocation -----------------------------------------------------------------------------------------


def test_an_entry_pays_the_oldest_transfer_first_and_the_rest_the_next() -> None:
    waiting = [owed(30, 100), owed(10, 60), owed(20, 50)]
    assert pays([an_entry(160)], waiting) == [(10, 0, 60), (20, 60, 50), (30, 110, 50)]


def test_several_entries_pay_one_transfer() -> None:
    assert pays([an_entry(40), an_entry(70, 1)], [owed(10, 100)]) == [(10, 0, 40), (10, 0, 60)]


def test_others_refunds_and_earlier_ones_pay_nothing() -> None:
    waiting = [owed(10, 100), owed(20, 100, token=WETH), owed(30, 100, owner=BOB)]
    assert pays([an_entry(100, account=b"\x99" * 20)], waiting) == []
    assert pays([an_entry(100, block=9)], waiting) == []
    assert pays([an_entry(100, block=10)], waiting) == [(10, 0, 100)]


def test_units_that_count_already_do_not_count_again() -> None:
    first, second = owed(10, 60), owed(20, 60)
    entry = an_entry(100)
    stored = allocated([entry], [first], {}, TIMES)
    assert used_up(stored) == {entry.key: 60}
    (rest,) = allocated([entry], [second], used_up(stored), TIMES)
    assert (amount_of(rest.taken), amount_of(rest.amount)) == (60, 40)
    assert used_up([*stored, rest]) == {entry.key: 100}
    assert rest.at_ms == TIMES[150] * 1_000


@given(
    entries=st.lists(st.integers(1, 50), max_size=6),
    debts=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    cut=st.integers(0, 6),
)
def test_all_that_is_paid_counts_once_as_far_as_it_is_owed(
    entries: list[int], debts: list[int], cut: int
) -> None:
    """Whether it is looked at in one go, or in two."""
    made = [an_entry(amount, at) for at, amount in enumerate(entries)]
    waiting = [owed(number + 1, amount) for number, amount in enumerate(debts)]
    first = allocated(made[:cut], waiting, {}, TIMES)
    after = [
        replace(
            one,
            transfer=replace(
                one.transfer,
                refunds=tuple(row for row in first if refunded_key(row) == key_of(one.transfer.sent)),
            ),
        )
        for one in waiting
    ]
    found = [*first, *allocated(made, after, used_up(first), TIMES)]
    total = min(sum(entries), sum(debts))
    assert sum(amount_of(row.amount) for row in found) == total
    keys = [(row.log_index, row.taken) for row in found]
    assert len(keys) == len(set(keys))
    for entry in made:
        of_entry = [amount_of(row.amount) for row in found if row.log_index == entry.log.log_index]
        assert sum(of_entry) <= entry.amount


# --- Ranges of blocks -----------------------------------------------------------------------------------


@given(times=st.lists(st.integers(0, 50), min_size=1, max_size=40).map(sorted), at_s=st.integers(-5, 60))
def test_the_first_block_not_before_a_time(times: list[int], at_s: int) -> None:
    search = first_block(len(times) - 1, at_s)
    asked = 0
    try:
        height = next(search)
        while True:
            asked += 1
            height = search.send(times[height])
    except StopIteration as stopped:
        found = stopped.value
    assert asked <= len(times).bit_length()
    expected = next((n for n, time_s in enumerate(times) if time_s >= at_s), len(times) - 1)
    assert found == expected


@given(after=st.integers(-1, 60), head=st.integers(0, 60), span=st.integers(1, 70))
def test_ranges_cover_each_block_once(after: int, head: int, span: int) -> None:
    read: list[int] = []
    at = after
    while (blocks := window(at, head, span)) is not None:
        assert blocks[1] - blocks[0] < span
        read += range(blocks[0], blocks[1] + 1)
        at = blocks[1]
    assert read == list(range(after + 1, head + 1))
