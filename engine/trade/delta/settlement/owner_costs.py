"""Gas of failed settlements, charged to the owners whose code or acts made them fail; their rests; doubts.

A wallet's contract can accept a signature, or native tokens, in each simulation and refuse in the mined
transaction: by the gas, the caller, the block's coinbase or its height. The relayer then pays for nothing.

    begin      a settlement that runs the code of owners who have not settled yet is charged before it is
               sent: to each owner, to its code, to the network that submitted its order, and to all such
               owners, who also share a few places
    failed     an owner's code or act may be the cause: this owner rests, twice as long at each failure, and
               pays for the gas that was used; the agent is in doubt
    settled    the charges go back, and the owner has settled; if another agent was in doubt because of this
               owner, its doubt counts now: the owner does settle

    wasted      the agent's calls failed in a block in which the owner acted: owners and an agent of one party
                can excuse each other so, with a new owner each time. The gas is charged to the agent too;
                without room, its bids lose on orders of owners that have settled with no other agent

    a doubt whose owner fails another agent's settlement too, or never settles, counts against no agent; the
    venue's own bids, in which no agent's code runs, leave doubts as they are

Source: docs/explanation/security.md, "Costs and stakes"; ARCHITECTURE.md, "Settlement".
Choice: An owner whose code fails a settlement rests at once, and the next best bid is not tried: it would run
    the same code. An owner that has settled before only counts as new again.
Choice: Owners are known by their settlements since the start of the process; after a start the owners of
    contracts share the places of those that have not settled, until they have.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from .....config import limits
from ....chain.together import all_of
from ....host.admission.budgets import (
    GAS_OF_CODE,
    GAS_OF_DOUBTS,
    GAS_OF_NETWORK,
    GAS_OF_NEW_OWNERS,
    GAS_OF_OWNER,
    PLACES_OF_NEW_OWNERS,
)
from ....host.admission.ledger import EVERYBODY, Charge, Hold, Lack, Ledger
from ...orders.places import is_key
from ..bids.agent_rest import AgentFault, AgentRest
from ..bids.bids import is_agent
from ..orders.live_orders import LiveOrder

CodesOf = Callable[[LiveOrder], Awaitable[frozenset[bytes]]]
"""Function that returns the hashes (32 bytes) of the code that an order's settlement runs for its owner."""
K = TypeVar("K")
V = TypeVar("V")
_AWAITED_MS = 3_600_000  # a settlement is mined, given up or replaced long before
_LOOK_AGAIN_MS = 10_000


class OwnersCharge(Struct, eq=False):
    """Charges of a settlement to the owners whose code it runs, from `begin` to its outcome.

    Attributes:
        until_ms: time after which the outcome is not awaited, Unix milliseconds.
        owners: owner of each of its orders, 20 bytes -> network or key that submitted the order, empty if
            unknown, as after a restart.
        hold: what is charged until the outcome is known.
    """

    owners: Mapping[bytes, str]
    hold: Hold
    until_ms: int


