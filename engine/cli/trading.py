"""Parts shared by the commands that ask a venue: `swap`, `order`, `otc`, `webhooks`.

    options --gathered--> a struct --SigningOptions.run--> a TradeSession --the work--> an exit status

A struct declares a command's parameters as members; a list beside it has the click options with the same
names. A command that signs checks node and key before the event loop starts; its session has the open chain,
venue and trader.
"""

import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn

import click
import trio
from msgspec import Struct

from ...codecs.messages.vocabulary import Side
from ...codecs.messages.wire import encode
from ...config import limits
from ...config.errors import ConfigError
from ...config.secret import Secret, read_secret
from ...config.sections.nodes import NodeSettings
from ...config.timeouts import TRADER_WATCH_S
from ..chain.artifacts import known_errors
from ..chain.nodes.rpc import RpcChain
from ..chain.port import Chain
from ..host.process.interrupts import until_interrupted
from ..trader.client.allowing import Allowing
from ..trader.client.client import VenueClient
from ..trader.client.outcome import TradeVerdict
from ..trader.client.public.market_trading import SLIPPAGE_BPS
from ..trader.client.public.venue import Venue
from ..trader.client.trader import Trader
from ..trader.client.trusted_contract import SigningContract, TradingContract, signing_contract
from .parameters import (
    ADDRESS,
    RPC_HELP,
    decimal_text,
    node_settings,
    partner_name,
    usage_errors,
    venue_url,
)
from .sources import KEY_HELP, PASSWORD_HELP, Decorator, agree, read_key

if TYPE_CHECKING:
    from rich.console import Console

ENDED, UNKNOWN = 3, 4
EXIT = {
    TradeVerdict.SWAPPED: 0,
    TradeVerdict.FILLED: 0,
    TradeVerdict.SETTLED: 0,
    TradeVerdict.FULFILLED: 0,
    TradeVerdict.PLACED: 0,
    TradeVerdict.POSTED: 0,
    TradeVerdict.REHEARSED: 0,
    TradeVerdict.ENDED: ENDED,
    TradeVerdict.REVERTED: ENDED,
    TradeVerdict.UNKNOWN: UNKNOWN,
}
"""Exit status of a trading command by the verdict on its trade: 0 as requested, 3 ended in another way, 4
unknown."""


_API_KEY_HELP = "Your API key at the venue: env:NAME or file:PATH."


class UnderWay(Struct):
    """State of a running command that decides the text and the exit status after an interrupt.

    Attributes:
        hint: text that an interrupt prints: the commands that follow or cancel the order, or what may still
            happen on the chain; empty while an interrupt leaves nothing behind.
        status: exit status after an interrupt, if there is a hint.
    """

    hint: str = ""
    status: int = UNKNOWN


def gathered(struct: type[Struct], into: str, *options: Decorator) -> Decorator:
    """Decorator that adds options to a command, which receives them as one struct.

    Args:
        struct: struct that receives the options: its members have the names of the options' parameters, and a
            member without an option keeps its default.
        into: name of the command's parameter that receives the struct.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathering(**given: Any) -> None:
            members = {name: given.pop(name) for name in struct.__struct_fields__ if name in given}
            command(**{into: struct(**members)}, **given)

        # Reversed, as the decorator nearest to the function applies first: the help and the positional
        # arguments then have the order of `options`.
        decorated: Callable[..., None] = gathering
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add


# --- A venue ------------------------------------------------------------------------------------------


class VenueOptions(Struct, frozen=True, kw_only=True):
    """Options of a command that name the venue and the output format.

    Attributes:
        url: base URL of the venue; None if the command needs no venue and none is named.
    """

    url: str | None
    api_key: Secret | None = None
    is_json: bool = False

    def open(self) -> AbstractAsyncContextManager[VenueClient]:
        """Context manager that opens a client of the venue at `url` and closes it at the end."""
        return VenueClient.open(self.url or "", self.api_key)

    def hint(self, name: str, group: str = "order") -> str:
        """Return a text with the commands that follow or cancel an order that has not ended.

        Args:
            name: id or hash of the order.
            group: `order` for a Delta order, `otc` for an OTC order.
        """
        return (
            f"`cambist {group} watch {name} --venue {self.url}` follows it, "
            f"`cambist {group} cancel {name} --venue {self.url} ...` cancels it"
        )

    def withdrawal(self) -> str:
        """Return a text with the command that takes back a deposit of native tokens."""
        return f"`cambist order withdraw --venue {self.url} ...` takes the deposit back"

    def show(self, result: Mapping[str, Any], lines: Iterable[str]) -> None:
        """Print a command's result on standard output: with --json the members `result` as one line of JSON,
        else the lines of text."""
        for line in (encode(result).decode(),) if self.is_json else lines:
            click.echo(line)


def _revealed_key(_: click.Context, __: click.Parameter, reference: str | None) -> Secret | None:
    with usage_errors():
        return read_secret(reference, os.environ, "--api-key") if reference else None


class SecondsParam(click.FloatRange):
    """Click parameter type: a number of seconds above zero; `inf` for no limit."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a value; see `click.ParamType.convert`."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):  # NaN is not below any bound
            self.fail(f"{seconds} is not in the range x>0.", param, ctx)
        return seconds


