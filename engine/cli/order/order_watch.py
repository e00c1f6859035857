"""`cambist order watch`: follows an order to its end, or prints all pushed changes of many orders.

`order watch` and `otc watch` without an order run until they are interrupted and exit with status 0.
"""

import math
from collections.abc import Callable
from functools import partial
from random import SystemRandom

import click

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.event_messages import OpenMessage, OrderEventMessage, OrderStreamMessage
from ....codecs.messages.wire import encode
from ....config.errors import ChainError, VenueError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import TRADER_WATCH_S
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.client import VenueClient
from ...client.events import EventSelection, EventsWanted, OrderEvents
from ...client.order.order_following import OrderFollower, Subject
from ...client.order.order_listing import event_line
from ...client.order.order_safety import signed_order
from ...client.order.order_view import DeltaOutcome, OfferTokens
from ...client.outcome import TradeVerdict
from ...client.tokens import find_token
from ...client.trusted_contract import DELTA, signing_contract
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
from .order_options import ended, order_name, report, tell_why


@click.command("watch", context_settings=HELP)
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--owner",
    type=AddressParam(),
    help="Without ID: owner of the orders; all owners if absent, which takes an operator's --api-key.",
)
@click.option(
    "--chain", "chain_ids", type=click.IntRange(1), multiple=True, help="Without ID: a chain id; repeatable."
)
@click.option("--partner", help="Without ID: orders of this partner; takes its --api-key.")
@click.option(
    "--after",
    metavar="TOKEN",
    help="Without ID: start with the events after this token; with new events if absent.",
)
@click.option("--rpc", help=f"{RPC_HELP} With it, the command checks the venue's answers on the chain.")
@click.option(
    "--delta", type=AddressParam(), help="Delta contract to use, whatever its code; this release's if absent."
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=SecondsParam(),
    help=f"Time to follow the order.  [default: {TRADER_WATCH_S}; without ID until interrupted]",
)
@venue_options
def watch(
    venue: VenueOptions,
    name: str | None,
    owner: bytes | None,
    chain_ids: tuple[int, ...],
    partner: str | None,
    after: str | None,
    rpc: str | None,
    delta: bytes | None,
    timeout_s: float | None,
) -> None:
    """Follow an order, by its id or its hash, until it has ended; without ID, every change of many orders.

    The command prints changes as the venue pushes them. With --json each change of many orders is a line,
    with a token for --after.
    """
    many = {"--owner": owner, "--chain": chain_ids, "--partner": partner, "--after": after}
    one = {"--rpc": rpc, "--delta": delta}
    refuse_mixed(name, "an ID", many=many, one=one)
    if name is None:
        wanted = EventsWanted(
            owner="" if owner is None else to_checksum(owner),
            chain_ids=tuple(dict.fromkeys(chain_ids)),
            partner=partner or "",
        )
        run(listen, venue, wanted, event_line, after or "", timeout_s)
    node = None if rpc is None else checked_node(rpc)
    run(_watch, timed(venue, timeout_s or TRADER_WATCH_S), order_name(name, "ID"), node, delta)


async def _watch(
    under_way: UnderWay, place: VenueOptions, name: str, node: NodeSettings | None, delta: bytes | None
) -> int:
    tell = partial(new_console().print, style="dim")
    async with place.open() as venue:
        follower = OrderFollower(venue, name, tell)
        under_way.hint = f"the order goes on: {place.hint(name)}"
        await follower.follow(place.timeout_s)
        record = follower.record
        if record is None:
            outcome = DeltaOutcome(verdict=TradeVerdict.UNKNOWN, reason="the venue does not answer")
            return report(place, outcome, OfferTokens())
        await tell_why(venue, record, tell)
        if node is None:
            return report(place, await ended(record, None, None), OfferTokens())
        try:
            outcome, tokens = await _checked_end(record, venue, node, delta)
        except (ChainError, VenueError) as fault:
            outcome, tokens = _not_known(record, fault.detail), OfferTokens()
    return report(place, outcome, tokens)


async def listen(
    under_way: UnderWay,
    place: VenueOptions,
    wanted: EventSelection,
    line_of: Callable[[OrderEventMessage], str],
    after: str,
    timeout_s: float | None,
) -> int:
    """Print every change of orders until the time limit or an interrupt; return the exit status.

    Args:
        line_of: formats a change as a line for people.
        after: resume token after which the changes begin; empty starts now.
    """
    tell = partial(new_console().print, style="dim")
    under_way.status = 0

    def hear(message: OrderStreamMessage) -> None:
        under_way.hint = f"`--after {message.token}` goes on from here"
        if isinstance(message, OrderEventMessage):
            click.echo(encode(message) if place.is_json else line_of(message))
        elif isinstance(message, OpenMessage):
            tell("the venue pushes changes")

    async with place.open() as venue:
        events = OrderEvents(venue, wanted, hear, tell=tell, random=SystemRandom(), after=after)
        await events.run(math.inf if timeout_s is None else timeout_s)
    click.echo(under_way.hint, err=True)
    return 0


async def _checked_end(
    record: OrderRecord, venue: VenueClient, node: NodeSettings, delta: bytes | None
) -> tuple[DeltaOutcome, OfferTokens]:
    """Return an order's outcome, verified on the chain if the order has ended, with the order's tokens.

    Raises:
        ChainError, VenueError: the proof is not available.
    """
    chain_id = record.input.chain_id
    async with RpcChain.open(chain_id, node, known_errors()) as chain:
        contract = await signing_contract(chain, venue, DELTA, delta)
        subject = Subject(contract.address, signed_order(record, contract))
        listed = await venue.tokens(chain_id)
        src = await find_token(chain, listed, record.input.token, "input.token")
        dest = await find_token(chain, listed, record.output.token, "output.token")
        return await ended(record, chain, subject), OfferTokens(src, dest)


def _not_known(record: OrderRecord, reason: str) -> DeltaOutcome:
    order_hash = parse_hex(record.order_hash, "orderHash")
    return DeltaOutcome(verdict=TradeVerdict.UNKNOWN, order_hash=order_hash, record=record, reason=reason)
