"""Venue as a process of the load tests; the books of 20 makers are put into its index, and kept fresh.

    python -m bench.quote_server --fd 5 --graph wide --makers 100

After every `QUOTES_A_CHANGE` quotes all books of one maker, one maker after another, are built again with
other prices: a quote is the same work at any rate and on any machine. The chain is the embedded one, the
store a process of its own. SIGTERM ends the server.
"""

import secrets
import signal
import socket
import tempfile
import time
from collections import Counter
from decimal import Decimal
from itertools import count
from pathlib import Path

import trio

from bench.peers.served import freeze, inherited, options
from bench.quote_work import CHAIN_ID, LINE, MAKERS, PAIRS, TOKENS, Token, grids
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import parse_address
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.venue.app import opened_venue
from cambist.feeds.books.book import Book, build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex

QUOTES_A_CHANGE = 30  # 20 makers that change their prices once a second, beside 600 quotes a second
LOOK_S = 0.001
VERSIONS = 8
LIQUIDITY_USD = Decimal(1_000_000)
_SETTINGS = f"""
state_dir = "."
route_seal_keys = ["env:ROUTE_SEAL"]
[chains.{CHAIN_ID}]
name = "bench"
delta = true
market = true
rfq = true
router = "0x{0xC001:040x}"
delta_contract = "0x{0xC002:040x}"
rfq_contract = "0x{0xC003:040x}"
executor = "0x{0xC004:040x}"
fee_vault = "0x{0xC005:040x}"
wrapped_native = "{next(token.address for token in TOKENS if token.symbol == "WETH")}"
[keys.relayer]
source = "env:RELAYER_KEY"
[relayers.{CHAIN_ID}]
key = "relayer"
[venue.rate_tiers]
public = {{ per_s = 100000, burst = 100000 }}
keyed = {{ per_s = 100000, burst = 100000 }}
"""
_TOKEN = """
[[tokens]]
chain_id = {chain_id}
address = "{address}"
symbol = "{symbol}"
decimals = {decimals}
stable_usd = {stable}
"""


class Books:
    """The makers' books in the venue's price index, which a task replaces again and again."""

    def __init__(self, index: PairIndex, graph: str, makers: int) -> None:
        self._index = index
        self._makers = makers
        self._grids = [
            [grids(graph, maker, version) for version in range(VERSIONS)] for maker in range(makers)
        ]
        self._shown: dict[tuple[int, tuple[Token, Token]], tuple[PriceGrid, Book]] = {}
        for maker in range(makers):
            self.show(maker, 0)

    def show(self, maker: int, version: int) -> None:
        """Build a version of the books of one maker and put it into the index, as a maker's feed does."""
        for pair, grid in self._grids[maker][version % VERSIONS].items():
            base, quote = pair
            field = f"prices.{base.symbol}/{quote.symbol}"
            previous = self._shown.get((maker, pair))
            book = build_book(grid, base.decimals, quote.decimals, field=field, previous=previous)
            self._shown[maker, pair] = grid, book
            ends = [parse_address(token.address, "address") for token in pair]
            self._index.put(LiveBook(f"maker-{maker}", ends[0], ends[1], book, LIQUIDITY_USD))

    async def keep_fresh(self, outcomes: Counter[tuple[str, str]]) -> None:
        """Replace the books of one maker after another, without end.

        Args:
            outcomes: number of answers by (mode, outcome).
        """
        for number in count(1):
            while outcomes.total() < number * QUOTES_A_CHANGE:  # noqa: ASYNC110  counts have no event
                await trio.sleep(LOOK_S)
            self.show(number % self._makers, 1 + number // self._makers)


def settings_text() -> str:
    """Return the text of the venue's settings: its chain and the tokens."""
    return _SETTINGS + "".join(
        _TOKEN.format(
            chain_id=CHAIN_ID,
            address=token.address,
            symbol=token.symbol,
            decimals=token.decimals,
            stable=str(token.is_stable).lower(),
        )
        for token in TOKENS
    )


async def serve(listener: socket.socket, folder: Path, graph: str, makers: int) -> None:
    environ = {"ROUTE_SEAL": secrets.token_hex(32), "RELAYER_KEY": "59" * 32}
    settings = parse_settings(settings_text(), environ, folder)
    chain = EmbeddedChain(CHAIN_ID, lambda: int(time.time()), {})
    async with opened_venue(
        settings, environ=environ, folder=folder, clock=WallClock(), chains={CHAIN_ID: chain}
    ) as app:
        books = Books(app.chains[CHAIN_ID].index, graph, makers)
        freeze()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(books.keep_fresh, app.quotes.outcomes)
            nursery.start_soon(app.run, listener)
            with trio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    break
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--graph", choices=PAIRS, default=LINE)
    parser.add_argument("--makers", type=int, default=MAKERS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trio.run(serve, inherited(chosen.fd), Path(folder), chosen.graph, chosen.makers)
