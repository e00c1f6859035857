"""Endpoints of Delta auctions: a closed round, the reasons why an order is not filled, and the agents.

A request for an open round gets the answer for an unknown round. An agent in a cool-down stays in the list of
agents; `explain` reports when all agents of an order are in a cool-down (`agentsRest`, or `agentsLate` if the
cool-down of any of them is for lateness).

Source: ARCHITECTURE.md, "Auction"; interop.md 3, GET /v2/delta/agents/list/{chainId}.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from .....codecs.iso_time import iso_ms
from .....codecs.messages.auction_messages import (
    AgentScore,
    AgentScores,
    Auction,
    Explanation,
)
from .....codecs.messages.delta_messages import AgentList
from .....codecs.messages.wire import encode
from .....config.errors import AuctionNotFound, OrderNotFound
from .....config.limits import JSON_INT_MAX, VENUE_EXPLAINED_ROUNDS_MAX
from .....crypto.addresses import to_checksum
from ....host.server.routing import HttpCall, Reply
from ....store.queries import auction_rounds, last_rounds
from ....store.rows import AuctionRound
from ....store.store import Store
from ....store.tables import AUCTION_ROUND
from ....store.units import row_of
from ...api.chain_parameter import chain_in_path
from ...api.routes import Endpoint
from ...served.served_chain import ServedChains, delta_chain_at
from ..auction.auction_record import round_of
from ..bids.agent_caller import caller_of
from ..bids.agent_rest import AgentReport
from ..bridge_desk import TransferWait
from ..explain import OrderFacts, explained
from ..intake.stored_orders import StoredOrders
from ..orders.funds import MissingFund
from ..orders.live_orders import LiveOrder
from ..orders.terms import SettledOrder
from ..resting.resting_price import RestingFacts
from ..settlement.auction_settled import with_settlements


class ChainAuctions(Protocol):
    """Interface of one chain's auctions: reports of agents, closing times of rounds, and the chain's time."""

    @property
    def chain_s(self) -> int:
        """Chain time against which the due times of TWAP slices are compared, Unix seconds; 0 if unknown."""
        ...

    def reports(self) -> Mapping[str, AgentReport]:
        """Return each agent's report of answers, settlements, faults and cool-down, by agent name."""
        ...

    def is_own(self, order: SettledOrder) -> bool:
        """Whether the venue bids on an order itself, so that no agent is asked."""
        ...

    def is_carried(self, live: LiveOrder) -> bool:
        """Whether an order's bridge, if any, carries the order at the fee that its owner signed."""
        ...

    def own_rests_until_ms(self, order: SettledOrder) -> int:
        """Return the end of the rest of an order that no agent trades, Unix milliseconds; 0 without one."""
        ...

    def owner_rests_until_ms(self, owner: bytes) -> int:
        """Return the end of an owner's rest after failed settlements, Unix milliseconds; 0 without a rest."""
        ...

    def last_round_ms(self, order_hash: bytes) -> int:
        """Return when the last auction round with an order closed, Unix milliseconds; 0 if unknown."""
        ...


