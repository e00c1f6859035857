"""Settlements whose funds are missing, or suffice for one of several orders: transactions and strikes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.delta_calldata import Execution, agent_id, settle
from cambist.codecs.eip712_orders.delta import DeltaBridge, DeltaOrder
from cambist.codecs.messages.agent_messages import Notice
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.chain.holdings import Holding
from cambist.engine.chain.port import EthCall, Receipt
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.store.rows import DeltaFill, IntentCause, IntentState, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_FILL
from cambist.engine.store.units import Unit, put
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.settlement.claims import Claims
from cambist.engine.trade.delta.settlement.owner_costs import OwnerCosts
from cambist.engine.trade.delta.settlement.settling import Settling, TellAgent
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.step import OrderStep
from support.delta.auctioning import (
    FAIR,
    PlayedAgent,
    PlayedAuction,
    RefusingChain,
    an_auction,
    calls_no_contract,
    no_costs,
    on_all,
    on_each,
)
from support.delta.bidding import ONE, a_delta_order, a_round_order
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import NOW_MS

SALE, OTHER = a_round_order(1), a_round_order(2)
BOBS = a_round_order(3, a_delta_order(nonce=3, owner=b"\xb0" * 20))
_ACROSS = DeltaBridge(SELECTORS[BridgeKind.ACROSS], 10, OTHER.terms.dest_token, 0, bytes(5 * 32))
BRIDGED = a_round_order(4, a_delta_order(nonce=4, bridge=_ACROSS))
_S = OrderStatus
GAS_MAX = 1_000_000


class PlayedRelayer:
    """A relayer that hands no transaction to a chain.

    Attributes:
        handed: keys, as they came.
        error: signature of the contract's error with which each is reverted; empty for another contract's.
        mined: hash of the transaction in which all are mined.
        address: the sender's.
        may_end: no effect ends before this is set.
    """

    address = bytes(20)

    def __init__(self, error: str = "") -> None:
        self.handed: list[str] = []
        self.error = error
        self._error4 = selector(error) if error else None
        self.mined: bytes | None = None
        self.may_end = trio.Event()

    async def outcome(self, key: str) -> IntentOutcome | None:
        """As `Relayer.outcome`."""
        await trio.lowlevel.checkpoint()
        return IntentOutcome(key, IntentState.WAITING, "", None) if key in self.handed else None

    async def relay(self, key: str, call: EthCall, deadline_s: int) -> None:
        """As `Relayer.relay`."""
        self.handed += [key] if key not in self.handed else []

    async def wait(self, key: str, *, final: bool = True) -> IntentOutcome:
        """As `Relayer.wait`."""
        await self.may_end.wait()
        state = IntentState.FAILED if self.mined is None else IntentState.MINED
        why = ("", None, None) if self.mined is not None else ("no", IntentCause.REVERTED, self._error4)
        receipt = Receipt(bytes(32), self.mined is not None, 1, bytes(32), 0, 100_000, 1, None, ())
        return IntentOutcome(key, state, why[0], self.mined, receipt, why[1], why[2])


class Funds:
    """Funds of which the `lacking` orders have none. `asked` are the orders of the questions."""

    def __init__(self, *lacking: RoundOrder) -> None:
        self.lacking = {one.order_hash for one in lacking}
        self.asked: list[bytes] = []

    async def are_lacking(self, live: LiveOrder, height: int) -> bool:
        """As `FundsWatch.are_lacking`."""
        await trio.lowlevel.checkpoint()
        self.asked.append(live.order_hash)
        return live.order_hash in self.lacking


@asynccontextmanager
async def settled_by(
    relayer: PlayedRelayer,
    funds: Funds,
    folder: Path,
    agent: PlayedAgent,
    claims: Claims | None = None,
    chain: RefusingChain | None = None,
    costs: OwnerCosts | None = None,
) -> AsyncIterator[PlayedAuction]:
    """Auctions whose settlements a relayer gets; the chain refuses them without the agent's calls too.

    Args:
        costs: of owners that have code.
    """

    def settles(store: Store, orders: LiveOrders, tell: TellAgent) -> Settling:
        return Settling(
            cast("Any", relayer),
            cast("Any", chain or RefusingChain(relayer.error)),
            store,
            orders,
            delta=bytes(20),
            gas_max=GAS_MAX,
            failures_max=10,
            tell=tell,
            are_lacking=funds.are_lacking,
            calls_contract=calls_no_contract if costs is None else calls_a_contract,
            owner_costs=costs or no_costs(),
            unspent=lambda _: None,
            read_to=lambda: 1,
            wall_ms=now_ms,
        )

    async with an_auction(folder, settles, claims, ann=agent) as auction, trio.open_nursery() as tasks:
        auction.settling.start(tasks)

        def tend(live: LiveOrder) -> None:
            auction.claims.hold_while_settling(live)
            auction.settling.carry_on(live)
            if live.settling is not None or live.row.status is _S.SUSPENDED:
                auction.auctioneer.withdraw(live.order_hash)

        auction.orders.watch(tend)
        yield auction
        tasks.cancel_scope.cancel()


async def calls_a_contract(_: LiveOrder) -> bool:
    """True: every owner is a wallet."""
    await trio.lowlevel.checkpoint()
    return True


def waits_ms(auction: PlayedAuction, asked: RoundOrder) -> int:
    return auction.queue.due_ms(auction.live(asked)) - now_ms()


async def test_a_settlement_without_funds_is_not_sent_and_its_order_waits_longer_each_time(
    tmp_path: Path,
) -> None:
    relayer, funds, agent = PlayedRelayer(), Funds(SALE), PlayedAgent(on_each)
    async with settled_by(relayer, funds, tmp_path, agent) as auction:
        await auction.submitted(SALE)
        await until(lambda: auction.live(SALE).row.status is _S.SUSPENDED)
        assert relayer.handed == []
        assert auction.live(SALE).row.failures == 0
        assert "the owner's funds are not there" in agent.told[-1].detail
        assert 500 < waits_ms(auction, SALE) <= 1_000
        auction.auctioneer.withdraw(SALE.order_hash)  # as whoever is suspended
        assert 500 < waits_ms(auction, SALE) <= 1_000


async def test_whose_funds_were_looked_at_before_it_was_sent_is_not_looked_at_again(tmp_path: Path) -> None:
    relayer, funds = PlayedRelayer(), Funds(SALE)
    sent = relayer.outcome

    async def outcome(key: str) -> IntentOutcome | None:
        relayer.handed += [key] if key not in relayer.handed else []
        return await sent(key)

    relayer.outcome = outcome  # type: ignore[method-assign]  # as after a crash: it was submitted before
    async with settled_by(relayer, funds, tmp_path, PlayedAgent(on_each)) as auction:
        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        assert funds.asked == []
        assert auction.live(SALE).settling is not None


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_partner_without_funds_harms_nobody_but_itself(tmp_path: Path, is_sent: bool) -> None:
    relayer, funds = PlayedRelayer("PullFailed(address)"), Funds(*() if is_sent else (SALE,))
    agent = PlayedAgent(on_all)
    async with settled_by(relayer, funds, tmp_path, agent) as auction:
        await auction.submitted(SALE, BOBS)
        if is_sent:
            await until(lambda: bool(relayer.handed))
            funds.lacking.add(SALE.order_hash)
            relayer.may_end.set()
        await until(lambda: auction.live(SALE).row.status is _S.SUSPENDED)
        await until(lambda: auction.live(BOBS).settling is None)
        assert len(relayer.handed) == is_sent
        bobs = auction.live(BOBS)
        assert (bobs.row.status, bobs.row.failures) == (_S.ACTIVE, 0)
        assert 500 < waits_ms(auction, BOBS) <= 1_000
        assert auction.auctioneer.reports()["ann"].faults == {}


@pytest.mark.parametrize(
    ("error", "owners_error", "is_lacking", "faults"),
    [
        ("PullFailed(address)", "PullFailed(address)", False, {}),
        ("PullFailed(address)", "PullFailed(address)", True, {}),
        ("PullFailed(address)", "BelowMinimum(uint256,uint256)", False, {"reverted": 1}),
        ("PullFailed(address)", "", False, {"reverted": 1}),
        ("PullFailed(address)", "BelowMinimum(uint256,uint256)", True, {}),
        ("NonceUsed(uint256)", "BelowMinimum(uint256,uint256)", False, {"reverted": 1}),
        ("InvalidSignature()", "InvalidSignature()", False, {}),
        ("BelowMinimum(uint256,uint256)", "BelowMinimum(uint256,uint256)", False, {"reverted": 1}),
    ],
)
async def test_an_error_excuses_an_agent_only_where_its_calls_do_not_bring_it_about(
    tmp_path: Path, error: str, owners_error: str, is_lacking: bool, faults: dict[str, int]
) -> None:
    """The owners' part of the settlement is tried on both blocks."""
    relayer, funds, chain = PlayedRelayer(error), Funds(), RefusingChain(owners_error)
    agent = PlayedAgent(on_each)
    async with settled_by(relayer, funds, tmp_path, agent, chain=chain) as auction:
        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        funds.lacking |= {SALE.order_hash} if is_lacking else set()
        relayer.may_end.set()
        await until(lambda: any(one.notice is Notice.REVERTED for one in agent.told))
        assert auction.auctioneer.reports()["ann"].faults == faults
    assert isinstance(SALE.order, DeltaOrder)
    bare = Execution(FAIR, 0, (), (), agent_id("ann"))
    asked = settle(SALE.order, SALE.document.signature, SALE.part.amount, bare)
    assert chain.asked[:2] == [(asked, b"\x01" * 32), (asked, b"\x02" * 32)]