class OwnerCosts:
    """Costs that the owners of one chain's orders cause by failed settlements.

    Args:
        rest_ms, rest_ms_max: length of an owner's first rest, and of its longest, milliseconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        chain_id: int,
        codes_of: CodesOf,
        *,
        rest_ms: int,
        rest_ms_max: int,
        wall_ms: Callable[[], int],
    ) -> None:
        self._ledger = ledger
        self._chain_id = chain_id
        self._codes_of = codes_of
        self._rest_ms, self._rest_ms_max = rest_ms, rest_ms_max
        self._wall_ms = wall_ms
        self._open: dict[str, OwnersCharge] = {}  # by the settlement's key
        self._judged: OrderedDict[str, bool] = OrderedDict()  # settlement's key -> whether it might be sent
        self._rests: OrderedDict[bytes, AgentRest] = OrderedDict()
        self._poor_until_ms: OrderedDict[bytes, int] = OrderedDict()  # owners without room for a settlement
        self._has_settled: OrderedDict[bytes, frozenset[str]] = OrderedDict()  # owner -> agents
        self._barred_until_ms: dict[str, int] = {}  # agents without room
        self._doubts: OrderedDict[bytes, str] = OrderedDict()  # owner -> agent whose settlement failed
        self._counted: OrderedDict[bytes, None] = OrderedDict()  # owners of counted doubts

    def rests_until_ms(self, owner: bytes) -> int:
        """When an owner's orders may be settled again, Unix milliseconds; 0 if they may now."""
        now_ms = self._wall_ms()
        rest = self._rests.get(owner)
        rests_ms = 0 if rest is None else rest.rests_until_ms(now_ms)
        poor_ms = self._poor_until_ms.get(owner, 0)
        return max(rests_ms, poor_ms if poor_ms > now_ms else 0)

    def is_barred(self, agent: str, owner: bytes) -> bool:
        """Whether an agent may not settle for an owner now: it wasted gas, and only it knows the owner."""
        is_known = bool(self._has_settled.get(owner, frozenset()) - {agent})
        return not is_known and self._barred_until_ms.get(agent, 0) > self._wall_ms()

    def wasted(self, agent: str, gas_used: int) -> None:
        """Charge an agent with the gas of its calls that failed in a block in which an owner acted.

        The venue's own bids have no calls of an agent: the owner alone answers for them.
        """
        if not is_agent(agent):
            return
        gas, now_ms = min(gas_used, GAS_OF_DOUBTS.most), self._wall_ms()
        found = self._ledger.take([Charge(GAS_OF_DOUBTS, (self._chain_id, agent), gas)], now_ms)
        if isinstance(found, Lack):
            self._barred_until_ms[agent] = now_ms + 1_000 * found.wait_s

    async def codes(self, orders: Sequence[LiveOrder]) -> dict[bytes, frozenset[bytes]]:
        """Read the hashes of the code that a settlement of these orders runs, by owner that has code.

        Raises:
            ChainError: no node answers.
        """
        found = await all_of(self._codes_of, orders, len(orders))
        return {live.terms.owner: hashes for live, hashes in zip(orders, found, strict=True) if hashes}

    async def codes_of_new(self, orders: Sequence[LiveOrder]) -> dict[bytes, frozenset[bytes]]:
        """As `codes`, of the owners that have not settled yet: the others cost no read of the chain.

        Raises:
            ChainError: no node answers.
        """
        return await self.codes([live for live in orders if live.terms.owner not in self._has_settled])

    def begin(
        self,
        key: str,
        orders: Sequence[LiveOrder],
        gas: int,
        codes: Mapping[bytes, frozenset[bytes]],
        *,
        is_sent: bool,
    ) -> bool:
        """Charge a settlement to the owners whose code it runs, before it is sent.

        Each order of crossed orders may call this with their common key; the settlement is charged once.

        Args:
            key: key of the settlement.
            orders: its orders.
            gas: its gas limit, units.
            codes: result of `codes_of_new`.
            is_sent: whether the relayer has it already, from an earlier process, so that nothing is charged.

        Returns:
            Whether the settlement may be sent; if not, its owners rest until there is room for them.
        """
        owners = {live.terms.owner: live.causer for live in orders}
        # Judged after the read of `codes`: the task of a crossed order may have judged the settlement
        # meanwhile, and a retry after its outcome was recorded must not charge it again.
        known = self._judged.get(key)
        if known is not None:
            return known
        self._forget_open()  # before the charge, which may need their places
        hold = Hold(()) if is_sent else self._charged(owners, codes, gas)
        _keep(self._judged, key, value=hold is not None)
        if hold is None:
            return False
        self._open[key] = OwnersCharge(owners, hold, self._wall_ms() + _AWAITED_MS)
        return True

    def settled(self, key: str, agent: str) -> dict[bytes, str]:
        """Record that a settlement of a bid, by its bidder's name, was mined and succeeded.

        Returns:
            For each owner that failed another agent's settlement before, this other agent: since the owner
            does settle, the failure counts against that agent. An owner counts so once.
        """
        charge = self._open.pop(key, None)
        if charge is None:
            return {}
        self._ledger.undo(charge.hold)
        agents = frozenset({agent} if is_agent(agent) else ())
        found: dict[bytes, str] = {}
        for owner in charge.owners:
            _keep(self._has_settled, owner, value=self._has_settled.get(owner, frozenset()) | agents)
            self._poor_until_ms.pop(owner, None)
            doubted = self._doubts.pop(owner, agent) if agents else agent
            if doubted != agent and owner not in self._counted:
                _keep(self._counted, owner, value=None)
                found[owner] = doubted
            if owner in self._rests:
                self._rests[owner].delivered(self._wall_ms())
        return found

    def failed(
        self,
        key: str,
        agent: str,
        gas_used: int,
        payers: Mapping[bytes, frozenset[bytes]],
        *,
        is_doubted: bool,
    ) -> bool:
        """Record that a settlement of a bid, by its bidder's name, failed or was not sent.

        Args:
            gas_used: units that the relayer paid for; 0 if the transaction was not mined.
            payers: owners that caused it, with the hashes of the code by which they may have done so.
            is_doubted: whether the agent may be the cause as well.

        Returns:
            False if the failure is recorded already, as by another of the settlement's orders.
        """
        charge = self._open.pop(key, None)
        if charge is None:
            return False
        self._ledger.undo(charge.hold)
        for owner in charge.owners if is_doubted and is_agent(agent) else ():
            # A second agent's failure says that the owner is the cause: no doubt is left.
            if self._doubts.pop(owner, agent) == agent:
                _keep(self._doubts, owner, value=agent)
        if payers and gas_used:
            self._pay(payers, charge.owners, gas_used)
        return True

    def _charged(
        self, owners: Mapping[bytes, str], codes: Mapping[bytes, frozenset[bytes]], gas: int
    ) -> Hold | None:
        """Charge a settlement's gas limit, and a place, to its owners that have not settled yet.

        The result is None if an owner rests, or has no room; it then rests until it may have room.
        """
        now_ms = self._wall_ms()
        if any(map(self.rests_until_ms, owners)):  # the settlement was decided before the rest began
            return None
        if not codes:
            return Hold(())
        charges = [
            *self._charges(codes, owners, gas),
            Charge(PLACES_OF_NEW_OWNERS, (self._chain_id, EVERYBODY)),
        ]
        found = self._ledger.take(charges, now_ms)
        if isinstance(found, Hold):
            return found
        wait_ms = 1_000 * max(found.wait_s, 1)
        if self._open:  # what lacks may be charged to settlements under way, and come back with them
            wait_ms = min(wait_ms, _LOOK_AGAIN_MS)
        for owner in codes:
            _keep(self._poor_until_ms, owner, value=now_ms + wait_ms)
        return None

    def _forget_open(self) -> None:
        """End the charges of settlements whose orders have left this process before their outcome."""
        now_ms = self._wall_ms()
        while self._open and (first := next(iter(self._open.items())))[1].until_ms < now_ms:
            self._ledger.undo(self._open.pop(first[0]).hold)

    def _pay(
        self, owners: Mapping[bytes, frozenset[bytes]], submitters: Mapping[bytes, str], gas_used: int
    ) -> None:
        """Charge the gas of a failed settlement to owners for good, and let them rest."""
        now_ms = self._wall_ms()
        for owner in owners:
            # The benefit of the doubt, once for each time that it settles: the agent's code may be the cause.
            if self._has_settled.pop(owner, None) is not None:
                continue
            rest = self._rests.get(owner) or AgentRest(self._rest_ms, self._rest_ms_max)
            _keep(self._rests, owner, value=rest)
            rest.failed(AgentFault.REVERTED, now_ms)
            # Each alone: an owner that lacks nothing does not wait for one that does.
            found = self._ledger.take(self._charges({owner: owners[owner]}, submitters, gas_used), now_ms)
            if isinstance(found, Lack):  # of a budget that refills
                _keep(self._poor_until_ms, owner, value=now_ms + 1_000 * found.wait_s)

    def _charges(
        self, owners: Mapping[bytes, frozenset[bytes]], submitters: Mapping[bytes, str], gas: int
    ) -> list[Charge]:
        """Charges of gas to owners; for those with code to the code, the submitters and all together, too."""
        at = self._chain_id
        charges = [Charge(GAS_OF_OWNER, (at, owner), min(gas, GAS_OF_OWNER.most)) for owner in owners]
        hashes = dict.fromkeys(code for of_owner in owners.values() for code in of_owner)
        charges += [Charge(GAS_OF_CODE, (at, code), min(gas, GAS_OF_CODE.most)) for code in hashes]
        callers = dict.fromkeys(submitters.get(owner, "") for owner, of_owner in owners.items() if of_owner)
        charges += [
            Charge(GAS_OF_NETWORK, (at, caller), min(gas, GAS_OF_NETWORK.most))
            for caller in callers
            if caller and not is_key(caller)  # a key's holder answers to the operator for its users
        ]
        if hashes:
            charges.append(Charge(GAS_OF_NEW_OWNERS, (at, EVERYBODY), min(gas, GAS_OF_NEW_OWNERS.most)))
        return charges


def _keep(table: OrderedDict[K, V], key: K, value: V) -> None:
    """Put an entry at the end of a table, which beyond AGENT_OWNERS_KEPT_MAX forgets its oldest entry."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > limits.AGENT_OWNERS_KEPT_MAX:
        table.popitem(last=False)
