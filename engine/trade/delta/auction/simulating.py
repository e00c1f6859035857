"""Simulates the settlements of an auction round's bids on the chain, each agent's bids in separate calls.

    candidates, by agent -> calls at one block, a batch at a time, within AGENT_SIMULATION_S
        -> Proven, or a Rejection

Slow simulations of an agent's bids delay no other agent's, and end at the time limit. The venue's own bids
are simulated by owner in place of agent: an owner's code may be slow.

Source: ARCHITECTURE.md, "Auction".
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

import trio
from msgspec import Struct

from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import div_up
from .....config.errors import ChainError, PricingError
from .....config.limits import AGENT_SIMULATED_AT_ONCE
from .....config.timeouts import AGENT_SIMULATION_S, SIMULATION_S
from .....feeds.slices import Slices
from ....chain.port import Upcoming
from ...quote.delta_price import gas_in_token
from ...served.served_chain import ServedChain
from ..bids.bids import Candidate, RoundOrder, sorted_out
from ..bids.simulation import Simulated, not_proven, proven, simulation_of
from .auction import GasCost

_NATIVE_WEI = 10**18


class AuctionAt(Struct, frozen=True):
    """Chain, sending account and gas limit of the settlements of auction rounds.

    Attributes:
        relayer: account that sends settlements, 20 bytes.
        gas_max: most units of gas of one settlement.
    """

    served: ServedChain
    relayer: bytes
    gas_max: int


async def simulated(
    candidates: Sequence[Candidate],
    at: AuctionAt,
    upcoming: Callable[[], Awaitable[Upcoming]],
    slices: Slices,
) -> Simulated:
    """Simulate the settlements of bids, all at the same block and time.

    Args:
        candidates: bids; the bids of one agent are simulated in the sequence given.
        upcoming: reads the latest block and the next block's time.
        slices: runs the decoding of the simulations' results in short steps.

    Raises:
        ChainError: the latest block is unknown.
    """
    found = Simulated([], [], set())
    if not candidates:
        return found
    try:
        with trio.fail_after(SIMULATION_S):
            where = await upcoming()
    except trio.TooSlowError:
        raise ChainError(f"the node gave no latest block within {SIMULATION_S:g} s") from None
    by_agent: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_agent[candidate.simulation_group].append(candidate)

    async def simulate(bids: list[Candidate]) -> None:
        done, why = 0, f"{AGENT_SIMULATION_S:g} s are over"
        with trio.move_on_after(AGENT_SIMULATION_S):
            try:
                while done < len(bids):
                    some = bids[done : done + AGENT_SIMULATED_AT_ONCE]
                    calls = [
                        simulation_of(candidate, at.served.delta, at.relayer, at.gas_max)
                        for candidate in some
                    ]
                    answers = await at.served.chain.call_many(calls, where.head.hash, where.made_s)
                    judged = (
                        proven(candidate, answer) for candidate, answer in zip(some, answers, strict=True)
                    )
                    good, refused = await slices.work(sorted_out(judged))
                    # No await from here on: a cut leaves in `bids[done:]` only bids without a result.
                    found.proven += good
                    found.rejections += refused
                    done += len(some)
            except ChainError as error:
                why = str(error)
        for candidate in bids[done:]:
            found.rejections.append(not_proven(candidate, why))
            found.unknown.update(part.asked.order_hash for part in candidate.parts)

    async with trio.open_nursery() as nursery:
        for agent in sorted(by_agent):
            nursery.start_soon(simulate, by_agent[agent])
    return found


def covering_cost(order: RoundOrder, served: ServedChain) -> GasCost | None:
    """Return a function as `gas_cost` does; if its token has no price, by the order's other token.

    The limit of the auctioned part converts from the one token to the other. None if neither has a price. If
    the native token has none, the gas costs nothing.
    """
    native = served.tokens.wrapped_native
    if not served.usd.value(native, _NATIVE_WEI):
        return lambda _: 0
    if (known := gas_cost(order, served)) is not None:
        return known
    sells, part = order.terms.side is Side.SELL, order.part
    token = served.tokens.by_address.get(order.terms.src_token if sells else order.terms.dest_token)
    if token is None:
        return None
    try:
        of_native = gas_in_token(token, _NATIVE_WEI, native, served.usd)
    except PricingError:
        return None
    paid, limit = (part.src_amount, part.dest_amount) if sells else (part.dest_amount, part.src_amount)
    return lambda wei: div_up(wei * of_native * limit, _NATIVE_WEI * max(paid, 1))


def gas_cost(order: RoundOrder, served: ServedChain) -> GasCost | None:
    """Return a function from a gas cost in wei to raw units of the token in which an order's bids compete.

    The token is the destination token (SELL) or the source token (BUY). None if the token has no price. The
    prices are read once, so that the function gives the same answers throughout a round.
    """
    terms = order.terms
    token = served.tokens.by_address.get(terms.dest_token if terms.side is Side.SELL else terms.src_token)
    if token is None:
        return None
    native, usd = served.tokens.wrapped_native, served.usd
    try:
        of_native = gas_in_token(token, _NATIVE_WEI, native, usd)
    except PricingError:
        return None
    return lambda wei: div_up(wei * of_native, _NATIVE_WEI)