_timeout = click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=SecondsParam(),
    default=TRADER_WATCH_S,
    show_default=True,
    help="Time to follow the order; it lives on afterwards.",
)


def venue_list(*, is_needed: bool = True, follows: bool = False) -> list[Decorator]:
    """The click options for the members of `VenueOptions`: --venue, --api-key, --json.

    Args:
        is_needed: whether the command needs a venue, so that --venue is required.
        follows: whether the command follows orders, and has --timeout too.
    """
    return [
        *([_timeout] if follows else []),
        click.option("--venue", "url", required=is_needed, callback=venue_url, help="The venue's URL."),
        click.option("--api-key", callback=_revealed_key, help=_API_KEY_HELP),
        click.option("--json", "is_json", is_flag=True, help="Print one line of JSON on standard output."),
    ]


venue_options = gathered(VenueOptions, "venue", *venue_list())
"""Decorator that adds the options of `VenueOptions` (--venue, --api-key, --json) to a command, which receives
them as `venue`."""


# --- A key on a chain ---------------------------------------------------------------------------------


class TradeSession(Struct, frozen=True):
    """A running command that signs: the open venue, and the key's account on the open chain.

    Attributes:
        client: client of the venue; None if no venue is named.
        program: public client (`cambist.client`) on the same venue and chains, by which the command trades.
        pinned: the contract to use without a check of its code, 20 bytes; None for the contract that the
            venue names.
    """

    under_way: UnderWay
    console: "Console"
    client: VenueClient | None
    trader: Trader
    program: Venue
    pinned: bytes | None

    @property
    def venue(self) -> VenueClient:
        """The client of the named venue.

        Raises:
            ConfigError: no venue is named.
        """
        if self.client is None:
            raise ConfigError("--venue", "is needed to look an order up by its hash; a FILE needs none")
        return self.client

    async def contract(self, contract: TradingContract) -> SigningContract:
        """The contract that the session's trades are signed for: pinned by an option, or named by the venue
        and verified by its code."""
        return await signing_contract(self.trader.chain, self.client, contract, self.pinned)


class SigningOptions(VenueOptions, frozen=True, kw_only=True):
    """Options of a command that signs; members with a default are options of some commands only.

    Attributes:
        key, password: references to the key and the password: env:NAME or file:PATH.
        pinned: the contract to use without a check of its code, 20 bytes; None for the contract that the
            venue names.
        permit: whether to sign a permit in place of an approval.
        approve_max: whether to approve any amount in place of the exact amount.
        timeout_s: seconds for which an order is followed.
        is_sure: whether to proceed without asking for consent (--yes).
        is_rehearsal: whether to stop before anything is signed (--dry-run).
    """

    chain_id: int
    rpc: NodeSettings
    key: str
    password: str | None
    pinned: bytes | None
    permit: bool = False
    approve_max: bool = False
    timeout_s: float = TRADER_WATCH_S
    is_sure: bool = False
    is_rehearsal: bool = False

    @property
    def allowing(self) -> Allowing:
        """The way to allow the trade's contract to take the sold token, by --permit and --approve-max.

        Raises:
            click.UsageError: both options are set.
        """
        if self.permit and self.approve_max:
            raise click.UsageError("--permit and --approve-max exclude each other")
        return Allowing.PERMIT if self.permit else Allowing.MOST if self.approve_max else Allowing.EXACT

    def destination(self) -> AbstractAsyncContextManager[Chain | None]:
        """Context manager that opens the destination chain of an order; gives None on one chain."""
        return nullcontext()

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return {}

    def agree(self, question: str) -> None:
        """Ask on the terminal for consent, unless --yes has given it. Raises click.Abort if the answer is
        no."""
        if not self.is_sure:
            agree(question)

    def run(self, do: Callable[..., Awaitable[int]], *what: object) -> NoReturn:
        """Check the options, open a session, run the command's work in it, and exit with the work's status.

        Args:
            do: the command's work; receives the session, then `what`, and returns the exit status.
        """
        # Before the event loop, which a prompt for the password would block.
        allowing, key = self.allowing, read_key(self.key, self.password)

        async def opened(under_way: UnderWay) -> int:
            console = new_console()
            tell = partial(console.print, style="dim")
            async with (
                RpcChain.open(self.chain_id, self.rpc, known_errors()) as chain,
                self.destination() as there,
                self.open() if self.url else nullcontext() as client,
            ):
                trader = Trader(
                    chain=chain,
                    key=key,
                    wall_s=lambda: int(time.time()),
                    tell=tell,
                    allowing=allowing,
                )
                chains = {chain.chain_id: chain} | ({} if there is None else {there.chain_id: there})
                program = Venue(client, chain.chain_id, chains, tell=tell, names=self.names())
                session = TradeSession(under_way, console, client, trader, program, self.pinned)
                return await do(session, *what)

        run(opened)


