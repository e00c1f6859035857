"""`cambist order watch`: follows an order to its end, or prints all pushed changes of many orders.

Without an order, `order watch` and `otc watch` run until `--timeout` or an interrupt, and exit with status 0.
An interrupt before the venue's first message exits with status 1.
"""

import math
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from random import SystemRandom
from typing import NoReturn

import click

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.event_messages import OpenMessage, OrderEventMessage, OrderStreamMessage
from ....codecs.messages.wire import encode
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import TRADER_WATCH_S
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Chain
from ...trader.client.client import VenueClient
from ...trader.client.events import EventSelection, EventsWanted, OrderEvents
from ...trader.client.listing import event_line
from ...trader.client.order.order_following import (
    MEANS,
    OfferTokens,
    OrderFollower,
    is_crosschain,
)
from ...trader.client.order.order_view import DeltaOutcome
from ...trader.client.outcome import TradeVerdict
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.venue import Venue
from ...trader.client.trusted_contract import DELTA, TradingContract
from ..parameters import ADDRESS, RPC_HELP, address_text, node_settings, once
from ..sources import Decorator
from ..trading import (
    SecondsParam,
    UnderWay,
    VenueOptions,
    gathered,
    new_tell,
    pin,
    run,
    venue_list,
)
from .order_options import order_name, report


class WatchOptions(VenueOptions, frozen=True, kw_only=True):
    """Options of `order watch` and `otc watch`.

    Both commands follow one order if `name` is set; else they print the changes of many orders.

    Attributes:
        name: id or hash of the order to follow.
        chain_ids: chains of the orders; only without `name`.
        after: resume token of the last event already printed; only without `name`.
        rpc: node that verifies the end of the order; only with `name`.
        pinned: contract to verify the order with, 20 bytes; only with `name`.
        watch_s: seconds for which the command follows; None for the default.
    """

    name: str | None
    chain_ids: tuple[int, ...]
    after: str | None
    rpc: NodeSettings | None
    pinned: bytes | None
    watch_s: float | None

    def check(self, noun: str, pin_option: str, **many: object) -> None:
        """Refuse the options for one order if `name` is None, else the options for many orders.

        Args:
            noun: word for `name` with an article, such as "an ID", for errors.
            pin_option: option that pins the contract, such as --delta.
            many: further options that are only for many orders: name without dashes -> value.

        Raises:
            click.UsageError: an option may not be used here; the error names it.
        """
        about_many = {f"--{option}": value for option, value in many.items()}
        about_many |= {"--chain": self.chain_ids, "--after": self.after}
        about_one = {"--rpc": self.rpc, pin_option: self.pinned}
        refused, said = (about_one, "only with") if self.name is None else (about_many, "not with")
        for option, value in refused.items():
            if value:
                raise click.UsageError(f"{option}: {said} {noun}")

    def listen(self, wanted: EventSelection, line_of: Callable[[OrderEventMessage], str]) -> NoReturn:
        """Print every change of the selected orders until the time limit or an interrupt, then exit.

        Args:
            wanted: filters that select the orders.
            line_of: formats a change as a line for people.
        """
        run(_listen, self, wanted, line_of)


def watch_options(word: str, contract: TradingContract, *owners: Decorator) -> Decorator:
    """Decorator that adds the options of `WatchOptions` to a command, which receives them as `options`.

    Args:
        word: metavariable for the order's name in the help, such as ID.
        contract: kind of contract that the pinning option is for.
        owners: further options for many orders; the command receives each as a parameter of its own.
    """
    return gathered(
        WatchOptions,
        "options",
        click.argument("name", metavar=f"[{word}]", required=False),
        *owners,
        click.option(
            "--chain",
            "chain_ids",
            type=click.IntRange(1),
            multiple=True,
            callback=once,
            help=f"Without {word}: a chain id; repeatable.",
        ),
        click.option(
            "--after",
            metavar="TOKEN",
            help=f"Without {word}: start with the events after this token; with new events if absent.",
        ),
        click.option(
            "--rpc",
            callback=node_settings,
            help=f"{RPC_HELP} With it, the command checks the venue's answers on the chain.",
        ),
        pin(contract),
        click.option(
            "--timeout",
            "watch_s",
            metavar="SECONDS",
            type=SecondsParam(),
            help=f"Time to follow the order.  [default: {TRADER_WATCH_S}; without {word} until interrupted]",
        ),
        *venue_list(),
    )


