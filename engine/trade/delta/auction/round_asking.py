"""Asks all agents of an auction round for bids at once and collects their answers until the round closes.

Source: codecs/messages/agent_messages.py; ARCHITECTURE.md, "Auction".
Choice: A round ends early once every agent has answered.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

import structlog
import trio
from msgspec import Struct

from .....codecs.messages.agent_messages import AuctionOrder, Notice, SolveRequest
from .....codecs.messages.wire import encode
from .....crypto.addresses import to_checksum
from .....feeds.slices import Slices
from ...served.served_chain import ServedChain
from ..bids.agent_caller import caller_of, with_caller
from ..bids.agent_client import AgentFailure
from ..bids.agent_pace import AgentQuestion
from ..bids.agent_rest import SLOW
from ..bids.bids import Answer, Rejection, RoundOrder, answer_of, shown
from .agents import Agents
from .due_orders import AgentNames

_log = structlog.get_logger("cambist.venue")


class Round(Struct, frozen=True):
    """An open auction round: its orders, and the agents that are asked for bids on them.

    Attributes:
        opened_ms: time of the opening, Unix milliseconds.
        agents: names of the agents asked about an order, by order hash.
        questions: requests to agents that have not answered yet, by agent name.
        unsettled: hashes of the orders for which this round has found no settlement so far.
        considered: hashes of the orders that an agent has answered about, with or without bids.
    """

    auction_id: int
    opened_ms: int
    orders: Mapping[bytes, RoundOrder]
    agents: Mapping[bytes, AgentNames]
    questions: dict[str, AgentQuestion]
    unsettled: set[bytes]
    considered: set[bytes]


class RoundAsking:
    """Sends the requests for bids of auction rounds to the agents of one chain, and collects the answers.

    Args:
        served: the chain, with its contracts and its price of gas.
        round_s: length of a round, seconds.
        slices: runs the encoding of requests in short steps.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        agents: Agents,
        served: ServedChain,
        *,
        round_s: float,
        slices: Slices,
        wall_ms: Callable[[], int],
    ) -> None:
        self._agents = agents
        self._served = served
        self._round_s = round_s
        self._slices = slices
        self._wall_ms = wall_ms

    async def answers(self, this: Round) -> tuple[list[Answer], list[Rejection]]:
        """Ask the agents of a round for bids; return the answers once all have answered or the round closes.

        The orders that an agent had time to consider are added to `this.considered`.

        Returns:
            (answers in order of arrival; one rejection for each agent that was asked and gave no readable
            answer in time).

        Raises:
            ServiceUnavailable: the price of gas is unknown.
        """
        answers: list[Answer] = []
        rejections: list[Rejection] = []
        # Before the requests are encoded: `closes_at_ms`, which agents are told, counts from the opening.
        closes_at = trio.current_time() + self._round_s

        async def ask(name: str, body: bytes, hashes: Sequence[bytes]) -> None:
            def arrived_ms() -> int:
                return self._wall_ms() - this.opened_ms

            try:
                answer = await self._agents.ask(
                    name,
                    body,
                    hashes,
                    this.questions[name],
                    deadline_s=closes_at - trio.current_time(),
                    read=lambda raw: answer_of(name, len(answers), arrived_ms(), raw),
                )
            except AgentFailure as failure:
                if failure.fault is None:
                    _log.warning("an agent was not asked", agent=name, detail=failure.detail)
                else:
                    notice = Notice.LATE if failure.fault in SLOW else Notice.MALFORMED
                    rejections.append(Rejection(name, arrived_ms(), notice, failure.detail))
                    self._agents.failed(name, this.auction_id, failure.fault)
            else:
                not_reached = frozenset[bytes]() if answer is None else answer.not_reached
                this.considered.update(key for key in hashes if key not in not_reached)
                if answer is None:
                    self._agents.answered(name)
                else:
                    answers.append(answer)
            # `Agents.ask` has freed the agent's capacity; the round's end frees that of the remaining
            # questions, and must not free this capacity twice.
            del this.questions[name]

        questions = await self._questions(this)
        async with trio.open_nursery() as nursery:
            for name, (body, hashes) in questions.items():
                nursery.start_soon(ask, name, body, hashes)
        return answers, rejections

    async def _questions(self, this: Round) -> dict[str, tuple[bytes, Sequence[bytes]]]:
        """Encode the request to each agent.

        Agents that are asked about the same orders share the encoding.

        Returns:
            (body of the request, hashes of its orders) by agent name.
        """
        as_shown = await self._slices.work(_all_shown(this.orders.values()))
        bodies: dict[Sequence[bytes], bytes] = {}
        questions: dict[str, tuple[bytes, Sequence[bytes]]] = {}
        for name in this.questions:
            hashes = tuple([key for key in this.orders if name in this.agents[key]])
            if hashes not in bodies:
                bodies[hashes] = self._request(this, [as_shown[key] for key in hashes])
            questions[name] = with_caller(bodies[hashes], caller_of(self._served.delta, name)), hashes
        return questions

    def _request(self, this: Round, orders: Sequence[AuctionOrder]) -> bytes:
        served = self._served
        return encode(
            SolveRequest(
                auction_id=this.auction_id,
                chain_id=served.chain_id,
                closes_at_ms=this.opened_ms + round(self._round_s * 1_000),
                delta=to_checksum(served.delta),
                executor=to_checksum(served.executor),
                rfq=to_checksum(served.rfq),
                wrapped_native=to_checksum(served.tokens.wrapped_native),
                gas_price_wei=str(served.gas.gas_price_wei),
                orders=tuple(orders),
                sent_at_ms=self._wall_ms(),
            )
        )


def _all_shown(orders: Iterable[RoundOrder]) -> Generator[None, None, dict[bytes, AuctionOrder]]:
    as_shown: dict[bytes, AuctionOrder] = {}
    for order in orders:
        as_shown[order.order_hash] = shown(order)
        yield
    return as_shown
