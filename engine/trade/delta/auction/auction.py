"""Decides the winners of an auction round: the best promised amount net of gas, first price. Pure.

    a single order     the bid with the most surplus wins: SELL: the promise beyond the limit, less gas; BUY:
                       the limit beyond the promise, less gas. Ties: the larger part, the earlier answer, the
                       agent's name, the place in the answer
    crossed orders     a crossing (a bid on several orders) wins as a whole, and only if no order is worse
                       off than with its best single bid
    each order         is settled once: by a winning crossing, else by its best single bid

The limit of a bid for a part of an order is pro rata. Among bids that settle the whole order, the bid with
the most surplus lets the user receive most, or spend least, net of gas. An order has one winner a round; if
the winner settles a part, the unfilled amount of the order is auctioned again.

The settlement enforces the promise and reverts if it is not kept; only bids that passed their simulation are
ranked. An excess over the promise in the simulation does not count; an excess in the mined settlement is the
user's. The decision depends only on its arguments, and not on the sequence of orders and bids.

Source: ARCHITECTURE.md, "Auction".
Choice: Gas is valued in the destination token (SELL) or the source token (BUY); if that token has no price,
    no bid's gas counts.
Choice: Bids rank by their whole surplus in raw units, not by surplus per settled unit: nobody might settle
    the part that a small bid leaves.
Choice: A crossing's gain is, per order, its excess over the best single bid, or over the limit, relative to
    the larger amount. It wins where no order loses and some order gains or has no other bid; of overlapping
    crossings the greater gain wins.
Choice: Runners-up, tried if the winner fails, are the two next best single bids on the order. A bid with the
    calldata of the winner or of a better runner-up is left out. A crossing is never a runner-up.
Choice: Bids rank by the amount that the contract enforces: the least that a sale brings, the most that a
    purchase costs. An excess is the user's and wins nothing.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.messages.agent_messages import Notice, NoticeEntry
from .....codecs.messages.vocabulary import Side
from .....crypto.hexadecimal import to_hex
from ..bids.bids import Candidate, Rejection, RoundOrder
from ..bids.simulation import Proven

RUNNERS_UP_MAX = 2
"""Maximum number of next best bids (runners-up) that a round keeps for an order.

The venue settles these bids in turn if the settlement of the winning bid fails (ARCHITECTURE.md, "Auction").
"""

GasCost = Callable[[int], int]
"""Function from a gas cost in wei to raw units of an order's destination (SELL) or source token (BUY)."""


class JudgedBid(Struct, frozen=True):
    """A bid on one order after the auction round's decision: its net amount, its surplus, and whether it won.

    Attributes:
        at: index of the order among the bid's parts.
        net: promised raw units that the user receives, less gas (SELL), or spends, plus gas (BUY).
        surplus: raw units by which `net` is better for the user than the order's limit; negative if worse.
        notice: WON or LOST.
        detail: reason of a loss other than the bid's rank; else empty.
    """

    bid: Proven
    at: int
    net: int
    surplus: int
    notice: Notice
    detail: str = ""


class AuctionVerdict(Struct, frozen=True):
    """Result of an auction round for one order: the winning bid, the next best bids, and all bids by rank.

    Attributes:
        asked: the order as auctioned in the round.
        winner: bid that settles the order; None if no bid wins.
        runners_up: next best bids, settled in turn if the winner's settlement fails.
        bids: all bids on the order that passed their simulation, the winner first, then by rank.
    """

    asked: RoundOrder
    winner: Proven | None
    runners_up: tuple[Proven, ...]
    bids: tuple[JudgedBid, ...]

    @property
    def best_amount(self) -> int | None:
        """Raw units that the winning bid promises: received by the user (SELL) or spent by the user (BUY).

        None without a winner.
        """
        return self.bids[0].bid.candidate.parts[self.bids[0].at].promised if self.winner else None

    @property
    def best_net_amount(self) -> int | None:
        """`JudgedBid.net` of the winning bid, raw units; None without a winner."""
        return self.bids[0].net if self.winner else None

    @property
    def best_part_amount(self) -> int | None:
        """Raw units of the order's fixed side that the winning bid settles, if it settles only a part.

        None if the winning bid settles the whole open amount, or if no bid wins. The fixed side is the source
        for SELL, the destination for BUY.
        """
        return self.bids[0].bid.candidate.parts[self.bids[0].at].part_amount if self.winner else None


