"""Prices of another market maker, with a spread: its books over HTTP or WebSocket, shifted, as ours.

    url              of its five endpoints, prefix included
    ws_url           of its WebSocket; without one its /prices is polled
    credentials      { domain, access_key, secret, secret_encoding }; the secret is env:NAME or file:PATH
    pairs            our pair id -> its pair id; without it, every pair of ours under its own id
    bid_spread_bps   how far below its bids ours are
    ask_spread_bps   how far above its asks ours are
    amount_factor    how much of its amounts we show, a decimal string: "0.5" for half
    levels           of each side, at most
    prices_every_s   between two polls
    stale_s          a book that it has not confirmed for so long is taken down
    refresh_ms       how often unchanged prices are confirmed

A bid is `bid * (10000 - bps) / 10000` and an ask `ask * (10000 + bps) / 10000`, exactly; beyond 36 decimals
a bid is rounded down and an ask up, all in integers: what does not cross there does not cross here. Amounts
are exact, cut at 36 decimals. A level of which nothing is left is left out.

What it does not show, we do not: a pair that it disables, that goes stale, or a maker that is gone, is taken
down here at once.

A mirror follows only a pair of the same tokens, by address and decimals, in the same direction.

Source: spec 3.8; `feeds.supervisor` for what counts as gone.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from random import SystemRandom
from typing import Any

import httpx
import trio
from msgspec import UNSET, Struct, UnsetType

from ....codecs.amounts import POWERS_OF_TEN, format_units, parse_decimal, parse_decimals, rescale_down
from ....codecs.http1 import Http1Limits
from ....codecs.messages.maker_messages import Level, PriceGrid
from ....codecs.rounding import div_down, div_up
from ....config import limits
from ....config.errors import ConfigError, InvalidInput
from ....config.secret import SecretEncoding
from ....config.sections.venue import VenueMakerChain
from ....config.timeouts import HTTP_REQUEST_S
from ....crypto.hmac_auth import RequestSigner, decode_secret
from ....feeds.books.pair_index import PairIndex
from ....feeds.maker_cache import MakerCache
from ....feeds.net.httpx_transport import DialTransport
from ....feeds.net.streams import client_tls
from ....feeds.supervisor import MakerFeed
from .source import SourceContext, read_options

_CONNECTIONS_MAX = 4
_BLACKLIST_MS = 1_000  # its blacklist is of its own users
_SPREAD_BPS_MAX = 5_000
_BPS_DECIMALS = 4


class MirrorCredentials(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was exchanged with the other maker; `secret` is a reference."""

    domain: str
    access_key: str
    secret: str
    secret_encoding: SecretEncoding = "utf8"  # noqa: S105


class MirrorOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """See the module."""

    url: str
    ws_url: str = ""
    credentials: MirrorCredentials | None = None
    pairs: dict[str, str] = {}
    bid_spread_bps: int = 10
    ask_spread_bps: int = 10
    amount_factor: str = "1"
    levels: int = limits.MAKER_LEVELS_MAX
    prices_every_s: float = 1.0
    stale_s: float = 5.0
    refresh_ms: int = 1_000

    def __post_init__(self) -> None:
        for name, least, most in (
            ("bid_spread_bps", 0, _SPREAD_BPS_MAX),
            ("ask_spread_bps", 0, _SPREAD_BPS_MAX),
            ("levels", 1, limits.MAKER_LEVELS_MAX),
            ("prices_every_s", 0.1, 60),
            ("stale_s", 0.5, 60),
            ("refresh_ms", 10, 60_000),
        ):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {least} to {most}, got {getattr(self, name)}")


class Shift(Struct, frozen=True):
    """What is done to a book.

    Attributes:
        factor: mantissa and scale of the amount factor.
    """

    bid_spread_bps: int
    ask_spread_bps: int
    factor: tuple[int, int]
    levels: int

    def applied(self, grid: PriceGrid) -> PriceGrid:
        """The book that is shown for one of the other maker's; a side that is absent stays absent."""
        one = limits.BPS_ONE
        return PriceGrid(
            self._side(grid.bids, one - self.bid_spread_bps, div_down),
            self._side(grid.asks, one + self.ask_spread_bps, div_up),
        )

    def _side(
        self, levels: tuple[Level, ...] | UnsetType, bps: int, divided: Callable[[int, int], int]
    ) -> tuple[Level, ...] | UnsetType:
        """The levels with their prices times `bps`."""
        if levels is UNSET or not levels:
            return levels
        levels = levels[: self.levels]
        prices, finest = parse_decimals([price for price, _ in levels], lambda at: f"[{at}][0]")
        exact = finest + _BPS_DECIMALS
        decimals = min(exact, limits.DECIMAL_FRACTION_DIGITS_MAX)
        shown: list[Level] = []
        for price, (_, amount) in zip(prices, levels, strict=True):
            moved, left = divided(price * bps, POWERS_OF_TEN[exact - decimals]), self._amount(amount)
            if moved and left != "0" and moved < POWERS_OF_TEN[limits.DECIMAL_WHOLE_DIGITS_MAX + decimals]:
                shown.append((format_units(moved, decimals), left))
        return tuple(shown)

    def _amount(self, text: str) -> str:
        mantissa, scale = parse_decimal(text)
        factor, factor_scale = self.factor
        exact = scale + factor_scale
        shown = min(exact, limits.DECIMAL_FRACTION_DIGITS_MAX)
        amount = rescale_down(mantissa * factor, exact, shown)
        most = POWERS_OF_TEN[limits.DECIMAL_WHOLE_DIGITS_MAX + shown] - 1
        return format_units(min(amount, most), shown)


