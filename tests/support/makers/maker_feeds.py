"""A venue's feed of one maker, as tests need it: its index, its listed tokens, what it is told."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import trio

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.maker_messages import (
    decode_blacklist,
    decode_pairs,
    decode_prices,
    decode_stream_message,
    decode_tokens,
)
from cambist.config.limits import MAKER_JSON_BYTES_MAX
from cambist.config.sections.venue import VenueMakerChain
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.maker_cache import MakerCache
from cambist.feeds.supervisor import MakerFeed
from cambist.feeds.transport.signed_client import SignedClient
from cambist.feeds.transport.streams import Dial, client_tls, dial

CHAIN_ID = 31_337
ADDRESSES = {name: "0x" + f"{at:02x}" * 20 for at, name in enumerate(("WETH", "USDC", "DAI", "WBTC"), 0xA1)}
DECIMALS = {"WETH": 18, "USDC": 6, "DAI": 18, "WBTC": 8}
LISTED = {bytes.fromhex(ADDRESSES[name][2:]): decimals for name, decimals in DECIMALS.items()}
WETH, USDC, DAI, WBTC = (bytes.fromhex(text[2:]) for text in ADDRESSES.values())

LIFE_MS = 60_000
STALE_MS = 10_000

Json = dict[str, Any]


def token(name: str, **changes: Any) -> Json:
    """An entry of /tokens."""
    return {"address": ADDRESSES[name], "decimals": DECIMALS[name], "type": "ERC20", "symbol": name} | changes


def tokens(*names: str) -> Json:
    """The content of /tokens."""
    return {name: token(name) for name in names or DECIMALS}


def pair(pair_id: str, liquidity: int = 1_000) -> Json:
    """An entry of /pairs, by an id of the recommended form."""
    base, quote = pair_id.split("/")
    return {"base": base, "quote": quote, "liquidityUSD": liquidity}


def pairs(*pair_ids: str) -> Json:
    """The content of /pairs."""
    return {pair_id: pair(pair_id) for pair_id in pair_ids}


def grid(bid: str = "2500", ask: str = "2501", amount: str = "1") -> Json:
    """A grid with one level on each side."""
    return {"bids": [[bid, amount]], "asks": [[ask, amount]]}


class Told:
    """A cache, and JSON bodies that are applied to it whole."""

    def __init__(self, *, listed: Mapping[bytes, int] = LISTED, stale_ms: int = STALE_MS) -> None:
        self.index = PairIndex()
        self.cache = MakerCache(
            "alpha", self.index, listed, stale_ms=stale_ms, blacklist=MakerBlacklist(LIFE_MS)
        )

    def tokens(self, content: Any, now_ms: int = 0, asked_ms: int | None = None) -> None:
        body = decode_tokens(msgspec.json.encode({"tokens": content}))
        run(self.cache.apply_tokens(body, now_ms if asked_ms is None else asked_ms, now_ms))

    def pairs(self, content: Any, now_ms: int = 0, asked_ms: int | None = None) -> None:
        body = decode_pairs(msgspec.json.encode({"pairs": content}))
        run(self.cache.apply_pairs(body, now_ms if asked_ms is None else asked_ms, now_ms))

    def prices(self, content: Any, now_ms: int = 0, asked_ms: int | None = None) -> None:
        body = decode_prices(msgspec.json.encode({"prices": content}))
        run(self.cache.apply_prices(body, now_ms if asked_ms is None else asked_ms, now_ms))

    def blacklist(self, content: Any, now_ms: int = 0, asked_ms: int | None = None) -> None:
        body = decode_blacklist(msgspec.json.encode({"blacklist": content}))
        run(self.cache.apply_blacklist(body, now_ms if asked_ms is None else asked_ms, now_ms))

    def first(self, now_ms: int = 0, **contents: Any) -> None:
        self.message(now_ms, is_first=True, **({"blacklist": []} | contents))

    def message(self, now_ms: int = 0, *, is_first: bool = False, **contents: Any) -> None:
        body = decode_stream_message(msgspec.json.encode(contents))
        run(self.cache.apply_message(body, now_ms, is_first=is_first))

    def everything(self, now_ms: int = 0, *pair_ids: str) -> None:
        """Polls of all tokens, of these pairs, and of a grid for each of them."""
        self.tokens(tokens(), now_ms)
        self.pairs(pairs(*pair_ids), now_ms)
        self.prices(dict.fromkeys(pair_ids, grid()), now_ms)

    def live(self) -> set[tuple[bytes, bytes]]:
        """(base, quote) of the books in the index."""
        return live_of(self.index)


def run(steps: Iterator[None]) -> int:
    """Drive a generator to its end; how many steps it took."""
    return sum(1 for _ in steps)


def live_of(index: PairIndex, maker: str | None = None) -> set[tuple[bytes, bytes]]:
    """(base, quote) of the books in an index, of one maker or all."""
    return {(live.base, live.quote) for live in index.books() if maker in (None, live.maker)}


def a_feed(
    url: str, *, index: PairIndex | None = None, maker: str = "alpha", poll_dial: Dial = dial, **more: Any
) -> MakerFeed:
    """A feed that polls quickly; `more` goes to its settings, or is an argument of the feed."""
    arguments: Json = {"signer": None, "decimals": LISTED, "wall_ms": WallClock().now_ms, "random": Random(7)}
    arguments |= {name: more.pop(name) for name in (*arguments, "dial") if name in more}
    every: Json = {f"{name}_every_s": 0.05 for name in ("tokens", "pairs", "prices", "blacklist")}
    settings = VenueMakerChain(url=url, **(every | more))
    return MakerFeed(
        maker,
        CHAIN_ID,
        settings,
        index=PairIndex() if index is None else index,
        blacklist_ms=LIFE_MS,
        client=SignedClient(
            url,
            signer=arguments["signer"],
            wall_ms=arguments["wall_ms"],
            connections_max=4,
            limits=Http1Limits(body_bytes_max=MAKER_JSON_BYTES_MAX),
            dial=poll_dial,
        ),
        tls=client_tls(),
        **arguments,
    )


@asynccontextmanager
async def running(*feeds: MakerFeed) -> AsyncGenerator[None]:
    """These feeds, until the context is left."""
    async with trio.open_nursery() as nursery:
        for feed in feeds:
            nursery.start_soon(feed.run)
        yield
        nursery.cancel_scope.cancel()