class Decision(Struct, frozen=True):
    """Winning bids of an auction round, and the round's result for each order.

    Attributes:
        winners: bids to settle, each in one settlement; a bid on several orders (crossing) settles all of
            them.
        verdicts: winner, runners-up and ranked bids of each order, by order hash.
    """

    winners: tuple[Proven, ...]
    verdicts: Mapping[bytes, AuctionVerdict]


class _Ranked(Struct, frozen=True):
    """A bid with its net amount and its surplus for one order; the bid with the highest surplus is best.

    The attributes have the same meaning as those of `JudgedBid`.
    """

    bid: Proven
    at: int
    net: int
    surplus: int

    def key(self) -> tuple[int, int, int, str, int]:
        """Return the sort key by which an order's best bid comes first: surplus, settled amount, arrival."""
        candidate = self.bid.candidate
        return -self.surplus, -candidate.parts[self.at].part.amount, *_arrival(candidate)


class _Crossed(Struct, frozen=True):
    """A bid on several orders (crossing) that may win, as no order is worse off than by its best single bid.

    Attributes:
        gain: sum, over the orders, of the surplus of this bid less the surplus of the order's best single bid
            (0 without a single bid); each difference is divided by the larger of the two bids' net amounts,
            where the order's limit stands for a missing single bid.
    """

    bid: Proven
    gain: Fraction


def decide(
    orders: Sequence[RoundOrder],
    bids: Iterable[Proven],
    gas_price_wei: int,
    gas_costs: Mapping[bytes, GasCost],
) -> Decision:
    """Decide the winners of an auction round: run `deciding` with these arguments to its end."""
    steps = deciding(orders, bids, gas_price_wei, gas_costs)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decision: Decision = end.value
            return decision


def deciding(
    orders: Sequence[RoundOrder],
    bids: Iterable[Proven],
    gas_price_wei: int,
    gas_costs: Mapping[bytes, GasCost],
) -> Generator[None, None, Decision]:
    """Decide the winners of an auction round, as a generator whose return value is the decision.

    The generator yields after short steps, so that its caller can let other tasks run in between.

    Args:
        orders: all orders of the round.
        bids: bids on the orders that passed their simulation.
        gas_price_wei: price of a unit of gas, wei.
        gas_costs: functions from a gas cost in wei to raw units of a token, by order hash; if an order has
            no function, the gas of bids on the order does not count.
    """
    # Other tasks run at each `yield`: `gas_costs` must not read live prices, or two bids on an order would be
    # compared at different ones.
    by_order: dict[bytes, list[_Ranked]] = {order.order_hash: [] for order in orders}
    crossings: list[Proven] = []
    for bid in bids:
        for at, part in enumerate(bid.candidate.parts):
            order_hash = part.asked.order_hash
            by_order[order_hash].append(_ranked(bid, at, gas_price_wei, gas_costs.get(order_hash)))
        if bid.candidate.is_crossing:
            crossings.append(bid)
        yield
    for ranked in by_order.values():
        ranked.sort(key=_Ranked.key)
        yield
    alone = {
        order_hash: [entry for entry in ranked if not entry.bid.candidate.is_crossing]
        for order_hash, ranked in by_order.items()
    }
    taken, reasons = yield from _won_crossings(crossings, by_order, alone)
    verdicts: dict[bytes, AuctionVerdict] = {}
    for order in orders:
        order_hash = order.order_hash
        verdicts[order_hash] = _verdict(
            order, by_order[order_hash], alone[order_hash], taken.get(order_hash), reasons
        )
        yield
    # By identity, since a crossing is the winner of several orders and is settled once; sorted by order hash,
    # so that the sequence of `orders` does not matter.
    winners = {
        id(verdict.winner): verdict.winner
        for _, verdict in sorted(verdicts.items())
        if verdict.winner is not None
    }
    return Decision(tuple(winners.values()), verdicts)