@click.command("watch")
@watch_options(
    "ID",
    DELTA,
    click.option(
        "--owner",
        type=ADDRESS,
        callback=address_text,
        help="Without ID: owner of the orders; all owners if absent, which takes an operator's --api-key.",
    ),
    click.option("--partner", default="", help="Without ID: orders of this partner; takes its --api-key."),
    click.option(
        "--to-rpc",
        callback=node_settings,
        help=f"With --rpc: proves the delivery of an order across chains. {RPC_HELP}",
    ),
)
def watch(options: WatchOptions, owner: str, partner: str, to_rpc: NodeSettings | None) -> None:
    """Follow the order ID until it has ended; without ID, print every change of many orders.

    ID is the order's id or its hash. The command prints changes as the venue pushes them. With --json, the
    command prints each change of many orders as one line, with a token for --after.
    """
    options.check("an ID", "--delta", owner=owner, partner=partner)
    if to_rpc is not None and options.rpc is None:
        raise click.UsageError("--to-rpc: only with --rpc")
    if options.name is None:
        wanted = EventsWanted(owner=owner, chain_ids=options.chain_ids, partner=partner)
        options.listen(wanted, partial(event_line, MEANS))
    run(_watch, options, order_name(options.name, "ID"), to_rpc)


async def _watch(under_way: UnderWay, options: WatchOptions, name: str, to_rpc: NodeSettings | None) -> int:
    tell = new_tell()
    async with options.open() as venue:
        follower = OrderFollower(venue, name, tell)
        under_way.hint = f"the order goes on: {options.hint(name)}"
        await follower.follow(options.watch_s or TRADER_WATCH_S)
        record = follower.record
        if record is None:
            outcome = DeltaOutcome(verdict=TradeVerdict.UNKNOWN, reason="the venue does not answer")
            return report(options, outcome, OfferTokens())
        state = await _checked(record, venue, options, to_rpc, tell)
    return report(options, state.outcome, state.tokens)


async def _listen(
    under_way: UnderWay,
    options: WatchOptions,
    wanted: EventSelection,
    line_of: Callable[[OrderEventMessage], str],
) -> int:
    """Print every change of the selected orders until the time limit or an interrupt; return the status.

    Args:
        wanted: filters that select the orders.
        line_of: formats a change as a line for people.

    Returns:
        The exit status.
    """
    tell = new_tell()
    # An interrupt is the usual end. Before the first message there is no hint, and `run` exits with status 1.
    under_way.status = 0

    def hear(message: OrderStreamMessage) -> None:
        under_way.hint = f"`--after {message.token}` goes on from here"
        if isinstance(message, OrderEventMessage):
            click.echo(encode(message) if options.is_json else line_of(message))
        elif isinstance(message, OpenMessage):
            tell("the venue pushes changes")

    async with options.open() as venue:
        after = options.after or ""
        events = OrderEvents(venue, wanted, hear, tell=tell, random=SystemRandom(), after=after)
        await events.run(math.inf if options.watch_s is None else options.watch_s)
    click.echo(under_way.hint, err=True)
    return 0


async def _checked(
    record: OrderRecord,
    venue: VenueClient,
    options: WatchOptions,
    to_rpc: NodeSettings | None,
    tell: Callable[[str], None],
) -> DeltaOrderState:
    """Return a Delta order's state; with --rpc, its end is verified on the chain.

    Args:
        to_rpc: node of the destination chain of an order across chains; None to trust the venue about that
            chain.
    """
    chain_id, to_chain = record.input.chain_id, record.output.chain_id
    nodes = {chain_id: options.rpc} | ({to_chain: to_rpc} if is_crosschain(record) else {})
    async with AsyncExitStack() as opened:
        chains: dict[int, Chain] = {}
        for each, node in nodes.items():
            if node is not None:
                chains[each] = await opened.enter_async_context(RpcChain.open(each, node, known_errors()))
        return await Venue(venue, chain_id, chains, tell=tell).state(record, pinned=options.pinned)
