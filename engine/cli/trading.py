"""Parts shared by the commands that ask a venue: `swap`, `order`, `otc`, `webhooks`."""

import math
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

import click
import trio
from msgspec import Struct, structs

from ...codecs.messages.resource_messages import TokenList
from ...config import limits
from ...config.errors import ConfigError
from ...config.secret import Secret, read_secret
from ...config.timeouts import TRADER_WATCH_S
from ...crypto.secp256k1 import SigningKey
from ..chain.port import Chain
from ..client.allowing import Allowing
from ..client.client import VenueClient
from ..client.outcome import TradeVerdict
from ..client.terms import TradedToken
from ..client.tokens import find_token
from ..client.trader import Trader
from ..process.interrupts import until_interrupted
from .parameters import (
    API_KEY_HELP,
    RPC_HELP,
    VENUE_HELP,
    check_venue,
)
from .sources import KEY_HELP, PASSWORD_HELP

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
"""Exit status of a trading command."""
_ARGUMENTS = frozenset(
    ("SELL_TOKEN", "BUY_TOKEN", "AMOUNT", "HASH|FILE", "--taker", "--venue", "--rfq")
) | frozenset(
    ("--limit", "--limit-amount", "--min", "--max", "--slices", "--price", "--receive", "--amount", "--out")
)
HASH_BYTES = 32
SLIPPAGE_BPS = 50
"""Default slippage tolerance, basis points."""
HELP = {"help_option_names": ["-h", "--help"]}


class UnderWay(Struct):
    """State of a running command that decides what an interrupt prints and which exit status it has.

    Attributes:
        hint: commands that continue with the order; empty before an order exists.
        status: exit status after an interrupt with a hint.
    """

    hint: str = ""
    status: int = UNKNOWN


class VenueOptions(Struct, frozen=True):
    """Options of a command that name the venue and the output format."""

    url: str
    api_key: Secret | None
    is_json: bool
    timeout_s: float = TRADER_WATCH_S

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[VenueClient]:
        """Context manager that opens a client of the venue."""
        async with VenueClient.open(self.url, self.api_key) as client:
            yield client

    def hint(self, name: str, group: str = "order") -> str:
        """Return the commands that continue with an order that has not ended.

        Args:
            group: `order` for a Delta order, `otc` for an OTC order.
        """
        return (
            f"`cambist {group} watch {name} --venue {self.url}` follows it, "
            f"`cambist {group} cancel {name} --venue {self.url} ...` cancels it"
        )

    def withdrawal(self) -> str:
        """Return the command that withdraws a deposit."""
        return f"`cambist order withdraw --venue {self.url} ...` takes the deposit back"


def venue_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the options of a venue to a command, which receives them as `venue`."""
    return _with_place(command, is_needed=True)


def venue_options_if_any(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator like `venue_options` with an optional --venue: without it the URL is empty."""
    return _with_place(command, is_needed=False)


def _with_place(command: Callable[..., None], *, is_needed: bool) -> Callable[..., None]:
    @wraps(command)
    def with_venue(*, venue_url: str | None, api_key: str | None, is_json: bool, **rest: Any) -> None:
        if venue_url is not None:
            check_venue(venue_url)
        secret = read_secret(api_key, os.environ, "--api-key") if api_key else None
        command(venue=VenueOptions(venue_url or "", secret, is_json), **rest)

    for option in (
        click.option("--json", "is_json", is_flag=True, help="Print one line of JSON on standard output."),
        click.option("--api-key", help=API_KEY_HELP),
        click.option("--venue", "venue_url", required=is_needed, help=VENUE_HELP),
    ):
        with_venue = option(with_venue)
    return with_venue


def chain_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the options of a chain, its node, and the key that signs."""
    for option in (
        click.option("--password", help=PASSWORD_HELP),
        click.option("--key", required=True, help=KEY_HELP),
        click.option("--rpc", required=True, help=RPC_HELP),
        click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id."),
    ):
        command = option(command)
    return command


class SecondsParam(click.FloatRange):
    """Click parameter type: seconds above zero, `inf` included."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a value; see `click.ParamType.convert`."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):  # NaN is not below any bound
            self.fail(f"{seconds} is not in the range x>0.", param, ctx)
        return seconds


