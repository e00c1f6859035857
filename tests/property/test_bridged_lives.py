"""Random lives of orders across two chains: status and amounts always follow from the chains as they are now.

Settlements, fills, refunds, time, re-organisations of either chain up to its confirmations, crashes and
outages come in any sequence; the real indexer, projection, watches and store follow. A second look at the
chains, without any memory, says what has to be the case.
"""

import tempfile
from functools import partial
from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.codecs.bridges.across import FILLED_RELAY
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.bridges.cctp import MESSAGE_RECEIVED
from cambist.codecs.contracts.contract_events import TRANSFER
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.chain.port import Log
from cambist.engine.store.rows import amount_of
from cambist.engine.trade.delta.orders.transfers import OrderTransfer, TransferState
from support.chain.indexing import sqlite_engine
from support.chain.log_emitter import Record
from support.chain.scripted_chain import Block, ScriptedChain, tx
from support.delta.bridged_world import (
    ARRIVES,
    BLOCK_S,
    CONFIRMATIONS,
    MINTED,
    PART,
    SPENT,
    BridgedWorld,
    SentDeposit,
    a_bridged_world,
    tx_hash_of,
)
from support.examples import examples

pytestmark = pytest.mark.seldom

SLICES = 2
KINDS = (BridgeKind.ACROSS, BridgeKind.ACROSS, BridgeKind.CCTP)
ORDERS = len(KINDS)
"""Two orders that share refunds, and one whose messages are all equal."""
_DELIVERIES = (FILLED_RELAY.topic, MESSAGE_RECEIVED.topic)
_S, _T = OrderStatus, TransferState
_ACTS = {
    "settle": st.integers(0, ORDERS - 1),
    "fill": st.integers(0, SLICES * ORDERS),
    "fill again": st.integers(0, SLICES * ORDERS),
    "refund": st.sampled_from((PART, PART // 2, 2 * PART, PART + 1)),
    "origin passes": st.integers(1, 4),
    "destination passes": st.integers(1, 16),
    "origin forks": st.integers(1, CONFIRMATIONS - 1),
    "destination forks": st.integers(1, CONFIRMATIONS - 1),
    "crash": st.just(0),
    "away": st.integers(0, 1),
}
_ACT = st.sampled_from(sorted(_ACTS)).flatmap(lambda name: st.tuples(st.just(name), _ACTS[name]))
_THEN = st.sampled_from(("look", "look", "look", "glance", "index", ""))
"""Acts of the venue before the next random act: a look at both chains until all is known, or at a part."""


@given(acts=st.lists(st.tuples(_ACT, _THEN), min_size=6, max_size=24), kept=st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_an_order_is_where_its_chains_say(acts: list[tuple[tuple[str, int], str]], kept: Random) -> None:
    trio.run(partial(_live, acts, kept))


async def _live(acts: list[tuple[tuple[str, int], str]], kept: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with a_bridged_world(sqlite_engine(Path(folder))) as world:
            life = Life(world, kept)
            life.orders = [await world.placed(slices=SLICES, kind=kind) for kind in KINDS]
            for order in life.orders:
                life.happens("settle", life.orders.index(order))
            for (name, number), then in acts:
                await life.act(name, number)
                await life.act(then, 0)
            world.destination.is_away = False
            await world.looks()
            await life.check()


class Life:
    """A world with all that has happened in it.

    Attributes:
        sent: settlements ever made.
    """

    def __init__(self, world: BridgedWorld, kept: Random) -> None:
        self.world = world
        self.kept = kept
        self.orders: list[bytes] = []
        self.sent: list[SentDeposit] = []

    async def act(self, name: str, number: int) -> None:
        """Have something happen, if it can."""
        world = self.world
        match name:
            case "crash":
                await world.starts()
            case "index":
                await world.indexes()
            case "glance":
                await world.glances()
            case "look" if not world.destination.is_away:
                await world.looks()
                await self.check()
            case _:
                self.happens(name, number)

    def happens(self, name: str, number: int) -> None:
        """Have something happen on a chain, if it can."""
        world = self.world
        match name:
            case "settle":
                order = self.orders[number]
                done = world.settled(order)
                if done < SLICES:
                    self.sent.append(world.settles(order, is_last=done + 1 == SLICES))
            case "fill" | "fill again" if number < len(self.sent):
                sent = self.sent[number]
                if not self._fills(sent) and self._next_s() <= sent.relay.fill_deadline:
                    world.fills(sent)
            case "refund":
                world.refunds(number)
            case "origin passes":
                world.passes(world.origin, number)
            case "destination passes":
                world.passes(world.destination, number)
            case "origin forks":
                self._fork(world.origin, number)
            case "destination forks":
                self._fork(world.destination, number)
            case "away":
                world.destination.is_away = bool(number)

    def _next_s(self) -> int:
        return self.world.destination.head.time_s + BLOCK_S

    def _fork(self, chain: ScriptedChain, depth: int) -> None:
        """Replace the last blocks by others: some first part of their transactions is mined again."""
        depth = min(depth, chain.head.number)
        if not depth:
            return
        gone = [made for block in chain.line[-depth:] for made in self._transactions(block)]
        chain.cut(chain.head.number - depth)
        self.world.passes(chain, self.kept.randint(0, 1))
        for name, logs in gone[: self.kept.randint(0, len(gone))]:
            if chain is self.world.origin or self._is_in_time(name):
                chain.grow([tx(name, *logs)])
        self.world.passes(chain, depth + 1)

    def _transactions(self, block: Block) -> list[tuple[bytes, list[tuple[bytes, Record]]]]:
        """Name and logs of each transaction of a block."""
        names = {tx_hash_of(name): name for name in self.world.names}
        return [
            (
                names[tx_hash],
                [(log.address, (log.topics, log.data)) for log in block.logs if log.tx_hash == tx_hash],
            )
            for tx_hash in block.tx_hashes
        ]

    def _is_in_time(self, name: bytes) -> bool:
        of = {b"fill " + sent.name: sent for sent in self.sent}
        return self._next_s() <= of[name].relay.fill_deadline

    # --- What has to be the case ------------------------------------------------------------------------

    def _logs(self, chain: ScriptedChain) -> list[Log]:
        return [log for block in chain.line for log in block.logs]

    def _fills(self, sent: SentDeposit) -> int:
        number = sent.relay.deposit_id.to_bytes(32, "big") if sent.attested is None else sent.attested.nonce
        logs = self._logs(self.world.destination)
        return sum(log.topics[0] in _DELIVERIES and log.topics[2] == number for log in logs)

    def _state(self, transfer: OrderTransfer) -> TransferState:
        """State of a transfer by its destination; FAILED stands for REFUNDED too."""
        sent = self._sent_of(transfer)
        if self._fills(sent):
            return _T.DELIVERED
        final = self.world.destination.head.number - CONFIRMATIONS + 1
        is_over = final >= 0 and self.world.destination.line[final].header.time_s > sent.relay.fill_deadline
        return _T.FAILED if is_over else _T.UNDER_WAY

    def _sent_of(self, transfer: OrderTransfer) -> SentDeposit:
        return next(one for one in self.sent if tx_hash_of(one.name) == transfer.sent.tx_hash)

    async def check(self) -> None:
        """Compare the stored orders with the chains."""
        owed, back = 0, 0
        for order in self.orders:
            row, transfers = await self.world.row(order), await self.world.transfers(order)
            settled = self.world.settled(order)
            assert len(transfers) == settled
            assert amount_of(row.spent) == settled * SPENT
            for one in transfers:
                state = _T.FAILED if one.state is _T.REFUNDED else one.state
                assert state is self._state(one)
                if state is _T.FAILED:
                    owed += PART
                    back += PART - one.owed
                assert state is _T.FAILED or not one.refunds
            states = {one.state for one in transfers}
            came = [self._sent_of(one) for one in transfers if one.state is _T.DELIVERED]
            assert amount_of(row.received) == sum(MINTED if one.attested else ARRIVES for one in came)
            assert row.status is _status(settled, states)
        await self._check_refunds(owed, back)

    async def _check_refunds(self, owed: int, back: int) -> None:
        """Whatever is paid counts once; and all of it, as far as it is owed, unless it came too early."""
        transfers = [one for order in self.orders for one in await self.world.transfers(order)]
        refunds = [refund for one in transfers for refund in one.refunds]
        paid: dict[tuple[bytes, int], int] = {}
        for block in self.world.origin.line:
            of_transaction: dict[bytes, int] = {}
            for log in block.logs:
                if log.topics[0] == TRANSFER:
                    entry = of_transaction.get(log.tx_hash, 0)
                    of_transaction[log.tx_hash] = entry + 1
                    paid[log.block_hash + log.tx_hash, entry] = int.from_bytes(log.data, "big")
        used: dict[tuple[bytes, int], int] = {}
        for refund in refunds:
            key = refund.block_hash + refund.tx_hash, refund.entry
            used[key] = used.get(key, 0) + amount_of(refund.amount)
        for key, amount in used.items():
            assert amount <= paid[key]
        last = max((one.sent.block_number for one in transfers if one.state is _T.FAILED), default=0)
        late = sum(
            int.from_bytes(log.data, "big")
            for block in self.world.origin.line[last:]
            for log in block.logs
            if log.topics[0] == TRANSFER
        )
        assert back <= owed
        assert back >= min(owed, late)


def _status(settled: int, states: set[TransferState]) -> OrderStatus:
    if settled < SLICES:
        return _S.ACTIVE
    if _T.UNDER_WAY in states:
        return _S.BRIDGING
    if _T.FAILED in states:
        return _S.REFUNDING
    return _S.REFUNDED if _T.REFUNDED in states else _S.COMPLETED
