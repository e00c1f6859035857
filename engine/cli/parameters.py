"""Click parameter types and checks of trading commands: addresses, percents, amounts, a venue and a node."""

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import click

from ...codecs.amounts import parse_decimal, parse_units
from ...config import limits
from ...config.error_text import shown
from ...config.errors import ConfigError, InvalidInput
from ...config.sections.nodes import NodeSettings, revealed
from ...crypto.addresses import checked_address
from ..client.client import check_url
from ..client.limit_price import LimitPrice
from ..client.terms import TradedToken

VENUE_HELP = "The venue's URL."
RPC_HELP = "A JSON-RPC node: URL, env:NAME or file:PATH."
_DURATION = re.compile(r"([0-9]{1,10})([smhd]?)", re.ASCII)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION_S_MAX = 100 * 366 * 86_400
API_KEY_HELP = "Your API key at the venue: env:NAME or file:PATH."


class AddressParam(click.ParamType[bytes]):
    """Click parameter type: an address of 20 bytes; a wrong checksum is refused."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """Parse a value; see `click.ParamType.convert`."""
        if isinstance(value, bytes):
            return value
        try:
            return checked_address(value, param.opts[0] if param else "address")
        except InvalidInput as error:
            self.fail(error.detail, param, ctx)


class Percent(click.ParamType[Decimal]):
    """Click parameter type: a percentage as an exact decimal."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Parse a value; see `click.ParamType.convert`."""
        if isinstance(value, Decimal):
            return value
        try:
            mantissa, scale = parse_decimal(value, param.opts[0] if param else "percent")
        except InvalidInput as error:
            self.fail(error.detail, param, ctx)
        return Decimal(mantissa).scaleb(-scale)


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


def checked_node(rpc: str, **amounts: str) -> NodeSettings:
    """Check the command line's amounts, and parse the value of `--rpc` to the settings of a node.

    Args:
        amounts: name for errors -> text of an amount.

    Raises:
        click.UsageError: an amount or the node is malformed.
    """
    try:
        for name, amount in amounts.items():
            parse_decimal(amount, name)
        return revealed(NodeSettings(urls=(rpc,)), "--rpc", os.environ, Path())
    except (ConfigError, InvalidInput) as error:
        raise click.UsageError(error.detail) from None
    except ValueError as error:
        raise click.UsageError(f"--rpc: {error}") from None


def check_venue(url: str) -> None:
    """Refuse a value of `--venue` that is no base URL of http or https."""
    try:
        check_url(url)
    except ConfigError as error:
        raise click.UsageError(error.detail) from None


def check_partner(partner: str) -> None:
    """Refuse a value of `--partner` longer than NAME_CHARS_MAX."""
    if len(partner) > limits.NAME_CHARS_MAX:
        raise click.UsageError(f"--partner: at most {limits.NAME_CHARS_MAX} characters")


def check_decimals(amounts: Mapping[str, str | None]) -> None:
    """Refuse amounts that are no decimal numbers.

    Args:
        amounts: name for errors -> text of an amount; None if the option is absent.
    """
    try:
        for name, text in amounts.items():
            if text is not None:
                parse_decimal(text, name)
    except InvalidInput as error:
        raise click.UsageError(error.detail) from None


def check_price(prices: Mapping[str, str | None], amounts: Mapping[str, str | None]) -> None:
    """Refuse prices that are no decimal numbers or zero, and amounts that are no decimal numbers.

    Args:
        prices, amounts: name for errors -> text; None if the option is absent.
    """
    try:
        for name, text in prices.items():
            if text is not None:
                LimitPrice.parse(text, name)
    except (ConfigError, InvalidInput) as error:
        raise click.UsageError(error.detail) from None
    check_decimals(amounts)


def raw_units(text: str, token: TradedToken, field: str) -> int:
    """Convert an amount in whole tokens to raw units, exactly.

    Raises:
        ConfigError: the amount is finer than the token's decimals, zero, or too large.
    """
    mantissa, scale = parse_decimal(text, field)
    if scale > token.decimals and mantissa % 10 ** (scale - token.decimals):
        raise ConfigError(field, f"{token.symbol} has {token.decimals} decimals, got {text}")
    try:
        amount = parse_units(text, token.decimals, field)
    except InvalidInput as error:
        raise ConfigError(field, error.detail) from None
    if amount == 0:
        raise ConfigError(field, "is zero")
    return amount
