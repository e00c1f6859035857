"""Open the bridges of the settings: a lane for each pair of served chains, with the feed of its fee.

A lane is served if both chains are served, Delta is served on the origin, and the bridge has these contracts:

    Across   `spoke_pool` of both chains
    CCTP     `token_messenger` of the origin, `message_transmitter` and a relayer of the destination

Source: spec 1.22; choices.md#chains-and-tokens.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import permutations
from random import Random
from ssl import SSLContext

from ....codecs.trading_token import NATIVE_TOKEN
from ....config.sections.bridges import BridgedToken, BridgeSettings
from ....crypto.addresses import parse_address
from ....feeds.bridges.fee_answers import FeeLane
from ....feeds.bridges.lane_fees import LaneFees, bridge_client
from ..routing.tokens import ListedToken
from .bridge_lanes import BridgeLane, BridgeLanes
from .served_chain import ServedChain, ServedChains


async def open_bridges(
    owned: AsyncExitStack,
    bridges: Mapping[str, BridgeSettings],
    chains: ServedChains,
    *,
    wall_ms: Callable[[], int],
    random: Random,
    tls: SSLContext,
) -> BridgeLanes:
    """Open the clients of the bridges' APIs, and make the served lanes.

    The caller starts `fees.run` of each lane. Closing `owned` closes the clients.

    Args:
        bridges: settings of the bridges by name.
        wall_ms: returns the time, Unix milliseconds.
        random: source of jitter for the requests.
    """
    lanes = []
    for name, settings in bridges.items():
        fee_lanes = [*_fee_lanes(name, settings, chains)]
        if not fee_lanes:
            continue
        http = await owned.enter_async_context(bridge_client(tls))
        for lane in fee_lanes:
            fees = LaneFees(lane, http=http, wall_ms=wall_ms, random=random)
            tokens = [
                chains[chain].tokens.by_address[token]
                for chain, token in zip(lane.chains, lane.tokens, strict=True)
            ]
            native = _native_by(settings, tokens[1], chains[lane.chains[1]])
            lanes.append(BridgeLane(name, settings, *lane.chains, tokens[0], tokens[1], fees, native))
    return BridgeLanes(chains, lanes)


def _native_by(settings: BridgeSettings, token: ListedToken, there: ServedChain) -> ListedToken | None:
    """Return the native token that a bridge pays in place of its wrapped form; None for any other token."""
    is_unwrapped = settings.kind == "across" and token.address == there.tokens.wrapped_native
    return there.tokens.by_address[NATIVE_TOKEN] if is_unwrapped else None


def _fee_lanes(name: str, settings: BridgeSettings, chains: ServedChains) -> Iterator[FeeLane]:
    """Yield the lanes of a bridge between chains that are equipped for the bridge."""
    for token in settings.tokens:
        for ends in permutations([chain for chain in token.chains if chain in chains], 2):
            origin, destination = chains[ends[0]], chains[ends[1]]
            if not origin.no_delta and _is_equipped(settings, origin, destination):
                yield _fee_lane(name, settings, token, origin, destination)


def _is_equipped(settings: BridgeSettings, origin: ServedChain, destination: ServedChain) -> bool:
    """Whether two chains have the contracts of a bridge, and the relayer that CCTP needs to deliver."""
    if settings.kind == "across":
        return bool(origin.settings.spoke_pool and destination.settings.spoke_pool)
    has_contracts = origin.settings.token_messenger and destination.settings.message_transmitter
    return bool(has_contracts) and destination.has_relayer


def _fee_lane(
    name: str, settings: BridgeSettings, token: BridgedToken, origin: ServedChain, destination: ServedChain
) -> FeeLane:
    addresses = [parse_address(token.chains[at.chain_id], "chains") for at in (origin, destination)]
    decimals = [
        at.tokens.by_address[address].decimals
        for at, address in zip((origin, destination), addresses, strict=True)
    ]
    is_across = settings.kind == "across"
    return FeeLane(
        bridge=name,
        settings=settings,
        chains=(origin.chain_id, destination.chain_id),
        tokens=(addresses[0], addresses[1]),
        amounts=token.raw_amounts(decimals[0]),
        spoke_pool=parse_address(origin.settings.spoke_pool, "spoke_pool") if is_across else b"",
        domains=(origin.settings.cctp_domain or 0, destination.settings.cctp_domain or 0),
        decimals=(decimals[0], decimals[1]),
    )