@pytest.mark.parametrize("error", ["CapExceeded(address,uint256,uint256)", "TooEarly(uint256)"])
async def test_an_error_of_time_at_the_block_before_excuses_no_agent(tmp_path: Path, error: str) -> None:
    """The settlement's own block is of the next hour, or of the slice's time."""
    relayer, agent = PlayedRelayer(error), PlayedAgent(on_each)
    relayer.may_end.set()
    chain = RefusingChain(error, "BelowMinimum(uint256,uint256)")
    async with settled_by(relayer, Funds(), tmp_path, agent, chain=chain) as auction:
        await auction.submitted(SALE)
        await until(lambda: any(one.notice is Notice.REVERTED for one in agent.told))
        assert auction.auctioneer.reports()["ann"].faults == {"reverted": 1}


class GasChain(RefusingChain):
    """A chain on which a call needs more than so much gas."""

    def __init__(self, needed: int) -> None:
        super().__init__("BelowMinimum(uint256,uint256)")
        self._needed = needed

    async def call(self, call: EthCall, block_hash: bytes) -> bytes:
        """As `Chain.call`."""
        assert call.gas_max is not None
        return b"" if call.gas_max > self._needed else await super().call(call, block_hash)


@pytest.mark.parametrize(
    ("needed", "rests", "faults"),
    [(GAS_MAX - 1, True, {}), (0, False, {}), (GAS_MAX, False, {"reverted": 1})],
    ids=["more gas than was sent", "what was sent", "more than any simulation has"],
)
async def test_an_owners_wallet_pays_where_a_settlement_lacked_nothing_but_gas(
    tmp_path: Path, needed: int, rests: bool, faults: dict[str, int]
) -> None:
    """A wallet knows a simulation by its gas, and uses up the gas of the agent's calls."""

    async def codes_of(_: LiveOrder) -> frozenset[bytes]:
        await trio.lowlevel.checkpoint()
        return frozenset({b"wallet"})

    relayer, agent = PlayedRelayer("BelowMinimum(uint256,uint256)"), PlayedAgent(on_each)
    relayer.may_end.set()
    costs = OwnerCosts(Ledger(), 1, codes_of, rest_ms=5_000, rest_ms_max=900_000, wall_ms=now_ms)
    async with settled_by(relayer, Funds(), tmp_path, agent, chain=GasChain(needed), costs=costs) as auction:
        await auction.submitted(SALE)
        await until(lambda: any(one.notice is Notice.REVERTED for one in agent.told))
        assert bool(costs.rests_until_ms(SALE.terms.owner)) is rests
        assert auction.auctioneer.reports()["ann"].faults == faults


