"""Runs all bidding strategies of an agent at once on an auction round, and collects their bids in time.

closes_at_ms - reserve_s    bids are due: `RoundMarket.deadline`
reserve_s / 2 later         strategies that still run are cut off

`closes_at_ms` is the round's close, from the request; `reserve_s` is the agent's setting.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import structlog
import trio
from msgspec import Struct

from ....codecs.amounts import parse_amount
from ....codecs.messages.agent_messages import (
    NotifyRequest,
    SolverBid,
    SolveRequest,
    SolveResponse,
    decode_solve_response,
)
from ....codecs.messages.wire import encode
from ....config import limits
from ....config.errors import InvalidInput, UnsupportedChain
from ....config.sections.agent import AgentSettings
from ....config.timeouts import AGENT_SOLVE_S_MAX
from ....crypto.addresses import parse_address, to_checksum
from .market import AgentChain, RoundMarket
from .orders import OpenOrder, open_orders
from .strategy import SolverStrategy, tell

_CONTRACTS = (
    ("delta", "delta", "delta_contract"),
    ("executor", "executor", "executor"),
    ("rfq", "rfq", "rfq_contract"),
    ("wrapped_native", "wrappedNative", "wrapped_native"),
)
"""Rows (attribute of a solve request, its JSON key, name of the chain's contract address it must equal)."""

_log = structlog.get_logger("cambist.agent")


class SolverStatistics(Struct, frozen=True, rename="camel"):
    """Counters of an agent's solver since its start.

    Attributes:
        rounds, orders, bids: number of rounds that were solved in time, of orders in these rounds, and of
            bids returned.
        late: number of rounds that arrived too late to be solved.
        faults: name of each strategy -> number of its failures: exceptions, time-outs, invalid bids.
        notices: kind of notice -> number of notices received about bids.
    """

    rounds: int
    orders: int
    bids: int
    late: int
    faults: Mapping[str, int]
    notices: Mapping[str, int]


class Solver:
    """Solver of auction rounds, which runs the agent's bidding strategies on each round.

    Args:
        chains: chain id -> chain that the agent serves.
        strategies: strategies by name, in the sequence of the settings.
        wall_ms: function that returns the time of the wall clock, Unix milliseconds.
    """

    def __init__(
        self,
        chains: Mapping[int, AgentChain],
        strategies: Mapping[str, SolverStrategy],
        settings: AgentSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._chains = chains
        self._strategies = strategies
        self._settings = settings
        self._wall_ms = wall_ms
        self._rounds = self._orders = self._bids = self._late = 0
        self._faults = Counter(dict.fromkeys(strategies, 0))  # an alarm sees the step from 0 to 1
        self._notices: Counter[str] = Counter()

    def statistics(self) -> SolverStatistics:
        """Return the counters of rounds, orders, bids, failures and notices since the start."""
        return SolverStatistics(
            self._rounds, self._orders, self._bids, self._late, dict(self._faults), dict(self._notices)
        )

    async def solve(self, request: SolveRequest) -> SolveResponse:
        """Return the bids for an auction round, and the orders that the strategies did not reach in time.

        The bids are in the sequence of the strategies. The last bids are left out if all bids together exceed
        the number of bids or bytes that an answer may have. A round that arrives too late gets no bids.

        Raises:
            UnsupportedChain: the agent does not serve the request's chain.
            InvalidInput: a member of the request is malformed, or names other contracts than the settings;
                the error names the member.
        """
        place = self._place_of(request)
        orders = open_orders(request)
        gas_price_wei = parse_amount(request.gas_price_wei, "gasPriceWei")
        reserve_s = self._settings.reserve_s
        # Both times by the venue's clock, if the venue sends them: the agent's clock may differ from it.
        now_ms = self._wall_ms() if request.sent_at_ms is None else request.sent_at_ms
        left_s = min((request.closes_at_ms - now_ms) / 1_000, AGENT_SOLVE_S_MAX) - reserve_s
        if left_s <= 0:
            self._late += 1
            _log.warning("a round arrived too late", auction=request.auction_id, by_s=round(-left_s, 3))
            return SolveResponse((), tuple([order.order_hash for order in request.orders]))
        deadline = trio.current_time() + left_s
        market = self._market(place, orders, gas_price_wei, deadline)
        found: dict[str, Sequence[SolverBid]] = {}
        async with trio.open_nursery() as nursery:
            for name in self._strategies:
                nursery.start_soon(self._ask, name, request, market, deadline + reserve_s / 2, found)
        # By the sequence of the settings, not of completion: `_that_fit` leaves out the last ones.
        all_bids = [bid for name in self._strategies for bid in found.get(name, ())]
        bids = _that_fit(all_bids)
        if len(bids) < len(all_bids):
            left_out = len(all_bids) - len(bids)
            _log.warning("an answer had too many bids", auction=request.auction_id, left_out=left_out)
        self._rounds += 1
        self._orders += len(orders)
        self._bids += len(bids)
        bid_for = {part.order_hash for bid in bids for part in bid.parts}
        not_reached = [
            order.order_hash
            for order in request.orders
            if order.order_hash in market.not_reached and order.order_hash not in bid_for
        ]
        return SolveResponse(bids, tuple(not_reached))

    def told(self, notice: NotifyRequest) -> None:
        """Process a venue's notices about bids: count and log them, and pass them to the strategies.

        The stored route of an order is dropped, unless the notice says that the bid lost or came too late.
        """
        for entry in notice.notices:
            self._notices[entry.notice.value] += 1
            if notice.chain_id in self._chains:
                self._chains[notice.chain_id].kept.told(entry.notice, entry.order_hash)
            said = {
                name: value
                for name, value in msgspec.structs.asdict(entry).items()
                if value not in ("", None)
            }
            _log.info("outcome of a bid", auction=notice.auction_id, chain=notice.chain_id, **said)
        for name, strategy in self._strategies.items():
            try:
                tell(strategy, notice)
            except Exception as error:  # noqa: BLE001  a strategy may be the operator's own code
                self._fault(name, f"`notify` raised: {error!r}")

    async def _ask(
        self,
        name: str,
        request: SolveRequest,
        market: RoundMarket,
        until: float,
        found: dict[str, Sequence[SolverBid]],
    ) -> None:
        """Run one strategy, at most until the trio time `until`, and store the strategy's bids in `found`.

        The method counts and logs a failure of the strategy; `found` then has no entry for the strategy.
        """
        try:
            with trio.CancelScope(deadline=until) as scope:
                found[name] = _checked(await self._strategies[name].solve(request, market))
            if scope.cancelled_caught:
                market.not_reached.update(order.order_hash for order in market.orders)
                self._fault(name, "was not done in time")
        except Exception as error:  # noqa: BLE001  a strategy may be the operator's own code
            self._fault(name, f"raised: {error!r}")

    def _fault(self, name: str, said: str) -> None:
        self._faults[name] += 1
        _log.error("a strategy failed", strategy=name, reason=said)

    def _place_of(self, request: SolveRequest) -> AgentChain:
        place = self._chains.get(request.chain_id)
        if place is None:
            served = ", ".join(map(str, self._chains))
            raise UnsupportedChain(field="chainId", expected=f"one of {served}", got=request.chain_id)
        for member, field, setting in _CONTRACTS:
            ours, theirs = place.served.addresses[setting], getattr(request, member)
            if parse_address(theirs, field) != ours:
                raise InvalidInput(field=field, expected=f"this agent's, {to_checksum(ours)}", got=theirs)
        return place

    def _market(
        self, served: AgentChain, orders: tuple[OpenOrder, ...], gas_price_wei: int, deadline: float
    ) -> RoundMarket:
        settings = self._settings
        return RoundMarket(
            place=served,
            orders=orders,
            gas_price_wei=gas_price_wei,
            margin_bps=settings.margin_bps,
            deadline=deadline,
            wall_ms=self._wall_ms,
            not_reached=set(),
        )


def _that_fit(bids: Sequence[SolverBid]) -> tuple[SolverBid, ...]:
    """Return the leading bids that fit into one answer, since a venue refuses a longer answer as a whole."""
    left_bytes = limits.AGENT_ANSWER_BYTES_MAX - len(encode(SolveResponse(())))
    for at, bid in enumerate(bids[: limits.AGENT_BIDS_MAX]):
        left_bytes -= len(encode(bid)) + len(",")
        if left_bytes < 0:
            return tuple(bids[:at])
    return tuple(bids[: limits.AGENT_BIDS_MAX])


def _checked(bids: Sequence[SolverBid | None]) -> tuple[SolverBid, ...]:
    """Encode and decode a strategy's bids without None, so that they are exactly as the venue will read them.

    Raises:
        InvalidInput, TypeError, ValueError: the strategy returned values that are no valid bids.
    """
    return decode_solve_response(encode(SolveResponse(tuple([bid for bid in bids if bid is not None])))).bids
