"""GET /v2/delta/auctions: the latest closed rounds of a chain, in full or without whose orders they were.

    every client                         bids and outcomes; no id and hash of an order or a round, no
                                         transaction, no text of a bid, times to the second; `0x` in place
                                         of the contract that trades an order without agents
    an agent, by its own credentials     likewise, and in full the rounds in which it bid
    an operator's key                    all rounds in full

The id of a round leads to the orders' hashes and ids (GET /v2/delta/auctions/{auctionId}), and a hash or id
to the owner. An id is the time at which the round opened: exact times would show it. Cut times leave a
thousand ids to guess, each at the cost of a request. The public list is read once for all who ask within
PUBLIC_ROUNDS_S; other answers are made for each request.

Choice: An agent signs its request for rounds as in spec 3.10, with the secret that the venue signs its
    requests to the agent with; a wrong signature is 401.
Choice: The public list of rounds shows amounts and tokens of orders. A text of a bid is left out, since it
    may quote hashes; the bid's `notice` says why it lost.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from .....codecs.iso_time import iso_ms
from .....codecs.messages.auction_messages import (
    AuctionedOrder,
    AuctionsQuery,
    ListedOrder,
    ListedRound,
    decode_auctions_query,
)
from .....codecs.messages.wire import encode
from .....config.timeouts import PUBLIC_ROUNDS_S
from .....feeds.slices import Slices
from ....host.server.routing import HttpCall, Reply
from ....store.queries import Query, latest_rounds
from ....store.rows import AuctionRound
from ....store.store import Store
from ....store.tables import AUCTION_ROUND
from ....store.units import row_of
from ...api.routes import Endpoint
from ...api.shared_answers import SharedAnswers
from ...makers.signed_callers import SignedCallers
from ...served.served_chain import ServedChains, delta_chain_at
from ..auction.auction_record import round_of
from ..bids.bids import is_agent
from ..settlement.auction_settled import with_settlements

_LISTED_MS = 86_400_000
"""Age of the oldest listed round, milliseconds; a round's id is at least its opening, Unix milliseconds."""
_OWN_BID = "0x"  # no agent's name begins so
_PUBLIC_MS = round(PUBLIC_ROUNDS_S * 1_000)


