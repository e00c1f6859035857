"""`cambist otc watch`: follows an OTC order to its end, or prints all pushed changes of many orders."""

import time
from functools import partial

import click

from ....codecs.messages.otc_messages import StoredOrder
from ....config.errors import ChainError, VenueError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import TRADER_WATCH_S
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.client import VenueClient
from ...client.events import OtcEventsWanted
from ...client.otc.otc_following import OtcFollower, disproof
from ...client.otc.otc_listing import otc_event_line
from ...client.otc.otc_safety import check_asked
from ...client.otc.otc_view import OtcOutcome, followed
from ...client.outcome import TradeVerdict
from ...client.trusted_contract import RFQ, signing_contract
from ..order.order_watch import listen
from ..parameters import RPC_HELP, AddressParam, checked_node
from ..trading import (
    HELP,
    SecondsParam,
    UnderWay,
    VenueOptions,
    new_console,
    refuse_mixed,
    run,
    timed,
    venue_options,
)
from .otc_options import RFQ_HELP, hash_of
from .otc_post import report


@click.command("watch", context_settings=HELP)
@click.argument("name", metavar="[HASH]", required=False)
@click.option(
    "--maker",
    type=AddressParam(),
    help="Without HASH: maker of the orders; this or --taker, or an operator's --api-key.",
)
@click.option("--taker", type=AddressParam(), help="Without HASH: orders for this taker.")
@click.option(
    "--chain",
    "chain_ids",
    type=click.IntRange(1),
    multiple=True,
    help="Without HASH: a chain id; repeatable.",
)
@click.option(
    "--after",
    metavar="TOKEN",
    help="Without HASH: start with the events after this token; with new events if absent.",
)
@click.option("--rpc", help=f"{RPC_HELP} With it, the command checks the venue's answers on the chain.")
@click.option("--rfq", type=AddressParam(), help=RFQ_HELP)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=SecondsParam(),
    help=f"Time to follow the order.  [default: {TRADER_WATCH_S}; without HASH until interrupted]",
)
@venue_options
def watch(
    venue: VenueOptions,
    name: str | None,
    maker: bytes | None,
    taker: bytes | None,
    chain_ids: tuple[int, ...],
    after: str | None,
    rpc: str | None,
    rfq: bytes | None,
    timeout_s: float | None,
) -> None:
    """Follow an OTC order, by its hash, until it has ended; without HASH, every change of many orders.

    The command prints changes as the venue pushes them. With --json each change of many orders is a line,
    with a token for --after.
    """
    many = {"--maker": maker, "--taker": taker, "--chain": chain_ids, "--after": after}
    one = {"--rpc": rpc, "--rfq": rfq}
    refuse_mixed(name, "a HASH", many=many, one=one)
    if rfq is not None and rpc is None:
        raise click.UsageError("--rfq: needs --rpc: only the chain knows the contract")
    if name is None:
        wanted = OtcEventsWanted(
            maker="" if maker is None else to_checksum(maker),
            taker="" if taker is None else to_checksum(taker),
            chain_ids=tuple(dict.fromkeys(chain_ids)),
        )
        run(listen, venue, wanted, otc_event_line, after or "", timeout_s)
    node = None if rpc is None else checked_node(rpc)
    run(_watch, timed(venue, timeout_s or TRADER_WATCH_S), to_hex(hash_of(name or "", "HASH")), node, rfq)


async def _watch(
    under_way: UnderWay, place: VenueOptions, order_hash: str, node: NodeSettings | None, rfq: bytes | None
) -> int:
    tell = partial(new_console().print, style="dim")
    raw = parse_hex(order_hash, "HASH")
    async with place.open() as venue:
        follower = OtcFollower(venue, order_hash, tell)
        under_way.hint = f"the order goes on: {place.hint(order_hash, 'otc')}"
        await follower.follow(place.timeout_s)
        stored = follower.stored
        if stored is None:
            outcome = OtcOutcome(
                verdict=TradeVerdict.UNKNOWN, order_hash=raw, reason="the venue does not answer"
            )
        elif node is None:
            outcome = followed(stored, raw)
        else:
            try:
                fault = await _fault(stored, raw, venue, node, rfq)
            except (ChainError, VenueError) as error:
                fault = error.detail
            outcome = followed(stored, raw, fault=fault, is_proven=not fault)
    return report(place, outcome)


async def _fault(
    stored: StoredOrder, order_hash: bytes, venue: VenueClient, node: NodeSettings, rfq: bytes | None
) -> str:
    """Describe how the chain contradicts the venue's record; empty if the chain confirms it.

    Raises:
        ChainError, VenueError: the proof is not available, or the record is of another order.
    """
    async with RpcChain.open(stored.chain_id, node, known_errors()) as chain:
        contract = await signing_contract(chain, venue, RFQ, rfq)
        signed = check_asked(stored, order_hash, contract)
        return await disproof(chain, contract, signed, stored, int(time.time()))