async def test_a_crossing_that_fails_for_another_reason_counts_for_both(tmp_path: Path) -> None:
    relayer = PlayedRelayer("BelowMinimum(uint256,uint256)")
    relayer.may_end.set()
    async with settled_by(relayer, Funds(), tmp_path, PlayedAgent(on_all)) as auction:
        await auction.submitted(SALE, BOBS)
        await until(lambda: auction.live(SALE).row.failures + auction.live(BOBS).row.failures == 2)


async def test_an_order_whose_end_is_undone_while_its_agent_is_told_is_settled_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relayer, agent = PlayedRelayer("BelowMinimum(uint256,uint256)"), PlayedAgent(on_each)
    relayer.mined = b"\x77" * 32
    async with settled_by(relayer, Funds(), tmp_path, agent) as auction:

        async def becomes(status: OrderStatus) -> None:
            changed = {"status": status}
            await auction.orders.step(SALE.order_hash, lambda row: OrderStep(step(row, NOW_MS, **changed)))

        async def undone(_: bytes, outcome: IntentOutcome) -> None:
            if outcome.state is IntentState.MINED:
                relayer.mined = None
                await becomes(_S.ACTIVE)

        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        await becomes(_S.COMPLETED)
        monkeypatch.setattr(auction.settling, "_fill", undone)
        relayer.may_end.set()
        await until(lambda: auction.live(SALE).row.failures == 1)