timeout = click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=SecondsParam(),
    default=TRADER_WATCH_S,
    show_default=True,
    help="Time to follow the order; it lives on afterwards.",
)


slippage = click.option(
    "--slippage",
    "slippage_bps",
    metavar="BPS",
    type=click.IntRange(limits.SLIPPAGE_BPS_MIN, limits.SLIPPAGE_BPS_MAX),
    default=SLIPPAGE_BPS,
    show_default=True,
    help="Tolerated loss against the quote, in basis points.",
)
permit_option = click.option(
    "--permit", is_flag=True, help="Sign an EIP-2612 permit in place of an approval."
)
approve_max_option = click.option(
    "--approve-max", is_flag=True, help="Approve any amount, not just this amount."
)


def run(do: Callable[..., Any], *what: object) -> NoReturn:
    """Run a command and exit with its status; an interrupt prints the hint of `UnderWay`."""
    under_way = UnderWay()
    was_interrupted = False
    status = UNKNOWN
    try:
        try:
            status = trio.run(until_interrupted, do, under_way, *what)
        except* KeyboardInterrupt:
            was_interrupted = True
    except ConfigError as error:
        if error.key not in _ARGUMENTS:
            raise
        raise click.UsageError(error.detail) from None
    if was_interrupted:
        if not under_way.hint:
            raise click.Abort
        click.echo(f"\n{under_way.hint}", err=True)
        status = under_way.status
    sys.exit(status)


def allowing_of(*, permit: bool, approve_max: bool) -> Allowing:
    """Determine from the options how a spender is allowed to take the sold token.

    Raises:
        click.UsageError: both options are set.
    """
    if permit and approve_max:
        raise click.UsageError("--permit and --approve-max exclude each other")
    return Allowing.PERMIT if permit else Allowing.MOST if approve_max else Allowing.EXACT


def allowing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the options of an allowance for the spender, received as `allowing`."""

    @wraps(command)
    def with_allowing(*, permit: bool, approve_max: bool, **rest: Any) -> None:
        command(allowing=allowing_of(permit=permit, approve_max=approve_max), **rest)

    return permit_option(approve_max_option(with_allowing))


async def find_pair(
    chain: Chain, venue: VenueClient, sell: str, buy: str, tell: Callable[[str], None]
) -> tuple[TokenList, TradedToken, TradedToken]:
    """Fetch the venue's list of tokens, and find the tokens that SELL_TOKEN and BUY_TOKEN name in it.

    Raises:
        ConfigError: an argument names no token.
    """
    tell("asking the venue for its tokens")
    listed = await venue.tokens(chain.chain_id)
    src = await find_token(chain, listed, sell, "SELL_TOKEN")
    return listed, src, await find_token(chain, listed, buy, "BUY_TOKEN")


def refuse_mixed(name: str | None, noun: str, *, many: dict[str, Any], one: dict[str, Any]) -> None:
    """Refuse options about many orders beside the name of one, and options about one without a name.

    Args:
        noun: kind of the name with its article, for the error, such as "an order".
        many: options about many orders, by name -> value.
        one: options about one order, by name -> value.

    Raises:
        click.UsageError: names the option.
    """
    for option, value in (many if name is not None else one).items():
        if value:
            raise click.UsageError(f"{option}: {'not with' if name is not None else 'only with'} {noun}")


def new_trader(
    chain: Chain, key: SigningKey, tell: Callable[[str], None], allowing: Allowing = Allowing.EXACT
) -> Trader:
    """Create a trader with the key's account and the wall clock."""
    return Trader(chain=chain, key=key, wall_s=lambda: int(time.time()), tell=tell, allowing=allowing)


def new_console() -> "Console":
    """Create a console on standard error, for progress and the offer."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def timed(place: VenueOptions, timeout_s: float) -> VenueOptions:
    """Copy the venue options with a time limit for following orders, in seconds."""
    return structs.replace(place, timeout_s=timeout_s)