def let_go(decision: Decision, winner: Proven, why: str) -> Decision:
    """Return a copy of a round's decision in which a winning bid has lost, since it cannot be settled.

    In the copy, the bid's orders have no winner and no runners-up.

    Args:
        why: reason that the agent is told.
    """
    verdicts = dict(decision.verdicts)
    for part in winner.candidate.parts:
        verdict = verdicts[part.asked.order_hash]
        bids = tuple(
            [
                replace(judged, notice=Notice.LOST, detail=why) if judged.bid is winner else judged
                for judged in verdict.bids
            ]
        )
        verdicts[part.asked.order_hash] = AuctionVerdict(verdict.asked, None, (), bids)
    return Decision(tuple([bid for bid in decision.winners if bid is not winner]), verdicts)


def with_runners_up(decision: Decision, may_stay: Callable[[Proven], bool]) -> Decision:
    """Return a copy of a round's decision with only those runners-up for which `may_stay` is true."""
    verdicts = {
        key: replace(verdict, runners_up=tuple(filter(may_stay, verdict.runners_up)))
        for key, verdict in decision.verdicts.items()
    }
    return Decision(decision.winners, verdicts)


def left_out(decision: Decision, winner: Proven) -> Decision:
    """Return a copy of a round's decision without a winning bid and without the results for its orders.

    The copy is used if an error leaves open whether the bid's settlement is stored: no agent is notified of a
    result for these orders.
    """
    hashes = {part.asked.order_hash for part in winner.candidate.parts}
    verdicts = {key: verdict for key, verdict in decision.verdicts.items() if key not in hashes}
    return Decision(tuple([bid for bid in decision.winners if bid is not winner]), verdicts)


def notices(decision: Decision, rejections: Iterable[Rejection]) -> Iterator[tuple[str, NoticeEntry]]:
    """Yield (agent name, notice of the bid's outcome) for each ranked or rejected bid of a closed round."""
    for order_hash, verdict in sorted(decision.verdicts.items()):
        for judged in verdict.bids:
            entry = replace(
                _entry(judged.notice, order_hash, judged.detail, verdict),
                simulated_amount=str(judged.bid.amount(judged.at)),
                net_amount=str(judged.net),
                gas=judged.bid.outcomes[judged.at].gas,
                part_amount=_text(judged.bid.candidate.parts[judged.at].part_amount),
            )
            yield judged.bid.candidate.agent, entry
    for rejection in rejections:
        if not rejection.orders:
            yield rejection.agent, NoticeEntry(rejection.notice, detail=rejection.detail)
        for order_hash in rejection.orders:
            entry = replace(
                _entry(rejection.notice, order_hash, rejection.detail, decision.verdicts.get(order_hash)),
                simulated_amount=_text(rejection.simulated.get(order_hash)),
                part_amount=_text(rejection.parts.get(order_hash)),
            )
            yield rejection.agent, entry


def _entry(notice: Notice, order_hash: bytes, detail: str, verdict: AuctionVerdict | None) -> NoticeEntry:
    """Make a notice with the members that describe the order's winning bid; none without a winner."""
    entry = NoticeEntry(notice, to_hex(order_hash), detail)
    if verdict is None:
        return entry
    return replace(
        entry,
        best_amount=_text(verdict.best_amount),
        best_net_amount=_text(verdict.best_net_amount),
        best_part_amount=_text(verdict.best_part_amount),
    )


def _text(amount: int | None) -> str | None:
    return None if amount is None else str(amount)


def _ranked(bid: Proven, at: int, gas_price_wei: int, gas_cost: GasCost | None) -> _Ranked:
    cost = 0 if gas_cost is None else gas_cost(bid.outcomes[at].gas * gas_price_wei)
    part = bid.candidate.parts[at]
    if part.asked.terms.side is Side.SELL:
        net = part.promised - cost
        return _Ranked(bid, at, net, net - part.limit)
    net = part.promised + cost
    return _Ranked(bid, at, net, part.limit - net)


