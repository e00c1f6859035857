"""What is kept of a closed round: a row for each of its orders, with the bids as they are told. Pure.

The record names every bid on the order, the winner's first, then by rank, then what was refused. An agent
that answered too late, or nothing that can be read, stands with every order that it might have bid for.

Source: design, "Auction" ("Every round is kept"); codecs/auction_messages.py.
Choice: a record keeps the first 64 bids on an order, and says how many there were more.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ....codecs.auction_messages import AuctionBid, AuctionedOrder, OrderRound, decode_auctioned_order
from ....codecs.wire import encode
from ....config import limits
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...store.orders import order_id
from ...store.rows import AuctionRound
from .auction import Decision, JudgedBid, Verdict
from .bids import Rejection, RoundOrder
from .record import iso_ms


class RoundTimes(Struct, frozen=True):
    """Which round, and when it was. Unix milliseconds."""

    auction_id: int
    chain_id: int
    opened_ms: int
    closed_ms: int


def round_rows(
    times: RoundTimes, decision: Decision, rejections: Sequence[Rejection]
) -> dict[bytes, AuctionRound]:
    """The row of each order of a round, by its hash."""
    return {
        order_hash: AuctionRound(
            times.auction_id,
            order_hash,
            times.chain_id,
            times.opened_ms,
            times.closed_ms,
            None if verdict.winner is None else verdict.winner.candidate.agent,
            encode(auctioned(verdict, rejections)),
        )
        for order_hash, verdict in decision.verdicts.items()
    }


def auctioned(verdict: Verdict, rejections: Iterable[Rejection]) -> AuctionedOrder:
    """What a round made of one order."""
    asked = verdict.asked
    bids = [_judged(judged) for judged in verdict.bids]
    bids += [_rejected(rejection, asked) for rejection in rejections if _is_about(rejection, asked)]
    most = limits.VENUE_AUCTION_BIDS_MAX
    return AuctionedOrder(
        order_hash=to_hex(asked.order_hash),
        order_id=str(order_id(asked.order_hash)),
        side=asked.terms.side,
        src_token=to_checksum(asked.terms.src_token),
        dest_token=to_checksum(asked.terms.dest_token),
        src_amount=str(asked.part.src_amount),
        dest_amount=str(asked.part.dest_amount),
        winner=None if verdict.winner is None else verdict.winner.candidate.agent,
        runners_up=tuple([bid.candidate.agent for bid in verdict.runners_up]),
        bids=tuple(bids[:most]),
        bids_left_out=max(0, len(bids) - most),
    )


def round_of(row: AuctionRound) -> OrderRound:
    """A kept round as its order saw it."""
    return OrderRound(
        row.auction_id,
        iso_ms(row.opened_ms),
        iso_ms(row.closed_ms),
        decode_auctioned_order(row.record),
    )


def _is_about(rejection: Rejection, asked: RoundOrder) -> bool:
    if rejection.orders:
        return asked.order_hash in rejection.orders
    return asked.document.admits(rejection.agent)


def _judged(judged: JudgedBid) -> AuctionBid:
    candidate = judged.bid.candidate
    return AuctionBid(
        agent=candidate.agent,
        notice=judged.notice,
        promised_amount=str(candidate.parts[judged.at].promised),
        simulated_amount=str(judged.bid.amount(judged.at)),
        net_amount=str(judged.net),
        gas=judged.bid.outcomes[judged.at].gas,
        arrival_ms=candidate.arrived_ms,
        crossed_with=tuple(
            [to_hex(part.asked.order_hash) for at, part in enumerate(candidate.parts) if at != judged.at]
        ),
        detail=judged.detail,
    )


def _rejected(rejection: Rejection, asked: RoundOrder) -> AuctionBid:
    promised = rejection.orders.get(asked.order_hash)
    simulated = rejection.simulated.get(asked.order_hash)
    return AuctionBid(
        agent=rejection.agent,
        notice=rejection.notice,
        promised_amount=None if promised is None else str(promised),
        simulated_amount=None if simulated is None else str(simulated),
        net_amount=None,
        gas=None,
        arrival_ms=rejection.arrived_ms,
        crossed_with=tuple([to_hex(other) for other in rejection.orders if other != asked.order_hash]),
        detail=rejection.detail[: limits.VENUE_AUCTION_DETAIL_CHARS_MAX],
    )
