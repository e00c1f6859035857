"""The interface of a price source, and the loading of the source that the settings name.

A maker's own source is a class of two methods:

    class MyPrices:
        def __init__(self, options, context): ...      # options: the price_options of the settings
        async def updates(self):                       # an async generator, for as long as the maker runs
            while True:
                yield {"WETH/USDC": {"bids": [("2499.5", "1")], "asks": [("2500.5", "1")]}}
                await trio.sleep(0.5)

and `price_source = "my_prices:MyPrices"` names it: module and class, from the settings file's folder or from
the installed modules. An update gives grids by pair: an absent pair is unchanged, `{}` disables a pair. Each
update confirms the prices in it: a price without a confirmation within the chain's `price_life_ms` is
withdrawn, so a source repeats prices that are still valid. A source that raises is created anew and started
again, with back-off.

The constructor reads its options and does no I/O: the maker also calls it at its start, to test the options.
A source waits only by functions of trio, so that tests control the time.
"""

import importlib
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .....codecs.messages.maker_messages import Level, PriceGrid
from .....config.errors import CambistError, ConfigError, InvalidInput
from .....config.limits import DECIMAL_FRACTION_DIGITS_MAX, DECIMAL_WHOLE_DIGITS_MAX, MAKER_LEVELS_MAX
from .....config.secret import Secret
from ....host.process.own_modules import import_module

Options = TypeVar("Options", bound=Struct)

GridLevel: TypeAlias = Sequence[str | Decimal]
Grid: TypeAlias = PriceGrid | Mapping[str, Sequence[GridLevel]]
"""A pair's prices: a PriceGrid, or `{"bids": [(price, amount), ...], "asks": [...]}` of strings or Decimals,
best first.
"""

SHIPPED = {
    "static": "static:StaticPrices",
    "random_walk": "random_walk:RandomWalk",
    "replay": "replay:Replay",
}
_SIDES = frozenset({"bids", "asks"})
_UNKNOWN_KEY = "Object contains unknown field `"
_MISSING_KEY = "Object missing required field `"


class SourcePair(Struct, frozen=True):
    """A pair that a price source may quote: ids, decimals and addresses (20 bytes) of its two tokens."""

    base: str
    quote: str
    base_decimals: int
    quote_decimals: int
    base_address: bytes
    quote_address: bytes


class SourceContext(Struct, frozen=True, kw_only=True):
    """The maker's data and functions that a price source may use, besides its options.

    Attributes:
        chain_id: chain of the prices.
        pairs: the chain's pairs by pair id.
        now_ms: returns the wall clock, Unix milliseconds.
        folder: base of relative file names: the folder of the settings file.
        secret: function that reads a secret. Arguments: `env:NAME` or `file:PATH`, and the dotted name of the
            option for errors.
        exposure: function pair id -> base tokens that the maker sells, less base tokens that the maker buys,
            in fills and live quotes together. A source can shift its prices to reduce this exposure.
        report: writes one line to the operator's log.
        field: dotted name of the options in errors, `maker.chains.1.price_options`; `load_source` sets it.
    """

    chain_id: int
    pairs: Mapping[str, SourcePair]
    now_ms: Callable[[], int]
    folder: Path
    secret: Callable[[str, str], Secret]
    exposure: Callable[[str], Decimal]
    report: Callable[[str], None]
    field: str = "price_options"


class PriceSource(Protocol):
    """Protocol: a price source, which yields the prices of one chain's pairs."""

    def __init__(self, options: Mapping[str, Any], context: SourceContext) -> None: ...

    def updates(self) -> AsyncGenerator[Mapping[str, Grid], None]:
        """Yield price grids by pair id, for ever. Closing the generator releases the source's resources."""
        ...


def load_source(
    name: str, options: Mapping[str, Any], context: SourceContext, field: str = "price_options"
) -> PriceSource:
    """Create a price source of the class that the settings name.

    Args:
        name: `static`, `random_walk`, `replay`, or `module:Class`.
        options: the source's own settings.
        field: dotted name of the options in errors.

    Raises:
        ConfigError: the module or class does not exist, the class is no price source, or the class refuses
            the options; the error names the setting.
    """
    context = msgspec.structs.replace(context, field=field)
    source_class = _source_class(name, context.folder, f"{field.removesuffix('price_options')}price_source")
    try:
        return source_class(options, context)
    except CambistError:
        raise
    except Exception as error:
        raise ConfigError(field, f"{name} does not take them: {error!r}") from error