def _won_crossings(
    crossings: Sequence[Proven],
    by_order: Mapping[bytes, Sequence[_Ranked]],
    alone: Mapping[bytes, Sequence[_Ranked]],
) -> Generator[None, None, tuple[dict[bytes, Proven], dict[int, str]]]:
    """Select the winning crossings (bids on several orders), the crossing with the greatest gain first.

    Args:
        by_order: all ranked bids, by order hash.
        alone: ranked bids on a single order, by order hash.

    Returns:
        (winning crossings by order hash; reasons why the other crossings lost, by Python's `id` of the bid).
    """
    of_bid: dict[int, list[_Ranked]] = {}
    for ranked in by_order.values():
        for entry in ranked:
            of_bid.setdefault(id(entry.bid), []).append(entry)
        yield
    fit: list[_Crossed] = []
    reasons: dict[int, str] = {}
    for bid in crossings:
        # In the bid's own sequence: the reason of a loss names the first order with a better bid, whatever
        # the sequence of `by_order`.
        parts = sorted(of_bid[id(bid)], key=lambda ranked: ranked.at)
        judged = _crossed(bid, parts, alone)
        if isinstance(judged, str):
            reasons[id(bid)] = judged
        else:
            fit.append(judged)
        yield
    # The greatest gain first: a crossing that is taken bars all later crossings of its orders.
    taken: dict[bytes, Proven] = {}
    for crossed in sorted(fit, key=lambda found: (-found.gain, *_arrival(found.bid.candidate))):
        hashes = [part.asked.order_hash for part in crossed.bid.candidate.parts]
        if taken.keys() & hashes:
            reasons[id(crossed.bid)] = "a crossing that gains more settles an order of it"
        else:
            taken |= dict.fromkeys(hashes, crossed.bid)
    return taken, reasons


def _crossed(
    bid: Proven, parts: Sequence[_Ranked], alone: Mapping[bytes, Sequence[_Ranked]]
) -> _Crossed | str:
    """Compute the gain of a bid on several orders (crossing) over the best single bids on these orders.

    Args:
        parts: net amount and surplus of the crossing for each of its orders.
        alone: ranked bids on a single order, best first, by order hash.

    Returns:
        The crossing with its gain; or the reason why it cannot win.
    """
    gain, is_wanted = Fraction(0), False
    for ranked in parts:
        part = bid.candidate.parts[ranked.at]
        others = alone[part.asked.order_hash]
        surplus, net = (others[0].surplus, others[0].net) if others else (0, part.limit)
        if others and ranked.surplus < surplus:
            return f"{to_hex(part.asked.order_hash)} has a better bid alone"
        is_wanted = is_wanted or not others or ranked.surplus > surplus
        gain += Fraction(ranked.surplus - surplus, max(abs(ranked.net), abs(net), 1))
    return _Crossed(bid, gain) if is_wanted else "no order of it gains"


def _verdict(
    order: RoundOrder,
    ranked: Sequence[_Ranked],
    alone: Sequence[_Ranked],
    crossing: Proven | None,
    reasons: Mapping[int, str],
) -> AuctionVerdict:
    winner = crossing if crossing is not None else (alone[0].bid if alone else None)
    bids = [
        JudgedBid(
            entry.bid,
            entry.at,
            entry.net,
            entry.surplus,
            Notice.WON if entry.bid is winner else Notice.LOST,
            reasons.get(id(entry.bid), ""),
        )
        for entry in ranked
    ]
    bids.sort(key=lambda judged: judged.notice is not Notice.WON)
    return AuctionVerdict(order, winner, _runners_up(winner, alone), tuple(bids))


def _runners_up(winner: Proven | None, alone: Sequence[_Ranked]) -> tuple[Proven, ...]:
    if winner is None:
        return ()
    tried = {winner.candidate.calldata}
    found: list[Proven] = []
    for entry in alone:
        if entry.bid.candidate.calldata not in tried and len(found) < RUNNERS_UP_MAX:
            tried.add(entry.bid.candidate.calldata)
            found.append(entry.bid)
    return tuple(found)


def _arrival(candidate: Candidate) -> tuple[int, str, int]:
    return candidate.arrival, candidate.agent, candidate.place
