"""Bids that the venue makes itself on orders that no agent trades, and the rests of those that fail.

    order of a handler (ExternalOrder)   the handler trades alone
    bridge-only order                    the source is the token that enters the bridge: nothing is traded,
                                         and the order pays for its gas

    such an order is due -> a round without agents -> the venue's own bids -> simulated, decided, settled
    its settlement fails -> a strike of the order's trader for its owner: the owner's orders of that trader
                            wait, twice as long after each strike

The trader is the handler, or the Delta contract for a bridge-only order. A handler's sale has one bid, on the
order's minimum. Its purchase has a bid that gives the handler the expected cost, if the order names one, and
a bid that gives the maximum: the handler returns the source that it does not need. A bridge-only order has
one bid, on the amount that enters the bridge after gas, fee and surplus.

Source: contracts/ExternalSettler.sol; contracts/lib/Settling.sol; ARCHITECTURE.md, "Auction".
Choice: The venue bids itself on an order of a handler, for the signed limit, and on a bridge-only order, for
    all that gas leaves; records of such rounds have the trader's address in place of an agent's name.
Choice: A bridge-only order pays the relayer, in its own token, for the expected gas on both chains, as far as
    its limit leaves that: its owner gives up nothing else, so that a gain over the limit says nothing.
Choice: A bridge-only order whose simulation takes more gas than expected pays for that from its next bid on.
Choice: A handler whose settlement failed rests as an agent does, for the orders of the same owner: the data
    is the owner's. What a settlement brings above the minimum is the owner's, too.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from .....codecs.contracts.delta_calldata import EXECUTOR
from .....codecs.eip712_orders.delta import ExternalOrder
from .....codecs.messages.agent_messages import Notice, NoticeEntry
from .....codecs.messages.vocabulary import Side
from .....config.limits import BRIDGE_ONLY_GAS_USED, OWN_BIDS_KEPT_MAX
from .....config.sections.venue import DeltaSettings
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....chain.proceeds import most_before_fee, of_purchase
from ..bids.agent_rest import AgentFault, AgentRest
from ..bids.bids import Candidate, CandidatePart, RoundOrder, asked_of, candidate_of, is_agent
from ..bids.simulation import Proven
from ..orders.live_orders import LiveOrder
from ..orders.terms import SettledOrder, bridge_only_promise, bridge_only_room, is_bridge_only
from ..settlement.settling import TellAgent

_Pair: TypeAlias = tuple[bytes, bytes]
"""The trader and the owner of orders, 20 bytes each."""
_Bid: TypeAlias = tuple[int, int]
"""(Promised raw units; raw units given: of a handler's purchase, or for gas)."""


class _Tried(Struct):
    """An order with bids: its trader's rest for its owner, and the gas of its last simulation, units."""

    rest: AgentRest
    gas: int = 0


class OwnBids:
    """The venue's own bids on one chain, with strikes and rests for recent pairs of trader and owner.

    Args:
        delta: address of the Delta contract, 20 bytes.
        relayer: account that bridge-only orders pay for gas, 20 bytes.
        wrapped_native: address of the wrapped native token, 20 bytes; empty for none.
        worth_of_gas: returns the worth of units of gas and of an order's delivery, raw units of its token.
        settings: lengths of rests.
        tell_agent: notifies an agent of the outcome of its bid's settlement.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        delta: bytes,
        relayer: bytes,
        wrapped_native: bytes,
        worth_of_gas: Callable[[RoundOrder, int], int],
        settings: DeltaSettings,
        tell_agent: TellAgent,
        wall_ms: Callable[[], int],
    ) -> None:
        self._delta = delta
        self._relayer = relayer
        self._wrapped_native = wrapped_native
        self._worth_of_gas = worth_of_gas
        self._rest_ms, self._rest_ms_max = round(settings.rest_s * 1_000), round(settings.rest_s_max * 1_000)
        self._tell_agent = tell_agent
        self._wall_ms = wall_ms
        self._rests: dict[_Pair, AgentRest] = {}
        self._of_order: dict[str, _Tried] = {}  # by order hash, as text; the last orders with bids

    def trader_of(self, order: SettledOrder) -> bytes | None:
        """Return the contract that trades an order without agents, 20 bytes; None for an order of agents."""
        if isinstance(order, ExternalOrder):
            return order.handler
        return self._delta if is_bridge_only(order, self._wrapped_native) else None

    def rests_until_ms(self, order: SettledOrder) -> int:
        """Return the end of the rest of an order's trader for its owner, Unix milliseconds; 0 without one."""
        trader = self.trader_of(order)
        rest = None if trader is None else self._rests.get((trader, order.owner))
        return 0 if rest is None else rest.rests_until_ms(self._wall_ms())

    def bids(self, round_order: RoundOrder) -> Iterator[Candidate]:
        """Yield the venue's own bids on an order; none on an order of agents."""
        order = round_order.order
        trader = self.trader_of(order)
        if trader is None:
            return
        name, pair = to_checksum(trader), (trader, order.owner)
        order_hash = to_hex(round_order.order_hash)
        rest = self._rests.pop(pair, None) or AgentRest(self._rest_ms, self._rest_ms_max)
        tried = self._of_order.pop(order_hash, None)
        self._rests[pair] = rest
        self._of_order[order_hash] = _Tried(rest, 0 if tried is None else tried.gas)
        if len(self._rests) > OWN_BIDS_KEPT_MAX:
            del self._rests[next(iter(self._rests))]
        if len(self._of_order) > OWN_BIDS_KEPT_MAX:
            del self._of_order[next(iter(self._of_order))]
        is_handled = isinstance(order, ExternalOrder)
        bids = _handled(round_order) if is_handled else self._bridge_only(round_order)
        for place, (promised, given) in enumerate(bids):
            part = CandidatePart(
                asked=round_order,
                part=round_order.part,
                promised=promised,
                given=given,
                paid=0,
                steps=(),
                leftovers=(),
                receiver=EXECUTOR if is_handled else self._relayer,
                pays_gas=not is_handled,
            )
            yield candidate_of(name, place, part)

    def tell(self, name: str, auction_id: int, entry: NoticeEntry, fault: AgentFault | None) -> None:
        """Record the outcome of a settlement without an agent, or notify an agent of its settlement's.

        Args:
            name: agent of the settlement, or the address of its trader.
            entry: notice of the outcome; an entry whose `notice` is SETTLED counts as a success.
            fault: the fault in the settlement; None without a fault.
        """
        if is_agent(name):
            self._tell_agent(name, auction_id, entry, fault)
            return
        tried = self._of_order.get(entry.order_hash)
        if tried is None:
            return  # of an earlier process, or one of very many
        if entry.notice is Notice.SETTLED:
            tried.rest.delivered(self._wall_ms())
        elif fault is not None:
            tried.rest.failed(fault, self._wall_ms(), entry.order_hash)

    def simulated(self, bid: Proven) -> None:
        """Note the gas of a simulated own bid, for which the order's next bid pays; skip an agent's bid."""
        if is_agent(bid.candidate.agent):
            return
        tried = self._of_order.get(to_hex(bid.candidate.parts[0].asked.order_hash))
        if tried is not None:
            tried.gas = bid.outcomes[0].gas

    def entering(self, live: LiveOrder) -> int | None:
        """Compute what enters the bridge by the next bid on a bridge-only sale, raw units; else None."""
        if live.terms.side is Side.BUY or not is_bridge_only(live.order, self._wrapped_native):
            return None
        order = asked_of(live)
        return None if order is None else next((sent for sent, _ in self._bridge_only(order)), None)

    def _bridge_only(self, round_order: RoundOrder) -> Iterator[_Bid]:
        terms, part = round_order.terms, round_order.part
        tried = self._of_order.get(to_hex(round_order.order_hash))
        units = (
            0 if tried is None else tried.gas + tried.gas // 8
        )  # the gas price may rise before the decision
        worth = self._worth_of_gas(round_order, max(units, BRIDGE_ONLY_GAS_USED))
        gas = min(worth, bridge_only_room(terms, part))
        promised = bridge_only_promise(terms, part, gas)
        if promised is not None:
            yield promised, gas


def _handled(round_order: RoundOrder) -> Iterator[_Bid]:
    terms, part = round_order.terms, round_order.part
    if terms.side is Side.SELL:
        yield part.dest_amount, 0
        return
    most = most_before_fee(part.src_amount, terms.fee.fee_bps)
    likely = most_before_fee(min(part.expected, part.src_amount), terms.fee.fee_bps) if part.expected else 0
    cut = of_purchase(likely, part.expected, part.src_amount, terms.fee)
    if 0 < likely < most and cut is not None:
        # Rounding a share may take one unit more.
        yield min(likely + cut.total + 1, part.src_amount), likely
    yield part.src_amount, most