def read_options(kind: type[Options], options: Mapping[str, Any], context: SourceContext) -> Options:
    """Decode a price source's options into a struct; numbers may also be strings, as in the environment.

    Args:
        kind: a msgspec Struct, best with `forbid_unknown_fields=True`.

    Raises:
        ConfigError: an option is unknown, missing or invalid; the error names the option.
    """
    try:
        return msgspec.convert(dict(options), kind, strict=False, str_keys=True)
    except msgspec.ValidationError as error:
        text, _, where = str(error).rpartition(" - at `$")
        text, path = (text, where.rstrip("`")) if text else (where, "")
    for start, said in ((_UNKNOWN_KEY, "is not an option"), (_MISSING_KEY, "is missing")):
        if text.startswith(start):
            raise ConfigError(f"{context.field}{path}.{text.removeprefix(start).rstrip('`')}", said)
    raise ConfigError(f"{context.field}{path}", text[:1].lower() + text[1:])


def normalise_grid(pair_id: str, value: Grid) -> PriceGrid:
    """Convert a price source's grid to an immutable PriceGrid.

    The later construction of the order book checks that bids and asks do not cross.

    Raises:
        InvalidInput: the value is no grid, or a price or amount is neither a string nor a Decimal (floats are
            not exact). The error names pair, side and level.
    """
    field = f"prices.{pair_id}"
    if isinstance(value, PriceGrid):
        return PriceGrid(_side(value.bids, f"{field}.bids"), _side(value.asks, f"{field}.asks"))
    if not isinstance(value, Mapping):
        raise InvalidInput(field=field, expected="an object with bids and asks", got=value)
    for key in value:
        if key not in _SIDES:
            raise InvalidInput(field=field, expected="bids and asks", got=key)
    return PriceGrid(
        _side(value.get("bids", UNSET), f"{field}.bids"), _side(value.get("asks", UNSET), f"{field}.asks")
    )


def _side(levels: Sequence[GridLevel] | UnsetType, field: str) -> tuple[Level, ...] | UnsetType:
    if levels is UNSET:
        return UNSET
    if not isinstance(levels, list | tuple):
        raise InvalidInput(field=field, expected="a list of [price, amount]", got=levels)
    if len(levels) > MAKER_LEVELS_MAX:
        raise InvalidInput(field=field, expected=f"at most {MAKER_LEVELS_MAX} levels", got=len(levels))
    return tuple([_level(level, field, at) for at, level in enumerate(levels)])


def _level(level: GridLevel, field: str, at: int) -> Level:
    if not isinstance(level, list | tuple) or len(level) != 2:
        raise InvalidInput(field=f"{field}[{at}]", expected="[price, amount]", got=level)
    price, amount = level
    if type(price) is str and type(amount) is str:
        return price, amount
    return _text(price, f"{field}[{at}][0]"), _text(amount, f"{field}[{at}][1]")


def _text(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Decimal):
        expected = "a string or a Decimal (never a float: it is not exact)"
        raise InvalidInput(field=field, expected=expected, got=value)
    exponent = value.as_tuple().exponent
    if (
        not isinstance(exponent, int)
        or exponent < -DECIMAL_FRACTION_DIGITS_MAX
        or value.adjusted() >= DECIMAL_WHOLE_DIGITS_MAX
    ):
        expected = (
            f"at most {DECIMAL_WHOLE_DIGITS_MAX} whole and {DECIMAL_FRACTION_DIGITS_MAX} decimal digits"
        )
        raise InvalidInput(field=field, expected=expected, got=value)
    return f"{value:f}"


def _source_class(name: str, folder: Path, field: str) -> type[PriceSource]:
    module_name, colon, class_name = SHIPPED.get(name, name).partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        known = ", ".join(SHIPPED)
        raise ConfigError(field, f"expected one of {known}, or module:Class, got {name!r}")
    if name in SHIPPED:
        module = importlib.import_module(f".{module_name}", __package__)
    else:
        module = import_module(module_name, folder.resolve(), field)
    found = getattr(module, class_name, None)
    if found is None:
        raise ConfigError(field, f"module {module_name} has no class {class_name}")
    if not isinstance(found, type):
        raise ConfigError(field, f"{name} is not a class")
    try:
        inspect.signature(found).bind({}, None)
    except (TypeError, ValueError):
        raise ConfigError(field, f"{name} is not made by {class_name}(options, context)") from None
    if not inspect.isasyncgenfunction(getattr(found, "updates", None)):
        raise ConfigError(field, f"{name} has no async generator `updates`: an `async def` with a `yield`")
    return found
