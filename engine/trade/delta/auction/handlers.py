"""Bids that the venue makes itself on orders of handlers (ExternalOrder), and the rests of failing handlers.

    a due order of a handler -> a round without agents -> the venue's own bids -> simulated, decided, settled
    its settlement fails     -> a strike of the handler for the order's owner: the owner's orders of that
                                handler wait, twice as long after each strike

A handler trades alone, so that no agent is asked. A sale has one bid, on the order's minimum. A purchase has
a bid that gives the handler the expected cost, if the order names one, and a bid that gives the maximum: the
handler returns the source that it does not need.

Source: contracts/ExternalSettler.sol; ARCHITECTURE.md, "Auction".
Choice: The venue bids on an order of a handler itself, for the signed limit; records of its rounds have the
    handler's address in place of an agent's name.
Choice: A handler whose settlement failed rests as an agent does, for the orders of the same owner: the data
    is the owner's. What a settlement brings above the minimum is the owner's, too.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from .....codecs.eip712_orders.delta import ExternalOrder
from .....codecs.messages.agent_messages import Notice, NoticeEntry
from .....codecs.messages.vocabulary import Side
from .....config.limits import HANDLERS_KEPT_MAX
from .....config.sections.venue import DeltaSettings
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....chain.proceeds import most_before_fee, of_purchase
from ..bids.agent_rest import AgentFault, AgentRest
from ..bids.bids import Candidate, CandidatePart, RoundOrder, candidate_of
from ..settlement.settling import TellAgent

_Pair: TypeAlias = tuple[bytes, bytes]
"""A handler and an owner of orders, 20 bytes each."""
_Bid: TypeAlias = tuple[int, int]
"""Raw units that a bid promises, and that it gives to the handler of a purchase (0 for a sale)."""


class Handlers:
    """Failures (strikes) and pauses (rests) of one chain's handlers, for recent pairs of handler and owner.

    Args:
        settings: lengths of rests.
        tell_agent: notifies an agent of the outcome of its bid's settlement.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, settings: DeltaSettings, tell_agent: TellAgent, wall_ms: Callable[[], int]) -> None:
        self._rest_ms, self._rest_ms_max = round(settings.rest_s * 1_000), round(settings.rest_s_max * 1_000)
        self._tell_agent = tell_agent
        self._wall_ms = wall_ms
        self._rests: dict[_Pair, AgentRest] = {}
        self._of_order: dict[str, AgentRest] = {}  # by order hash, as text; the last orders with bids

    def rests_until_ms(self, order: ExternalOrder) -> int:
        """Return the end of a handler's rest for the order's owner, Unix milliseconds; 0 without a rest."""
        rest = self._rests.get((order.handler, order.owner))
        return 0 if rest is None else rest.rests_until_ms(self._wall_ms())

    def bids(self, round_order: RoundOrder) -> Iterator[Candidate]:
        """Yield the venue's own bids on an order of a handler; none on any other order."""
        order = round_order.order
        if not isinstance(order, ExternalOrder):
            return
        name, pair = to_checksum(order.handler), (order.handler, order.owner)
        order_hash = to_hex(round_order.order_hash)
        rest = self._rests.pop(pair, None) or AgentRest(self._rest_ms, self._rest_ms_max)
        self._of_order.pop(order_hash, None)
        self._rests[pair] = self._of_order[order_hash] = rest
        if len(self._rests) > HANDLERS_KEPT_MAX:
            del self._rests[next(iter(self._rests))]
        if len(self._of_order) > HANDLERS_KEPT_MAX:
            del self._of_order[next(iter(self._of_order))]
        for place, (promised, given) in enumerate(_bids(round_order)):
            part = CandidatePart(
                asked=round_order,
                part=round_order.part,
                promised=promised,
                given=given,
                paid=0,
                steps=(),
                leftovers=(),
            )
            yield candidate_of(name, place, part)

    def tell(self, name: str, auction_id: int, entry: NoticeEntry, fault: AgentFault | None) -> None:
        """Record the outcome of a handler's settlement, or notify an agent of the outcome of its settlement.

        Args:
            name: agent of the settlement, or the address of its handler.
            entry: notice of the outcome; an entry whose `notice` is SETTLED counts as a success.
            fault: the fault in the settlement; None without a fault.
        """
        rest = self._of_order.get(entry.order_hash)
        if rest is None:
            self._tell_agent(name, auction_id, entry, fault)
        elif entry.notice is Notice.SETTLED:
            rest.delivered(self._wall_ms())
        elif fault is not None:
            rest.failed(fault, self._wall_ms(), entry.order_hash)


def _bids(round_order: RoundOrder) -> Iterator[_Bid]:
    terms, part = round_order.terms, round_order.part
    if terms.side is Side.SELL:
        yield part.dest_amount, 0
        return
    most = most_before_fee(part.src_amount, terms.fee.fee_bps)
    likely = most_before_fee(min(part.expected, part.src_amount), terms.fee.fee_bps) if part.expected else 0
    cut = of_purchase(likely, part.expected, part.src_amount, terms.fee)
    if 0 < likely < most and cut is not None:
        yield min(likely + cut.total + 1, part.src_amount), likely  # rounding a share may take one unit more
    yield part.src_amount, most
