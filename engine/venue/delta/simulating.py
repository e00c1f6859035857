"""The simulation of a round's bids by the chain, each agent's apart.

    candidates, by agent -> calls at one block, within SIMULATION_S -> Proven, or a Rejection

An agent that bids what takes for ever is alone in that.

Source: design, "Auction".
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import trio
from msgspec import Struct

from ....codecs.vocabulary import Side
from ....config.errors import ChainError, PricingError
from ....config.timeouts import SIMULATION_S
from ....feeds.slices import Slices
from ...chain.port import Chain
from ..place import Place
from .auction import GasCost
from .bids import Candidate, Rejection, RoundOrder, sorted_out
from .price import gas_in_token
from .simulation import Proven, not_proven, proven, simulation_of


class AuctionAt(Struct, frozen=True):
    """Where it is settled.

    Attributes:
        relayer: whose account settles, 20 bytes.
        gas_max: units of one settlement.
    """

    place: Place
    relayer: bytes
    gas_max: int


async def simulated(
    candidates: Sequence[Candidate], at: AuctionAt, slices: Slices
) -> tuple[list[Proven], list[Rejection]]:
    """What bids are worth, all at one block.

    Args:
        slices: in which what the chain answers is read.

    Raises:
        ChainError: nobody can say.
    """
    if not candidates:
        return [], []
    with _in_time():
        header = await at.place.chain.block()
    if header is None:
        raise ChainError("the chain has no latest block")
    bids: list[Proven] = []
    rejections: list[Rejection] = []

    async def simulate(some: Sequence[Candidate]) -> None:
        calls = [simulation_of(one, at.place.delta, at.relayer, at.gas_max) for one in some]
        good: list[Proven] = []
        refused: list[Rejection] = []
        try:
            with _in_time():
                found = await at.place.chain.call_many(calls, header.hash)
            judged = (proven(one, answer) for one, answer in zip(some, found, strict=True))
            await slices.work(sorted_out(judged, good, refused))
        except ChainError as error:
            rejections.extend(not_proven(one, str(error)) for one in some)
            return
        bids.extend(good)
        rejections.extend(refused)

    async with trio.open_nursery() as nursery:
        for agent in sorted({one.agent for one in candidates}):
            nursery.start_soon(simulate, [one for one in candidates if one.agent == agent])
    return bids, rejections


def gas_cost(asked: RoundOrder, place: Place) -> GasCost | None:
    """What gas costs in the token that an order pays in; None where that has no price."""
    terms = asked.terms
    token = place.tokens.by_address.get(terms.dest_token if terms.side is Side.SELL else terms.src_token)
    if token is None:
        return None
    native, usd = place.tokens.wrapped_native, place.usd
    try:
        gas_in_token(token, 10**18, native, usd)
    except PricingError:
        return None
    return lambda wei: gas_in_token(token, wei, native, usd)


async def reached(chain: Chain, time_s: int, within_s: float) -> bool:
    """Wait for a block of that time, which is what a simulation at the latest block needs.

    Args:
        time_s: Unix seconds.
        within_s: it waits no longer; a chain that is away is not waited for.

    Returns:
        Whether there was none at first, and is now.
    """
    is_early = False
    with trio.move_on_after(within_s):
        try:
            while (header := await chain.block()) is not None and header.time_s < time_s:
                is_early = True
                await chain.wait_head(header.hash)
        except ChainError:
            return False
        return is_early
    return False


@contextmanager
def _in_time() -> Iterator[None]:
    """ChainError where the chain takes longer than a simulation may."""
    try:
        with trio.fail_after(SIMULATION_S):
            yield
    except trio.TooSlowError:
        raise ChainError(f"bids were not simulated within {SIMULATION_S:g} s") from None
