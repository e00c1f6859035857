"""Click parameter types, callbacks and options of trading commands: addresses, percents, amounts, lives, a
venue and a node."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import click

from ...codecs.amounts import parse_decimal
from ...config import limits
from ...config.error_text import shown
from ...config.errors import ConfigError, InvalidInput
from ...config.sections.nodes import NodeSettings, revealed
from ...crypto.addresses import checked_address, to_checksum
from ...crypto.hexadecimal import parse_hex
from ..trader.client.client import checked_url
from .sources import Decorator

T = TypeVar("T")

_HASH_BYTES = 32
RPC_HELP = "A JSON-RPC node: URL, env:NAME or file:PATH."
_DURATION = re.compile(r"([0-9]{1,10})([smhd]?)", re.ASCII)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION_S_MAX = 100 * 366 * 86_400


class ParsedParam(click.ParamType[T]):
    """Click parameter type: a text that a function parses.

    Args:
        name: word for the type in the help.
        parse: function of (text, name of the option for errors) that returns the value.
    """

    def __init__(self, name: str, parse: Callable[[str, str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Parse a value; see `click.ParamType.convert`."""
        try:
            return self._parse(value, param.opts[0] if param else self.name)
        except InvalidInput as error:
            self.fail(error.detail, param, ctx)


def _percent(text: str, field: str) -> Decimal:
    mantissa, scale = parse_decimal(text, field)
    return Decimal(mantissa).scaleb(-scale)


ADDRESS = ParsedParam("address", checked_address)
"""Click parameter type: an address of 20 bytes; a wrong checksum is refused."""
PERCENT = ParsedParam("percent", _percent)
"""Click parameter type: a percentage as an exact decimal."""


class Duration(click.ParamType[int]):
    """Click parameter type: a duration as seconds, or as a number with the unit s, m, h or d; converted to
    seconds.

    Args:
        least_s: least duration, seconds.
    """

    name = "duration"

    def __init__(self, least_s: int = 1) -> None:
        self._least_s = least_s

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a value to seconds; see `click.ParamType.convert`."""
        if isinstance(value, int):
            return value
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"expected seconds, or a number with s, m, h or d, got {shown(value)}", param, ctx)
        seconds = int(found[1]) * _UNIT_S[found[2]]
        if not self._least_s <= seconds <= _DURATION_S_MAX:
            self.fail(f"expected {self._least_s} to {_DURATION_S_MAX} s, got {seconds} s", param, ctx)
        return seconds


class Expires(Duration):
    """Click parameter type: the life of an order as a `Duration`, or `never`, which is converted to 0."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a value to seconds; see `click.ParamType.convert`."""
        return 0 if value == "never" else super().convert(value, param, ctx)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Context manager that shows an error in the command line as wrong usage."""
    try:
        yield
    except (ConfigError, InvalidInput) as error:
        raise click.UsageError(error.detail) from None


def parsed(
    parse: Callable[[str, str], T],
) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """Return a callback for a click option or argument, which parses the text to a value.

    The value is None if the option is absent.

    Args:
        parse: function of (text, name of the option for errors); its errors are shown as wrong usage.
    """

    def callback(_: click.Context, param: click.Parameter, text: str | None) -> T | None:
        name = param.human_readable_name if isinstance(param, click.Argument) else param.opts[0]
        with usage_errors():
            return None if text is None else parse(text, name)

    return callback


def once(_: click.Context, __: click.Parameter, values: tuple[T, ...]) -> tuple[T, ...]:
    """Callback of a repeatable option: its values without duplicates, in their sequence."""
    return tuple(dict.fromkeys(values))


def address_text(_: click.Context, __: click.Parameter, address: bytes | None) -> str:
    """Callback of an option of type ADDRESS: the address in its checksum spelling; empty if absent."""
    return "" if address is None else to_checksum(address)


def _decimal(text: str, field: str) -> str:
    parse_decimal(text, field)
    return text


def _node(text: str, field: str) -> NodeSettings:
    try:
        return revealed(NodeSettings(urls=(text,)), field, os.environ, Path())
    except ValueError as error:
        raise ConfigError(field, str(error)) from None


def _short_name(text: str, field: str) -> str:
    if len(text) > limits.NAME_CHARS_MAX:
        raise ConfigError(field, f"at most {limits.NAME_CHARS_MAX} characters")
    return text


decimal_text = parsed(_decimal)
"""Callback of options and arguments: an amount in whole tokens or a price, which stays text."""
node_settings, venue_url, partner_name = parsed(_node), parsed(checked_url), parsed(_short_name)
"""Callbacks of --rpc, --venue and --partner: a node's settings, a base URL, a name of bounded length."""


def price_option(name: str) -> Decorator:
    """The click option `name` for a limit price; the command receives the price as `price`."""
    text = "BUY_TOKEN for one SELL_TOKEN, such as 2600.5."
    return click.option(name, "price", metavar="PRICE", callback=decimal_text, help=text)


def amount_option(name: str, member: str, text: str) -> Decorator:
    """The click option for an amount in whole tokens; the command receives the amount as text.

    Args:
        name: the option, such as --amount.
        member: parameter that receives the text.
        text: help of the option.
    """
    return click.option(name, member, metavar="AMOUNT", callback=decimal_text, help=text)


def life_option(name: str, kind: Duration, default_s: int, text: str) -> Decorator:
    """The click option for the life of an order; the command receives seconds as `life_s`.

    Args:
        name: the option, such as --deadline.
        kind: parameter type.
        text: help of the option.
    """
    return click.option(name, "life_s", type=kind, default=str(default_s), help=text)


def order_hash_of(text: str, field: str, alternative: str = "") -> bytes:
    """Parse the hash of an order to 32 bytes.

    Args:
        alternative: end of the error about a wrong length, such as ", or an id", if the caller also accepts
            another form; this function does not.

    Raises:
        click.UsageError: the text is no hash.
    """
    with usage_errors():
        raw = parse_hex(text, field)
    if len(raw) != _HASH_BYTES:
        raise click.UsageError(f"{field}: expected 0x and 64 hexadecimal digits{alternative}")
    return raw