class Auctions:
    """HTTP endpoints of Delta auctions: closed rounds, reasons why orders are not filled, scores of agents.

    Args:
        live: returns the order with a given hash if this process runs the order, else None.
        auctions: reports and times of each chain's auctions, by chain id.
        resting: returns, for a chain id and an order hash, the present price and the limit of a limit order
            that waits for its price; None for any other order.
        lacks: returns, for a chain id and an order hash, the owner's funds that were missing at the last
            read.
        waits: reads the bridge transfers of an order that are neither delivered nor refunded.
    """

    def __init__(
        self,
        chains: ServedChains,
        store: Store,
        live: Callable[[bytes], LiveOrder | None],
        auctions: Mapping[int, ChainAuctions],
        resting: Callable[[int, bytes], RestingFacts | None] = lambda *_: None,
        lacks: Callable[[int, bytes], Sequence[MissingFund]] = lambda *_: (),
        waits: Callable[[bytes], Awaitable[Sequence[TransferWait]]] | None = None,
    ) -> None:
        self._chains = chains
        self._store = store
        self._live = live
        self._auctions = auctions
        self._resting = resting
        self._lacks = lacks
        self._waits = waits

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints for closed rounds, reasons why an order is not filled, and agents."""
        return (
            Endpoint(
                method="GET",
                path="/v2/delta/auctions/{auctionId}",
                coroutine=self._auction,
                group="Delta auctions",
                summary="A closed round: its orders, their bids and the outcome of each bid",
                detail="Bids are sealed until the round is closed.",
                answer=Auction,
            ),
            Endpoint(
                method="GET",
                path="/v2/delta/orders/{orderId}/explain",
                coroutine=self._explain,
                cost=2,
                group="Delta auctions",
                summary="Reasons why an order is not filled, with its last rounds",
                answer=Explanation,
            ),
            Endpoint(
                method="GET",
                path="/v2/delta/agents/scores/{chainId}",
                plain=self._scores,
                group="Delta auctions",
                summary="Scores of a chain's agents: deliveries, faults and rests",
                answer=AgentScores,
            ),
            Endpoint(
                method="GET",
                path="/v2/delta/agents/list/{chainId}",
                plain=self._list_agents,
                group="Delta auctions",
                summary="Names of the agents that bid on a chain",
                answer=AgentList,
            ),
        )

    async def auction(self, auction_id: int) -> Auction:
        """Read a closed auction round, with its orders and the bids on them, from the store.

        Raises:
            AuctionNotFound: no round has this id, or the round is still open.
            StoreUnavailable: the store does not answer.
        """
        (found,) = await self._store.read(auction_rounds(auction_id))
        if not found:
            raise AuctionNotFound(field="auctionId", expected="the id of a closed round", got=auction_id)
        rows: list[AuctionRound] = [row_of(AUCTION_ROUND, values) for values in found]
        first = rows[0]
        orders = [(row.auction_id, round_of(row).order) for row in rows]
        return Auction(
            first.auction_id,
            first.chain_id,
            iso_ms(first.opened_ms),
            iso_ms(first.closed_ms),
            await with_settlements(self._store, orders),
        )

    async def explain(self, text: str, now_ms: int) -> Explanation:
        """Find the reasons why an order is not filled, and read its last auction rounds.

        Args:
            text: the order's id.
            now_ms: the time, Unix milliseconds.

        Raises:
            OrderNotFound: the venue has no order of this id.
            StoreUnavailable: the store does not answer.
        """
        (row,) = await StoredOrders(self._store).rows_of_ids([text])
        if row is None:
            raise OrderNotFound(field="orderId", got=text)
        (found,) = await self._store.read(last_rounds(row.order_hash, VENUE_EXPLAINED_ROUNDS_MAX))
        rounds = [round_of(row_of(AUCTION_ROUND, values)) for values in found]
        settled = await with_settlements(
            self._store, [(order_round.auction_id, order_round.order) for order_round in rounds]
        )
        of_chain, live = self._auctions.get(row.chain_id), self._live(row.order_hash)
        own_rests_until_ms = owner_rests_until_ms = 0
        is_own = row.kind is row.kind.EXTERNAL_ORDER
        if of_chain is not None and live is not None:
            is_own = of_chain.is_own(live.order)
            own_rests_until_ms = of_chain.own_rests_until_ms(live.order)
            owner_rests_until_ms = of_chain.owner_rests_until_ms(live.terms.owner)
        return explained(
            OrderFacts(
                row=row,
                live=live,
                rounds=[
                    replace(order_round, order=order)
                    for order_round, order in zip(rounds, settled, strict=True)
                ],
                last_round_ms=0 if of_chain is None else of_chain.last_round_ms(row.order_hash),
                agents={} if of_chain is None else of_chain.reports(),
                now_ms=now_ms,
                resting=self._resting(row.chain_id, row.order_hash),
                chain_s=0 if of_chain is None else of_chain.chain_s,
                lacks=self._lacks(row.chain_id, row.order_hash),
                waits=() if self._waits is None else await self._waits(row.order_hash),
                is_own=is_own,
                own_rests_until_ms=own_rests_until_ms,
                owner_rests_until_ms=owner_rests_until_ms,
                is_carried=of_chain is None or live is None or of_chain.is_carried(live),
            )
        )

    async def _auction(self, call: HttpCall) -> Reply:
        return Reply(200, encode(await self.auction(_auction_id(call.parameters[0]))))

    async def _explain(self, call: HttpCall) -> Reply:
        return Reply(200, encode(await self.explain(call.parameters[0], call.now_ms)))

    def _list_agents(self, call: HttpCall) -> Reply:
        served = delta_chain_at(self._chains, chain_in_path(call.parameters[0]), "chainId")
        of_chain = self._auctions.get(served.chain_id)
        return Reply(200, encode([] if of_chain is None else sorted(of_chain.reports())))

    def _scores(self, call: HttpCall) -> Reply:
        served = delta_chain_at(self._chains, chain_in_path(call.parameters[0]), "chainId")
        of_chain = self._auctions.get(served.chain_id)
        reports = {} if of_chain is None else of_chain.reports()
        return Reply(200, encode([_score(served.delta, name, reports[name]) for name in sorted(reports)]))


def _score(delta: bytes, agent: str, report: AgentReport) -> AgentScore:
    return AgentScore(
        agent=agent,
        caller=to_checksum(caller_of(delta, agent)),
        answers=report.answers,
        delivered=report.delivered,
        faults=report.faults,
        strikes=report.strikes,
        rests_until=report.rests_until_ms or None,
        orders_max=report.orders_max,
    )


def _auction_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(JSON_INT_MAX))):
        raise AuctionNotFound(field="auctionId", expected="the id of a closed round", got=text)
    return int(text)
