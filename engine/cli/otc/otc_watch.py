"""`cambist otc watch`: follows an OTC order to its end, or prints all pushed changes of many orders."""

import time
from functools import partial

import click

from ....codecs.messages.otc_messages import StoredOrder
from ....config.errors import ChainError, VenueError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import TRADER_WATCH_S
from ....crypto.hexadecimal import to_hex
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...trader.client.client import VenueClient
from ...trader.client.events import OtcEventsWanted
from ...trader.client.listing import event_line
from ...trader.client.otc.otc_following import OtcFollower, disproof
from ...trader.client.otc.otc_safety import check_asked
from ...trader.client.otc.otc_terms import OTC_MEANS
from ...trader.client.otc.otc_view import OtcOutcome, followed
from ...trader.client.outcome import TradeVerdict
from ...trader.client.trusted_contract import RFQ, signing_contract
from ..order.order_watch import WatchOptions, watch_options
from ..parameters import ADDRESS, address_text, order_hash_of
from ..trading import UnderWay, new_tell, run
from .otc_post import report


@click.command("watch")
@watch_options(
    "HASH",
    RFQ,
    click.option(
        "--maker",
        type=ADDRESS,
        callback=address_text,
        help="Without HASH: maker of the orders; this or --taker, or an operator's --api-key.",
    ),
    click.option("--taker", type=ADDRESS, callback=address_text, help="Without HASH: orders for this taker."),
)
def watch(options: WatchOptions, maker: str, taker: str) -> None:
    """Follow the OTC order HASH until it has ended; without HASH, print every change of many orders.

    The command prints changes as the venue pushes them. With --json, the command prints each change of many
    orders as one line, with a token for --after.
    """
    options.check("a HASH", "--rfq", maker=maker, taker=taker)
    if options.pinned is not None and options.rpc is None:
        raise click.UsageError("--rfq: needs --rpc: only the chain knows the contract")
    if options.name is None:
        wanted = OtcEventsWanted(maker=maker, taker=taker, chain_ids=options.chain_ids)
        options.listen(wanted, partial(event_line, OTC_MEANS))
    run(_watch, options, order_hash_of(options.name, "HASH"))


async def _watch(under_way: UnderWay, place: WatchOptions, order_hash: bytes) -> int:
    tell, name = new_tell(), to_hex(order_hash)
    async with place.open() as venue:
        follower = OtcFollower(venue, name, tell)
        under_way.hint = f"the order goes on: {place.hint(name, 'otc')}"
        await follower.follow(place.watch_s or TRADER_WATCH_S)
        stored, fault = follower.record, None
        if stored is None:
            reason = "the venue does not answer"
            return report(
                place, OtcOutcome(verdict=TradeVerdict.UNKNOWN, order_hash=order_hash, reason=reason)
            )
        if place.rpc is not None:
            try:
                fault = await _fault(stored, order_hash, venue, place.rpc, place.pinned)
            except (ChainError, VenueError) as error:
                fault = error.detail
    return report(place, followed(stored, order_hash, fault))


async def _fault(
    stored: StoredOrder, order_hash: bytes, venue: VenueClient, node: NodeSettings, rfq: bytes | None
) -> str:
    """Describe how the chain contradicts the venue's record of an OTC order; empty if the chain confirms the
    record.

    Raises:
        ChainError, VenueError: the record cannot be verified as the chain or the venue does not answer, or
            the record is of another order.
    """
    async with RpcChain.open(stored.chain_id, node, known_errors()) as chain:
        contract = await signing_contract(chain, venue, RFQ, rfq)
        signed = check_asked(stored, order_hash, contract)
        return await disproof(chain, contract, signed, stored, int(time.time()))