class Mirror:
    """The price source `mirror`."""

    def __init__(self, options: Mapping[str, Any], context: SourceContext) -> None:
        read = self._options = read_options(MirrorOptions, options, context)
        self._context = context
        self._signer = _signer(read.credentials, context)
        self._pairs = _pairs(read, context)
        try:
            factor = parse_decimal(read.amount_factor)
        except InvalidInput as error:
            raise ConfigError(f"{context.field}.amount_factor", f"expected {error.expected}") from None
        if factor[0] == 0:
            raise ConfigError(f"{context.field}.amount_factor", "is zero")
        self._shift = Shift(read.bid_spread_bps, read.ask_spread_bps, factor, read.levels)
        try:
            self._place = VenueMakerChain(
                url=read.url, ws_url=read.ws_url, prices_every_s=read.prices_every_s, stale_s=read.stale_s
            )
        except ValueError as error:
            raise ConfigError(context.field, str(error)) from None
        self._made: dict[str, tuple[PriceGrid, PriceGrid]] = {}
        self._said: dict[str, str] = {}

    async def updates(self) -> AsyncGenerator[dict[str, PriceGrid], None]:
        """What changes there, at once; every `refresh_ms` all that it still shows."""
        index, changed = PairIndex(), _Changed()
        index.watch(changed.tell)
        transport = DialTransport(
            tls=client_tls(),
            connections_max=_CONNECTIONS_MAX,
            limits=Http1Limits(body_bytes_max=limits.MAKER_JSON_BYTES_MAX),
        )
        async with (
            httpx.AsyncClient(transport=transport, timeout=HTTP_REQUEST_S) as http,
            trio.open_nursery() as nursery,
        ):
            feed = self._feed(index, http)
            nursery.start_soon(feed.run)  # which never ends by itself
            told: dict[str, PriceGrid] = {}
            refresh_at = trio.current_time()
            with suppress(GeneratorExit):  # the nursery would put it into a group
                while True:
                    shown = self._shown(feed.cache)
                    if trio.current_time() >= refresh_at:
                        refresh_at = trio.current_time() + self._options.refresh_ms / 1_000
                        update = {**dict.fromkeys(told.keys() - shown.keys(), _GONE), **shown}
                    else:
                        update = _changes(told, shown)
                    told = shown
                    if update:
                        yield update
                    with trio.move_on_at(refresh_at):
                        await changed.wait()
            nursery.cancel_scope.cancel()

    def _feed(self, index: PairIndex, http: httpx.AsyncClient) -> MakerFeed:
        pairs = [self._context.pairs[pair_id] for pair_id in self._pairs]
        decimals = {pair.base_address: pair.base_decimals for pair in pairs}
        decimals |= {pair.quote_address: pair.quote_decimals for pair in pairs}
        return MakerFeed(
            "mirrored",
            self._context.chain_id,
            self._place,
            signer=self._signer,
            index=index,
            decimals=decimals,
            blacklist_ms=_BLACKLIST_MS,
            http=http,
            tls=client_tls(),
            wall_ms=self._context.now_ms,
            random=SystemRandom(),
        )

    def _shown(self, cache: MakerCache) -> dict[str, PriceGrid]:
        """Our pairs that it shows now, shifted."""
        shown = {}
        for pair_id, their_id in self._pairs.items():
            live = cache.live(their_id)
            if live is None:
                continue
            base, quote, grid = live
            pair = self._context.pairs[pair_id]
            if (base, quote) != (pair.base_address, pair.quote_address):
                self._say(pair_id, f"{their_id} of the mirrored maker is not of the same base and quote")
                continue
            made = self._made.get(pair_id)
            if made is None or made[0] is not grid:
                made = self._made[pair_id] = grid, self._shift.applied(grid)
            shown[pair_id] = made[1]
        return shown

    def _say(self, pair_id: str, text: str) -> None:
        """Report once."""
        if self._said.get(pair_id) != text:
            self._said[pair_id] = text
            self._context.report(f"{pair_id}: {text}")


class _Changed:
    """Tells that the index has changed."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def tell(self, _base: bytes, _quote: bytes) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Until something has changed since the last return."""
        await self._event.wait()
        self._event = trio.Event()


_GONE = PriceGrid()


def _changes(told: Mapping[str, PriceGrid], shown: Mapping[str, PriceGrid]) -> dict[str, PriceGrid]:
    changed = {pair_id: grid for pair_id, grid in shown.items() if told.get(pair_id) is not grid}
    return dict.fromkeys(told.keys() - shown.keys(), _GONE) | changed


def _signer(credentials: MirrorCredentials | None, context: SourceContext) -> RequestSigner | None:
    if credentials is None:
        return None
    field = f"{context.field}.credentials"
    secret = context.secret(credentials.secret, f"{field}.secret")
    try:
        key = decode_secret(secret.reveal(), credentials.secret_encoding)
        return RequestSigner(credentials.domain, credentials.access_key, key)
    except ConfigError as error:
        raise ConfigError(field, error.detail) from None


def _pairs(read: MirrorOptions, context: SourceContext) -> dict[str, str]:
    """Our pair id -> its pair id."""
    for pair_id in read.pairs:
        if pair_id not in context.pairs:
            raise ConfigError(f"{context.field}.pairs.{pair_id}", "is no pair of this chain")
    return read.pairs or {pair_id: pair_id for pair_id in context.pairs}
