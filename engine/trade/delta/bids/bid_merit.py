"""Selects the bids of an agent to simulate: the best few on each order. Pure.

    a single order   by the advantage of the promise over the limit
    a crossing       by the sum of its orders' advantages, each relative to its limit

The best bid on each order is simulated first, then the second best on each, so that if time runs out, every
order has a simulated bid.

At most AGENT_BIDS_PER_ORDER_MAX bids of an agent on one order are simulated, and as many crossings (bids that
settle several orders against each other).

Source: ARCHITECTURE.md, "Auction".
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter

from .....codecs.messages.agent_messages import Notice
from .....codecs.rounding import div_down
from .....config.limits import AGENT_BIDS_PER_ORDER_MAX
from .bids import Candidate, CandidatePart, Rejection
from .simulation import Simulated

_SHARE_ONE = 10**18


def best_of(bids: Iterable[Candidate]) -> Iterator[Candidate | Rejection]:
    """Yield the bids of an agent to simulate: the best bid on each order first, then the second best.

    Yield a rejection for each bid beyond AGENT_BIDS_PER_ORDER_MAX on an order.
    """
    counts: Counter[tuple[bytes, bool]] = Counter()
    ranked: list[tuple[int, Candidate]] = []
    for bid in sorted(bids, key=_merit, reverse=True):
        keys = [(part.asked.order_hash, bid.is_crossing) for part in bid.parts]
        rank = max(counts[key] for key in keys)
        if rank < AGENT_BIDS_PER_ORDER_MAX:
            counts.update(keys)
            ranked.append((rank, bid))
        else:
            yield _left_out(bid)
    ranked.sort(key=itemgetter(0))
    yield from (bid for _, bid in ranked)


def judged(found: Simulated) -> Iterator[tuple[str, bytes, bool]]:
    """Yield (agent, owner, whether the agent's bid passed its simulation) for each order with a passed bid.

    The owner is the order's owner, 20 bytes. Orders without a passed bid are left out, since the order itself
    may be the cause if all bids fail.
    """
    stood: defaultdict[bytes, set[str]] = defaultdict(set)
    failed: defaultdict[bytes, set[str]] = defaultdict(set)
    owners: dict[bytes, bytes] = {}
    for bid in found.proven:
        for part in bid.candidate.parts:
            stood[part.asked.order_hash].add(bid.candidate.agent)
            owners[part.asked.order_hash] = part.asked.terms.owner
    for rejection in found.rejections:
        if rejection.notice is Notice.REVERTED and len(rejection.orders) == 1:
            failed[next(iter(rejection.orders))].add(rejection.agent)
    for order_hash, agents in stood.items():
        yield from ((agent, owners[order_hash], True) for agent in sorted(agents))
        yield from ((agent, owners[order_hash], False) for agent in sorted(failed[order_hash] - agents))


def _merit(bid: Candidate) -> int:
    if not bid.is_crossing:
        return _advantage(bid.parts[0])
    return sum(div_down(_advantage(part) * _SHARE_ONE, max(part.limit, 1)) for part in bid.parts)


def _advantage(part: CandidatePart) -> int:
    """Return the raw units by which a bid's promise is better for the user than the order's limit."""
    return abs(part.promised - part.limit)


def _left_out(bid: Candidate) -> Rejection:
    better = f"{AGENT_BIDS_PER_ORDER_MAX} bids of yours on an order are better"
    return lost(bid, f"bids[{bid.place}]: not simulated, {better}")


def lost(bid: Candidate, why: str) -> Rejection:
    """Make the rejection of a bid that takes no part in the decision, for a reason that the agent is told."""
    return Rejection(
        bid.agent,
        bid.arrived_ms,
        Notice.LOST,
        why,
        {part.asked.order_hash: part.promised for part in bid.parts},
        parts={part.asked.order_hash: part.part_amount for part in bid.parts if part.part_amount is not None},
    )