class BusyChain(RefusingChain):
    """Each account sends a transaction in each block."""

    async def nonce(self, address: bytes, at: bytes) -> int:
        """As `Chain.nonce`."""
        return at[0]


async def test_a_crossing_in_doubt_rests_its_owners_and_is_no_fault_yet(tmp_path: Path) -> None:
    """An owner of one of its orders acted in the block; both orders fail once, by one settlement."""
    error = "NativeTransferFailed(address)"
    relayer, agent = PlayedRelayer(error), PlayedAgent(on_all)
    async with settled_by(relayer, Funds(), tmp_path, agent, chain=BusyChain(error)) as auction:
        await auction.submitted(SALE, BOBS)
        await until(lambda: bool(relayer.handed))
        relayer.may_end.set()
        await until(lambda: auction.live(SALE).row.failures * auction.live(BOBS).row.failures > 0)
        relayer.may_end = trio.Event()
        await until(lambda: len([one for one in agent.told if one.notice is Notice.REVERTED]) == 2)
        assert auction.auctioneer.reports()["ann"].faults == {}


async def test_what_failed_before_a_part_was_settled_does_not_delay_the_next_one(tmp_path: Path) -> None:
    relayer = PlayedRelayer()
    async with settled_by(relayer, Funds(), tmp_path, PlayedAgent(on_each)) as auction:
        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        live = auction.live(SALE)
        live.in_vain = 3
        assert waits_ms(auction, SALE) > 3_000
        tenth = amount32(ONE // 10)
        relayer.mined = bytes(32)
        fill = DeltaFill(
            1,
            bytes(32),
            relayer.mined,
            0,
            10,
            SALE.order_hash,
            None,
            tenth,
            tenth,
            NOW_MS,
            tenth,
            is_closed=False,
        )
        await auction.store.write(Unit((put(DELTA_FILL, fill),)))
        relayer.may_end.set()
        await until(lambda: live.settling is None)
        assert waits_ms(auction, SALE) <= 0


@pytest.mark.parametrize(("balance", "most"), [(ONE, 1), (2 * ONE - 1, 1), (2 * ONE, 2), (None, 1)])
async def test_no_more_is_settled_at_once_than_an_account_has(
    tmp_path: Path, balance: int | None, most: int
) -> None:
    relayer = PlayedRelayer()
    found = None if balance is None else Holding(balance, 10**30)
    claims, agent = Claims(lambda *_: found), PlayedAgent(on_each)
    async with settled_by(relayer, Funds(), tmp_path, agent, claims) as auction:
        await auction.submitted(SALE, OTHER, BOBS)
        await until(lambda: auction.auctioneer.statistics().rounds == 1)
        await until(lambda: auction.auctioneer.statistics().open_rounds == 0)
        alices = [one for one in (SALE, OTHER) if auction.live(one).settling is not None]
        assert len(alices) == most
        assert auction.live(BOBS).settling is not None  # another account
        lost = [entry.detail for entry in agent.told if entry.notice is Notice.LOST]
        assert lost == ["other settlements need an owner's funds"] * (2 - most)
        await until(lambda: len(relayer.handed) == most + 1)
        relayer.may_end.set()
        await until(lambda: not any(auction.live(one).settling for one in alices))
        (second,) = {SALE, OTHER} - set(alices) if most == 1 else (OTHER,)
        assert auction.claims.claim([auction.live(second)])  # once the first has ended


@pytest.mark.parametrize("allowance", [ONE, 2 * ONE])
async def test_of_one_crossing_all_that_it_takes_of_an_account_counts(tmp_path: Path, allowance: int) -> None:
    relayer = PlayedRelayer()
    claims = Claims(lambda *_: Holding(10**30, allowance))
    async with settled_by(relayer, Funds(), tmp_path, PlayedAgent(on_all), claims) as auction:
        await auction.submitted(SALE, OTHER)
        await until(lambda: auction.auctioneer.statistics().rounds == 1)
        await until(lambda: auction.auctioneer.statistics().open_rounds == 0)
        assert (auction.live(SALE).settling is not None) == (allowance == 2 * ONE)


def a_live(asked: RoundOrder, *, settling: str | None, status: OrderStatus = _S.ACTIVE) -> LiveOrder:
    live: Any = SimpleNamespace(
        order_hash=asked.order_hash,
        order=asked.order,
        terms=asked.terms,
        filled=0,
        worth=None,
        settling=settling,
        row=SimpleNamespace(status=status),
    )
    return cast("LiveOrder", live)


@pytest.mark.parametrize("status", [_S.ACTIVE, _S.CANCELLING, _S.COMPLETED])
def test_a_claim_is_given_up_once_its_settlement_was_read(status: OrderStatus) -> None:
    claims = Claims(lambda *_: Holding(ONE, ONE))
    claims.hold_while_settling(a_live(SALE, settling="one"))
    claims.release([SALE.order_hash])
    claims.hold_while_settling(a_live(SALE, settling="one", status=status))
    assert claims.claim([a_live(OTHER, settling=None)]) == (status is _S.COMPLETED)


def test_claims_are_made_for_all_orders_or_none_and_released_before_their_settlement_alone() -> None:
    claims = Claims(lambda *_: Holding(ONE, ONE))
    one, other = a_live(SALE, settling=None), a_live(OTHER, settling=None)
    assert not claims.claim([one, other])
    assert claims.claim([one])
    assert not claims.claim([other])
    claims.release([SALE.order_hash, OTHER.order_hash])
    assert claims.claim([other])
    claims.hold_while_settling(a_live(OTHER, settling="other"))
    claims.release([OTHER.order_hash])
    assert not claims.claim([one])


def test_claims_of_shards_that_others_hold_now_are_forgotten() -> None:
    claims = Claims(lambda *_: Holding(ONE, ONE))
    claims.hold_while_settling(a_live(SALE, settling="one"))
    assert not claims.claim([a_live(OTHER, settling=None)])
    claims.leave({OTHER.order_hash[0]})
    assert claims.claim([a_live(OTHER, settling=None)])


@pytest.mark.parametrize(
    ("asked", "error", "faults"),
    [
        (BRIDGED, "DepositsArePaused()", {}),
        (BRIDGED, "Error(string)", {}),
        (BRIDGED, "BridgeFailed(address)", {}),
        (BRIDGED, "StepFailed(uint256,bytes)", {"reverted": 1}),
        (BRIDGED, "BelowMinimum(uint256,uint256)", {"reverted": 1}),
        (SALE, "DepositsArePaused()", {"reverted": 1}),
    ],
)
async def test_a_bridge_that_fails_once_a_settlement_is_mined_strikes_no_agent(
    tmp_path: Path, asked: RoundOrder, error: str, faults: dict[str, int]
) -> None:
    """A pool or messenger that is paused between simulation and block; its error comes through as it is."""
    relayer, agent = PlayedRelayer(error), PlayedAgent(on_each)
    async with settled_by(relayer, Funds(), tmp_path, agent) as auction:
        await auction.submitted(asked)
        await until(lambda: bool(relayer.handed))
        relayer.may_end.set()
        await until(lambda: any(one.notice is Notice.REVERTED for one in agent.told))
        assert auction.auctioneer.reports()["ann"].faults == faults
