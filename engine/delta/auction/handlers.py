"""Bids that the venue makes itself on orders of handlers (ExternalOrder), and the rests of failing handlers.

    a due order of a handler -> a round without agents -> the venue's own bids -> simulated, decided, settled
    its settlement fails     -> a strike of the handler: its orders wait, twice as long after each strike

A handler trades alone, so that no agent is asked. A sale has one bid, on the order's minimum. A purchase has
a bid that gives the handler the expected cost, if the order names one, and a bid that gives the maximum: the
handler returns the source that it does not need.

Source: contracts/ExternalSettler.sol; ARCHITECTURE.md, "Auction".
Choice: The venue bids on an order of a handler itself, for the signed limit; records of its rounds have the
    handler's address in place of an agent's name.
Choice: A handler whose settlement failed rests as an agent does, with all of its orders; a settlement that
    brings more than the minimum is the owner's.
"""

from collections.abc import Iterator
from typing import TypeAlias

from ....codecs.eip712_orders.delta import ExternalOrder
from ....codecs.messages.agent_messages import Notice, NoticeEntry
from ....codecs.messages.vocabulary import Side
from ....config.limits import HANDLERS_KEPT_MAX
from ....crypto.addresses import to_checksum
from ...chain.proceeds import most_before_fee, of_purchase
from ..bids.agent_rest import AgentFault, AgentRest
from ..bids.bids import Candidate, CandidatePart, RoundOrder, candidate_of

_Bid: TypeAlias = tuple[int, int]
"""Raw units that a bid promises, and that it gives to the handler of a purchase (0 for a sale)."""


class Handlers:
    """Strikes and rests of the handlers of one chain's orders, of the handlers that were used last.

    Args:
        rest_ms: length of the rest after a first failed settlement, milliseconds.
        rest_ms_max: longest rest, milliseconds.
    """

    def __init__(self, rest_ms: int, rest_ms_max: int) -> None:
        self._rest_ms = rest_ms
        self._rest_ms_max = rest_ms_max
        self._rests: dict[str, AgentRest] = {}

    def rests_until_ms(self, order: ExternalOrder, now_ms: int) -> int:
        """Return when the rest of an order's handler ends, Unix milliseconds; 0 without a rest."""
        rest = self._rests.get(to_checksum(order.handler))
        return 0 if rest is None else rest.rests_until_ms(now_ms)

    def bids(self, asked: RoundOrder) -> Iterator[Candidate]:
        """Yield the venue's own bids on an order of a handler; none on any other order."""
        order = asked.order
        if not isinstance(order, ExternalOrder):
            return
        name = to_checksum(order.handler)
        known = self._rests.pop(name) if name in self._rests else None
        self._rests[name] = known or AgentRest(self._rest_ms, self._rest_ms_max)
        if len(self._rests) > HANDLERS_KEPT_MAX:
            del self._rests[next(iter(self._rests))]
        for place, (promised, given) in enumerate(_bids(asked)):
            part = CandidatePart(asked, asked.part, promised, given, 0, (), ())
            yield candidate_of(name, place, part)

    def tell(self, name: str, entry: NoticeEntry, fault: AgentFault | None, now_ms: int) -> bool:
        """Record the outcome of a settlement by a handler.

        Args:
            name: agent of the settlement.
            entry: notice of the outcome; an entry whose `notice` is SETTLED counts as a success.
            fault: the fault in the settlement; None without a fault.

        Returns:
            Whether a handler has this name; else the outcome is an agent's.
        """
        rest = self._rests.get(name)
        if rest is None:
            return False
        if entry.notice is Notice.SETTLED:
            rest.delivered(now_ms)
        elif fault is not None:
            rest.failed(fault, now_ms, entry.order_hash)
        return True


def _bids(asked: RoundOrder) -> Iterator[_Bid]:
    terms, part = asked.terms, asked.part
    if terms.side is Side.SELL:
        yield part.dest_amount, 0
        return
    most = most_before_fee(part.src_amount, terms.fee.fee_bps)
    likely = most_before_fee(min(part.expected, part.src_amount), terms.fee.fee_bps) if part.expected else 0
    cut = of_purchase(likely, part.expected, part.src_amount, terms.fee)
    if 0 < likely < most and cut is not None:
        yield min(likely + cut.total + 1, part.src_amount), likely  # a rounded share takes one unit more
    yield part.src_amount, most