class RoundList:
    """HTTP endpoint GET /v2/delta/auctions: the latest closed rounds of a chain.

    Args:
        agents: recognises agents by the signatures of their requests.
        is_operator: returns whether a request has an operator's API key.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        chains: ServedChains,
        store: Store,
        agents: SignedCallers,
        is_operator: Callable[[HttpCall], bool],
        wall_ms: Callable[[], int],
    ) -> None:
        self._chains = chains
        self._store = store
        self._agents = agents
        self._is_operator = is_operator
        self._public = SharedAnswers(wall_ms)
        self._slices = Slices()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /v2/delta/auctions, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/v2/delta/auctions",
                coroutine=self._show,
                cost=2,
                group="Delta auctions",
                summary="The latest closed rounds of a chain, the latest first",
                detail="Ids, hashes, transactions and texts of bids are null or empty, and times cut to the "
                "second, except with an operator's API key, and for an agent that signs its request in the "
                "rounds in which it bid.",
                query=AuctionsQuery,
                answer=tuple[ListedRound, ...],
            ),
        )

    async def _show(self, call: HttpCall) -> Reply:
        query = decode_auctions_query(call.request.query or b"")
        chain_id = delta_chain_at(self._chains, query.chain_id, "chainId").chain_id
        after = call.now_ms - _LISTED_MS
        rounds = partial(self._rounds, latest_rounds(chain_id, after, query.limit))
        if self._is_operator(call):
            return Reply(200, await rounds(lambda _: True))
        agent = self._agents.name(call)
        if agent is not None:
            return Reply(200, await rounds(partial(has_bid, agent=agent)))
        make = partial(rounds, lambda _: False)
        return Reply(200, await self._public.body((chain_id, query.limit), _PUBLIC_MS, make))

    async def _rounds(self, query: Query, is_full: Callable[[ListedRound], bool]) -> bytes:
        """Read rounds from the store, and encode them.

        The records of 200 orders with 64 bids each take over 10 ms: they are decoded and encoded in slices.

        Args:
            query: selects the orders of the rounds, those of one round one after the other.
            is_full: whether the caller sees a round in full.
        """
        (found,) = await self._store.read(query)
        rows: list[AuctionRound] = [row_of(AUCTION_ROUND, values) for values in found]
        orders = await self._slices.work(_records(rows))
        settled = await with_settlements(self._store, orders)
        return await self._slices.work(_encoded(list(zip(rows, settled, strict=True)), is_full))


def _records(
    rows: Sequence[AuctionRound],
) -> Generator[None, None, list[tuple[int, AuctionedOrder]]]:
    """Decode the stored records of orders: (id of the round, order); yields after each."""
    orders = []
    for row in rows:
        orders.append((row.auction_id, round_of(row).order))
        yield
    return orders


def _encoded(
    entries: Sequence[tuple[AuctionRound, AuctionedOrder]], is_full: Callable[[ListedRound], bool]
) -> Generator[None, None, bytes]:
    """Encode rounds as a JSON list; yields after each round.

    Args:
        entries: stored row and record of each order, those of one round one after the other.
    """
    bodies = []
    for _, group in groupby(entries, lambda entry: entry[0].auction_id):
        found = _listed(list(group))
        bodies.append(encode(found if is_full(found) else public_round(found)))
        yield
    return b"[%b]" % b",".join(bodies)


def _listed(entries: Sequence[tuple[AuctionRound, AuctionedOrder]]) -> ListedRound:
    """Describe a closed round by the stored rows of its orders, and their records with settlements."""
    first, _ = entries[0]
    return ListedRound(
        auction_id=first.auction_id,
        chain_id=first.chain_id,
        opened_at=iso_ms(first.opened_ms),
        closed_at=iso_ms(first.closed_ms),
        orders=tuple([listed_order(order) for _, order in entries]),
    )


def listed_order(order: AuctionedOrder) -> ListedOrder:
    """Convert the record of an order of a closed round to an item of the list, in full."""
    return ListedOrder(
        order_hash=order.order_hash,
        order_id=order.order_id,
        side=order.side,
        src_token=order.src_token,
        dest_token=order.dest_token,
        src_amount=order.src_amount,
        dest_amount=order.dest_amount,
        winner=order.winner,
        runners_up=order.runners_up,
        bids=order.bids,
        bids_left_out=order.bids_left_out,
        part_min=order.part_min,
        settlements=order.settlements,
        margin_amount=_margin(order),
    )


def _margin(order: AuctionedOrder) -> str | None:
    """Compute by how much the winner's surplus exceeds that of the best other bid; None without the two bids.

    The winning bid is the first, the others follow by rank, and bids that were not ranked have no surplus.
    """
    ranked = [int(bid.surplus_amount) for bid in order.bids if bid.surplus_amount is not None]
    return None if order.winner is None or len(ranked) < 2 else str(ranked[0] - ranked[1])


def has_bid(found: ListedRound, agent: str) -> bool:
    """Whether an agent has bid in a round, or answered it wrongly or late.

    The venue has told such an agent the hashes and ids of the round's orders when it asked for bids.
    """
    return any(bid.agent == agent for order in found.orders for bid in order.bids)


def public_round(found: ListedRound) -> ListedRound:
    """Copy a round without all that leads to its orders or their owners."""
    return ListedRound(
        auction_id=None,
        chain_id=found.chain_id,
        opened_at=_to_second(found.opened_at),
        closed_at=_to_second(found.closed_at),
        orders=tuple([_public_order(order) for order in found.orders]),
    )


def _public_order(order: ListedOrder) -> ListedOrder:
    return replace(
        order,
        order_hash=None,
        order_id=None,
        winner=None if order.winner is None else _public_name(order.winner),
        runners_up=tuple([_public_name(name) for name in order.runners_up]),
        bids=tuple(
            [replace(bid, agent=_public_name(bid.agent), crossed_with=(), detail="") for bid in order.bids]
        ),
        settlements=tuple(
            [
                replace(one, agent=_public_name(one.agent), tx_hash=None, detail="")
                for one in order.settlements
            ]
        ),
    )


def _public_name(agent: str) -> str:
    """Return an agent's name, or `0x` for the contract of an order that no agent trades.

    That contract may be the owner's own handler.
    """
    return agent if is_agent(agent) else _OWN_BID


def _to_second(iso: str) -> str:
    """Cut a time, such as 2026-01-01T00:00:00.123Z, to its second."""
    return f"{iso.partition('.')[0]}.000Z"