PIN_HELP = {
    "--router": "Trusted Router; without this option, the venue's, if its code is this release's.",
    "--delta": "Trusted Delta contract; without this option, the venue's, if its code is this release's.",
    "--rfq": "Trusted RFQ contract; without this option, the venue's, if its code is this release's.",
}


def pin(contract: TradingContract) -> Decorator:
    """The click option that pins a contract by its address, so that the contract's code is not checked."""
    return click.option(contract.option, "pinned", type=ADDRESS, help=PIN_HELP[contract.option])


def signing_list(contract: TradingContract) -> list[Decorator]:
    """The click options of every command that signs for a contract: chain, node, key, pinned address and so
    on; without --venue."""
    return [
        click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id."),
        click.option("--rpc", required=True, callback=node_settings, help=RPC_HELP),
        click.option("--key", required=True, help=KEY_HELP),
        click.option("--password", help=PASSWORD_HELP),
        pin(contract),
    ]


permit_option = click.option(
    "--permit", is_flag=True, help="Sign a permit, as the token takes it, in place of an approval."
)
approve_max_option = click.option(
    "--approve-max", is_flag=True, help="Approve any amount, not just this amount."
)
follow = click.option("--follow", "follows", is_flag=True, help="Follow the order until it has ended.")


def consent_list(text: str) -> list[Decorator]:
    """The click options --yes and --dry-run, the latter with `text` as its help."""
    return [
        click.option("--yes", "is_sure", is_flag=True, help="Do not ask."),
        click.option("--dry-run", "is_rehearsal", is_flag=True, help=text),
    ]


# --- A sale or a purchase -----------------------------------------------------------------------------


class TradeOptions(SigningOptions, frozen=True, kw_only=True):
    """Options of a command that trades AMOUNT of SELL_TOKEN for BUY_TOKEN.

    Attributes:
        amount: amount as typed, in whole tokens: of the sold token, or of the bought token with `side` BUY.
        receiver: account that gets the bought tokens, 20 bytes; None for the key's account.
        to_chain: chain on which a bridge delivers the bought tokens; None for the command's chain.
    """

    sell: str
    buy: str
    amount: str
    side: Side = Side.SELL
    receiver: bytes | None = None
    partner: str = ""
    to_chain: int | None = None

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return {"sell": "SELL_TOKEN", "buy": "BUY_TOKEN", "amount": "AMOUNT"}


pair_arguments: list[Decorator] = [
    click.argument("sell", metavar="SELL_TOKEN"),
    click.argument("buy", metavar="BUY_TOKEN"),
    click.argument("amount", callback=decimal_text),
]
receiver_options: list[Decorator] = [
    click.option(
        "--receiver", type=ADDRESS, help="Receiver of the bought tokens; the key's account if absent."
    ),
    click.option("--partner", default="", callback=partner_name, help="The partner's name."),
]


def slippage_option(text: str, **more: Any) -> Decorator:
    """The click option --slippage, with `text` as its help; `more` are further arguments of
    `click.option`."""
    bps = click.IntRange(limits.SLIPPAGE_BPS_MIN, limits.SLIPPAGE_BPS_MAX)
    return click.option("--slippage", "slippage_bps", metavar="BPS", type=bps, help=text, **more)


slippage = slippage_option(
    "Tolerated loss against the quote, in basis points.", default=SLIPPAGE_BPS, show_default=True
)


def run(do: Callable[..., Any], *what: object) -> NoReturn:
    """Run a command's work in an event loop, and exit the process with the status that it returns.

    An interrupt prints the hint of the command's `UnderWay`.

    Args:
        do: the command's work; receives an `UnderWay`, then `what`.
    """
    under_way = UnderWay()
    was_interrupted = False
    status = UNKNOWN
    try:
        try:
            status = trio.run(until_interrupted, do, under_way, *what)
        except* KeyboardInterrupt:  # alone, or in the group of a nursery
            was_interrupted = True
    except ConfigError as error:
        if not (error.key.startswith("--") or error.key.isupper()):  # no option and no argument
            raise
        raise click.UsageError(error.detail) from None
    if was_interrupted:
        if not under_way.hint:
            raise click.Abort
        click.echo(f"\n{under_way.hint}", err=True)
        status = under_way.status
    sys.exit(status)


def new_console() -> "Console":
    """Create a console on standard error, for lines of progress and the terms of a trade."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def new_tell() -> Callable[[str], None]:
    """Return a function that prints a line of progress on standard error."""
    return partial(new_console().print, style="dim")
