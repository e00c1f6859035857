"""Makes the stored records of a closed auction round: a row for each order, with the bids on it. Pure.

A record lists the bids on its order: the winner first, then the others by rank, then the rejected bids. An
agent that answered too late, or unreadably, is listed with every order that it might have bid for. A record
keeps the first 64 bids on the order, and the number of the others.

Source: ARCHITECTURE.md, "Auction"; codecs/messages/auction_messages.py.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from .....codecs.iso_time import iso_ms
from .....codecs.messages.auction_messages import (
    AuctionBid,
    AuctionedOrder,
    OrderRound,
    decode_auctioned_order,
)
from .....codecs.messages.wire import encode
from .....config import limits
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....store.rows import AuctionRound
from ...orders.order_units import order_id
from ..bids.bids import Rejection, RoundOrder
from .auction import AuctionVerdict, JudgedBid


class RoundTimes(Struct, frozen=True):
    """Id and chain of an auction round, and the times at which it opened and closed, Unix milliseconds."""

    auction_id: int
    chain_id: int
    opened_ms: int
    closed_ms: int


class Rejections:
    """Rejections of an auction round: rejected bids by order hash, and agents' wholly rejected answers."""

    def __init__(self, rejections: Iterable[Rejection]) -> None:
        self._of_order: dict[bytes, list[tuple[int, Rejection]]] = {}
        self._of_all: list[tuple[int, Rejection]] = []
        for place, rejection in enumerate(rejections):
            if not rejection.orders:
                self._of_all.append((place, rejection))
            for order_hash in rejection.orders:
                self._of_order.setdefault(order_hash, []).append((place, rejection))

    def __contains__(self, order_hash: bytes) -> bool:
        """Whether a rejected bid names the order with this hash."""
        return order_hash in self._of_order

    def about(self, order: RoundOrder) -> list[Rejection]:
        """Return the rejections that concern an order, in order of arrival.

        The result has the rejected bids that name the order, and the wholly rejected answers of agents that
        may bid for the order.
        """
        found = [entry for entry in self._of_all if order.document.admits(entry[1].agent)]
        found += self._of_order.get(order.order_hash, ())
        return [rejection for _, rejection in sorted(found, key=lambda entry: entry[0])]


def round_rows(
    times: RoundTimes, verdicts: Iterable[AuctionVerdict], rejections: Rejections
) -> Iterator[AuctionRound]:
    """Yield the store's row for each order of a closed auction round, with the bids on the order."""
    for verdict in verdicts:
        yield AuctionRound(
            auction_id=times.auction_id,
            order_hash=verdict.asked.order_hash,
            chain_id=times.chain_id,
            opened_ms=times.opened_ms,
            closed_ms=times.closed_ms,
            winner=None if verdict.winner is None else verdict.winner.candidate.agent,
            record=encode(_auctioned(verdict, rejections.about(verdict.asked))),
        )


def _auctioned(verdict: AuctionVerdict, refused: Sequence[Rejection]) -> AuctionedOrder:
    """Make a round's record of one order, with at most VENUE_AUCTION_BIDS_MAX bids.

    Only these bids are converted, since agents may send very many.
    """
    order = verdict.asked
    most = limits.VENUE_AUCTION_BIDS_MAX
    bids = [_judged(judged) for judged in verdict.bids[:most]]
    bids += [_rejected(rejection, order) for rejection in refused[: most - len(bids)]]
    return AuctionedOrder(
        order_hash=to_hex(order.order_hash),
        order_id=str(order_id(order.order_hash)),
        side=order.terms.side,
        src_token=to_checksum(order.terms.src_token),
        dest_token=to_checksum(order.terms.dest_token),
        src_amount=str(order.part.src_amount),
        dest_amount=str(order.part.dest_amount),
        winner=None if verdict.winner is None else verdict.winner.candidate.agent,
        runners_up=tuple([bid.candidate.agent for bid in verdict.runners_up]),
        bids=tuple(bids),
        bids_left_out=len(verdict.bids) + len(refused) - len(bids),
        part_min=str(order.part_min) if order.part_min else None,
    )


def round_of(row: AuctionRound) -> OrderRound:
    """Convert the stored row of an order's auction round into the form that the API returns."""
    return OrderRound(
        row.auction_id,
        iso_ms(row.opened_ms),
        iso_ms(row.closed_ms),
        decode_auctioned_order(row.record),
    )


def _judged(judged: JudgedBid) -> AuctionBid:
    candidate = judged.bid.candidate
    part = candidate.parts[judged.at]
    return AuctionBid(
        agent=candidate.agent,
        notice=judged.notice,
        promised_amount=str(part.promised),
        simulated_amount=str(judged.bid.amount(judged.at)),
        net_amount=str(judged.net),
        surplus_amount=str(judged.surplus),
        part_amount=None if part.part_amount is None else str(part.part_amount),
        gas=judged.bid.outcomes[judged.at].gas,
        arrival_ms=candidate.arrived_ms,
        crossed_with=tuple(
            [to_hex(other.asked.order_hash) for at, other in enumerate(candidate.parts) if at != judged.at]
        ),
        detail=judged.detail,
    )


def _rejected(rejection: Rejection, order: RoundOrder) -> AuctionBid:
    promised = rejection.orders.get(order.order_hash)
    simulated = rejection.simulated.get(order.order_hash)
    part_amount = rejection.parts.get(order.order_hash)
    return AuctionBid(
        agent=rejection.agent,
        notice=rejection.notice,
        promised_amount=None if promised is None else str(promised),
        simulated_amount=None if simulated is None else str(simulated),
        net_amount=None,
        surplus_amount=None,
        part_amount=None if part_amount is None else str(part_amount),
        gas=None,
        arrival_ms=rejection.arrived_ms,
        crossed_with=tuple([to_hex(other) for other in rejection.orders if other != order.order_hash]),
        detail=rejection.detail,
    )
