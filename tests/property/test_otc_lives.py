"""Any fills, cancellations, re-organisations, funds and hours, against what is plainly in the chain."""

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.chain.holdings import Holding
from cambist.engine.store.rows import OtcCancel, OtcFill, OtcOrderRow, amount32, amount_of
from cambist.engine.trade.orders.lifecycles import OTC_LIFECYCLE
from cambist.engine.trade.orders.step import OrderStep
from cambist.engine.trade.otc import life
from cambist.engine.trade.otc.balances import Backed, is_backed, standings
from cambist.engine.trade.otc.life import ENDED, LIVE, OtcFacts
from support.store.stores import BOB, USDC, WETH, an_otc_order, hash_of

_S = OtcState
AMOUNT = 100
BLOCK_S = 10
EXPIRES_S = 300
CONFIRMATIONS = 3
AMOUNTS = st.integers(1, AMOUNT)


class Life(RuleBasedStateMachine):
    """Order, its contract, and a venue that follows the chain from time to time.

    The chain is a list of blocks, each a list of logs. The venue's knowledge is a height: blocks above it are
    new. The venue's row is made by the steps of `life` alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.row: OtcOrderRow = an_otc_order(
            1,
            status=_S.DRAFT,
            maker_amount=amount32(AMOUNT),
            expires_s=EXPIRES_S,
            remaining=amount32(AMOUNT),
            maker_balance=amount32(0),
            reserved=amount32(0),
            swappable=amount32(0),
        )
        self.blocks: list[list[OtcFill | OtcCancel]] = [[]]
        self.forks = 0
        self.now_s = 0
        self.told = 0  # height
        self.ended_at: int | None = None
        self.seen: set[tuple[OtcState, OtcState]] = set()

    # --- The chain ----------------------------------------------------------------------------------------

    def left(self) -> int:
        """As the contract has it; 0 where it is closed."""
        if any(isinstance(log, OtcCancel) and log.maker == self.row.maker for log in self.logs()):
            return 0
        return AMOUNT - sum(amount_of(log.maker_amount) for log in self.logs() if isinstance(log, OtcFill))

    def logs(self) -> list[OtcFill | OtcCancel]:
        return [log for block in self.blocks for log in block]

    def place(self) -> tuple[int, bytes, bytes, int, int]:
        number = len(self.blocks) - 1
        block = hash_of(1_000 * self.forks + number)
        tx_hash = hash_of(10**6 + 100 * len(self.blocks[-1]) + 10_000 * self.forks + number)
        return 1, block, tx_hash, len(self.blocks[-1]), number

    @rule(amount=AMOUNTS)
    @precondition(lambda self: self.left() > 0 and self.now_s <= EXPIRES_S)
    def is_filled(self, amount: int) -> None:
        some = amount32(min(amount, self.left())), amount32(1)
        fill = OtcFill(
            *self.place(), self.row.order_hash, self.row.maker, BOB, WETH, USDC, *some, self.now_s * 1_000
        )
        self.blocks[-1].append(fill)

    @rule(is_maker=st.booleans())
    def is_cancelled(self, is_maker: bool) -> None:
        if is_maker and not self.left():
            return
        sender = self.row.maker if is_maker else BOB
        cancel = OtcCancel(*self.place(), self.row.order_hash, sender, self.now_s * 1_000)
        self.blocks[-1].append(cancel)

    @rule(count=st.integers(1, 5))
    def blocks_pass(self, count: int) -> None:
        self.blocks += [[] for _ in range(count)]
        self.now_s += count * BLOCK_S

    @rule(depth=st.integers(1, CONFIRMATIONS - 1))
    def blocks_are_taken_back(self, depth: int) -> None:
        """Others stand in their place, without logs so far. No deeper than what counts as final."""
        first = max(len(self.blocks) - depth, 1)
        count = len(self.blocks) - first
        self.forks += 1
        self.blocks[first:] = [[] for _ in range(count)]
        self.told = min(self.told, first - 1)

    # --- The venue ----------------------------------------------------------------------------------------

    def takes(self, step: OrderStep[OtcOrderRow] | None) -> None:
        if step is None:
            return
        before, after = self.row, step.after
        OTC_LIFECYCLE.check(before.status, after.status, is_final=before.is_final)
        assert after.version == before.version + 1
        assert not before.is_final
        self.seen.add((before.status, after.status))
        self.row = after
        if after.status not in ENDED:
            self.ended_at = None

    @rule(is_contract=st.booleans(), is_short=st.booleans(), seed=st.integers(0, 9))
    def hears_of_the_chain(self, is_contract: bool, is_short: bool, seed: int) -> None:
        """All logs so far, in any sequence, some of them twice; then it knows them."""
        self.told = len(self.blocks) - 1
        if self.row.status in ENDED and self.ended_at is None:
            self.ended_at = self.told
        logs = self.logs()
        mixed = [*logs, *random.Random(seed).choices(logs, k=3 if logs else 0)]
        random.Random(seed).shuffle(mixed)
        facts = OtcFacts(
            [log for log in mixed if isinstance(log, OtcFill)],
            [log for log in mixed if isinstance(log, OtcCancel)],
            0,
            self.told - CONFIRMATIONS + 1,
            self.ended_at,
            is_contract,
            is_short,
        )
        was_final, before = self.row.is_final, self.row
        self.takes(life.step_from_logs(self.row, facts, 0))
        if was_final:
            assert self.row is before
        else:
            self.is_as_the_chain_has_it(before, is_contract, is_short)
            assert life.step_from_logs(self.row, facts, 0) is None, "told once, it is known"

    def is_as_the_chain_has_it(self, before: OtcOrderRow, is_contract: bool, is_short: bool) -> None:
        fills = [log for log in self.logs() if isinstance(log, OtcFill)]
        cancels = [log for log in self.logs() if isinstance(log, OtcCancel) and log.maker == self.row.maker]
        left = AMOUNT - sum(amount_of(fill.maker_amount) for fill in fills)
        assert left >= 0
        if before.status is _S.EXPIRED:
            cancels = [log for log in cancels if log.at_ms <= EXPIRES_S * 1_000 + 999]
        anew = _S.SUSPENDED if is_short else _S.PENDING
        transaction = fills[-1].tx_hash if fills else None
        if not left:
            expected = _S.FULFILLED
        elif cancels:
            expected, transaction = _S.CANCELLED, cancels[0].tx_hash
        elif before.status in (_S.FULFILLED, _S.CANCELLED):
            expected = _S.DRAFT if is_contract and not fills else anew
        elif before.status is _S.DRAFT and fills:
            expected = anew
        else:
            expected = before.status
        row = self.row
        assert (row.status, amount_of(row.remaining), row.transaction_hash) == (expected, left, transaction)

    @rule(balance=st.integers(0, AMOUNT), allowance=st.integers(0, AMOUNT), permitted=st.integers(0, AMOUNT))
    def reads_the_funds(self, balance: int, allowance: int, permitted: int) -> None:
        row = self.row
        if row.status in ENDED:
            return
        order = Backed(row.order_hash, row.status, amount_of(row.remaining), row.created_ms, permitted)
        holding = Holding(balance, allowance)
        self.takes(life.stood(row, standings([order], holding)[row.order_hash], 0))
        if row.status is not _S.DRAFT:
            assert (self.row.status is _S.PENDING) == is_backed(order, holding)

    @rule(is_backed=st.booleans())
    def hears_of_the_signature(self, is_backed: bool) -> None:
        self.takes(life.signed(self.row, 0, is_backed=is_backed))
        assert self.row.status is not _S.DRAFT

    @rule()
    def looks_at_the_time(self) -> None:
        was_live = self.row.status in LIVE
        self.takes(life.expired(self.row, self.now_s, 0))
        if was_live:
            assert (self.row.status is _S.EXPIRED) == (self.now_s > EXPIRES_S)

    # --- Always -------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_promised_that_is_not_left(self) -> None:
        row = self.row
        maker_balance, reserved, swappable, left = map(
            amount_of, (row.maker_balance, row.reserved, row.swappable, row.remaining)
        )
        assert swappable <= min(reserved, maker_balance)
        assert max(reserved, maker_balance) <= left <= AMOUNT
        if row.status is not _S.PENDING:
            assert swappable == 0
        if row.status in ENDED:
            assert (maker_balance, reserved) == (0, 0)
        assert (row.status is _S.FULFILLED) == (left == 0)
        assert not row.is_final or row.status in ENDED


def hear(one: Life) -> None:
    one.hears_of_the_chain(False, False, 0)


def hear_short(one: Life) -> None:
    one.hears_of_the_chain(False, True, 0)


def hear_contract(one: Life) -> None:
    one.hears_of_the_chain(True, False, 0)


def fill(one: Life) -> None:
    one.blocks_pass(1)
    one.is_filled(AMOUNT)


def cancel(one: Life) -> None:
    one.blocks_pass(1)
    one.is_cancelled(True)


def undo(one: Life) -> None:
    one.blocks_are_taken_back(1)


def expire(one: Life) -> None:
    one.now_s += EXPIRES_S + 1
    one.looks_at_the_time()
    one.now_s -= EXPIRES_S + 1


def starve(one: Life) -> None:
    one.reads_the_funds(0, 0, 0)


def feed(one: Life) -> None:
    one.reads_the_funds(AMOUNT, AMOUNT, 0)


def sign(one: Life) -> None:
    one.hears_of_the_signature(True)


def sign_short(one: Life) -> None:
    one.hears_of_the_signature(False)


LIVES = (
    *((sign, before, end, hear, undo, again)
      for before in (feed, starve) for end in (fill, cancel) for again in (hear, hear_short, hear_contract)),
    *((before, end, hear) for before in (sign, expire) for end in (fill, cancel)),
    (sign, fill, hear, undo, cancel, hear),
    (sign, cancel, hear, undo, fill, hear),
    *((sign, before, expire) for before in (feed, starve)),
    (fill, hear),
    (cancel, hear),
    (sign_short, feed, starve),
)  # fmt: skip
"""By hand what the machine finds by chance."""


def test_every_step_that_the_table_has_can_be_taken() -> None:
    seen: set[tuple[OtcState, OtcState]] = set()
    for acts in LIVES:
        one = Life()
        for act in acts:
            act(one)
        seen.update(step for step in one.seen if step[0] is not step[1])
    assert seen == OTC_LIFECYCLE.steps.keys() | OTC_LIFECYCLE.undone.keys()


TestOtcLives = Life.TestCase
TestOtcLives.settings = settings(stateful_step_count=30, deadline=None)
