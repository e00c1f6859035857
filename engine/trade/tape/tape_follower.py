"""Keeps the tapes of a venue's chains as the store's logs have it: a task for each chain.

    start      the store's fills, a page at a time, from the latest back to TAPE_S seconds ago
    wake       the chain's indexer has stored rows, or has deleted rows that a re-organisation undid
               -> the fills above the lowest such block -> trades that came, trades that went
    away       the store cannot be read: the same blocks again after TAPE_PAUSE_S

Only the indexer wakes the task, so that a chain without fills costs nothing: fills of Market swaps cause no
event of an order. If another engine indexes the chain's blocks, this engine's indexer reports these blocks
without their rows, and the task reads them: one read, along an index, for each of the indexer's own.

A trade gets the values of its tokens at once. In the first TAPE_WORTH_S of a process, in which makers' books
arrive, trades without a value are valued again.

Source: ARCHITECTURE.md, "Trades".
"""

from collections.abc import Callable, Mapping, Sequence

import structlog
import trio
from msgspec import Struct

from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import StoreUnavailable
from ....config.limits import TAPE_PAGE_ROWS, TAPE_ROWS_MAX
from ....config.sections.venue import VenueMaker
from ....config.timeouts import TAPE_PAUSE_S, TAPE_S, TAPE_WORTH_LOOK_S, TAPE_WORTH_S
from ....crypto.hexadecimal import parse_hex
from ....feeds.books.usd_prices import USD_DECIMALS, UsdPrices
from ...store.store import Store
from ..orders.followed_chain import FollowedChains
from ..served.served_chain import ServedChains
from .tape_reading import TapePage, read_page
from .trade_tape import TradeTape
from .trades import TapeTrade, TradeAccounts, Worth, valued

_log = structlog.get_logger("cambist.venue")
_SPAN_MS = int(TAPE_S * 1_000)
_HEIGHT_MAX = (1 << 63) - 1
_CENT = 10 ** (USD_DECIMALS - 2)


class TapeStatistics(Struct, frozen=True):
    """Counters of a chain's tape.

    Attributes:
        trades: number of trades in memory.
        arrived: number of trades that came since the start.
        reads: number of pages read from the store.
        rows: number of rows in these pages.
        failed: number of reads that failed because the store was unavailable.
        is_loaded: whether the stored trades are read.
    """

    trades: int
    arrived: int
    reads: int
    rows: int
    failed: int
    is_loaded: bool


class FollowedTape:
    """A chain's tape, and the task `run` that follows the store's logs of the chain.

    Args:
        accounts: accounts by which the chain's trades are known.
        worth: returns the present value of an amount of a token.
        wall_ms: returns the time, Unix milliseconds.
        page_rows: most rows of each kind in one read of the store.

    Attributes:
        tape: the chain's trades.
        loaded: set once the stored trades are read.
    """

    def __init__(
        self,
        store: Store,
        chain_id: int,
        accounts: TradeAccounts,
        worth: Worth,
        wall_ms: Callable[[], int],
        *,
        page_rows: int = TAPE_PAGE_ROWS,
    ) -> None:
        self.tape = TradeTape(chain_id)
        self._store = store
        self._chain_id = chain_id
        self._accounts = accounts
        self._worth = worth
        self._wall_ms = wall_ms
        self._page_rows = page_rows
        self._above: int | None = None  # height above which fills are to be read again
        self._woken = trio.Event()
        self._arrived = trio.Event()
        self._reads = self._rows = self._failed = 0
        self.loaded = trio.Event()

    def note(self, above_height: int) -> None:
        """Note that rows above a height were added or deleted, and wake the task; an indexer calls this."""
        self._above = above_height if self._above is None else min(self._above, above_height)
        self._woken.set()

    def arrived(self) -> trio.Event:
        """Return the event that is set once a later trade has arrived.

        A caller that gets the event before it looks at the tape misses no trade.
        """
        return self._arrived

    def statistics(self) -> TapeStatistics:
        """Return the counters of the tape."""
        return TapeStatistics(
            len(self.tape), self.tape.end, self._reads, self._rows, self._failed, self.loaded.is_set()
        )

    async def run(self) -> None:
        """Read the stored trades, then follow the chain's logs, until cancelled."""
        # `_load` reads all rows that are stored by now; a change while it reads leaves its height in `_above`
        # and sets the new event, so that `_refresh` reads these blocks once more.
        self._above, self._woken = None, trio.Event()
        async with trio.open_nursery() as nursery:
            await self._load()
            nursery.start_soon(self._value_late)
            while True:
                await self._woken.wait()
                self._woken = trio.Event()  # before the reads, which await: a later change sets this one
                await self._refresh()

    async def _load(self) -> None:
        height, rows = _HEIGHT_MAX, 0
        while rows < TAPE_ROWS_MAX and not self.tape.is_full:
            page = await self._page(-1, height)
            rows += page.rows
            self.tape.prepend(self._valued(page.trades), self._wall_ms())
            if page.above_height < 0 or self._is_before(page):
                break
            height = page.above_height
        self.loaded.set()

    async def _refresh(self) -> None:
        """Read the fills above the noted height, and put their trades in place of those on the tape."""
        above, self._above = self._above, None
        if above is None:
            return
        trades: list[TapeTrade] = []
        height, rows = _HEIGHT_MAX, 0
        while rows < TAPE_ROWS_MAX:
            page = await self._page(above, height)
            rows += page.rows
            trades += page.trades
            height = page.above_height
            if height <= above or self._is_before(page):
                break
        # Several pages are several states of the store: a step of the indexer between two reads has called
        # `note`, and the next refresh reads its blocks again. Blocks that were not read keep their trades.
        self.tape.forget(self._wall_ms())
        if self.tape.replace_above(max(height, above), self._valued(trades), self._wall_ms()):
            arrived, self._arrived = self._arrived, trio.Event()
            arrived.set()

    async def _page(self, above_height: int, height_max: int) -> TapePage:
        """Read a page of trades, again and again while the store is unavailable."""
        while True:
            try:
                page = await read_page(
                    self._store,
                    self._chain_id,
                    self._accounts,
                    above_height,
                    height_max,
                    self.tape.find,
                    rows_max=self._page_rows,
                )
            except StoreUnavailable as error:
                self._failed += 1
                _log.warning("trades wait for the store", chain_id=self._chain_id, detail=error.detail)
                await trio.sleep(TAPE_PAUSE_S)
                continue
            self._reads += 1
            self._rows += page.rows
            return page

    def _is_before(self, page: TapePage) -> bool:
        """Whether all rows below a page are too old for the tape."""
        return page.since_ms is not None and page.since_ms < self._wall_ms() - _SPAN_MS

    def _valued(self, trades: Sequence[TapeTrade]) -> list[TapeTrade]:
        return [
            valued(trade, self._worth) if self.tape.find(trade.log_id) is None else trade for trade in trades
        ]

    async def _value_late(self) -> None:
        """Value trades again while prices come in after the start; ends at once if none lacks a value."""
        with trio.move_on_after(TAPE_WORTH_S):
            while self.tape.revalue(self._worth):  # noqa: ASYNC110  prices come by books, one pair at a time
                await trio.sleep(TAPE_WORTH_LOOK_S)


class Tapes:
    """The tapes of a venue's chains; `run` follows all of them.

    Attributes:
        of_chain: chain id -> the chain's tape, for each served chain.
    """

    def __init__(self, of_chain: Mapping[int, FollowedTape]) -> None:
        self.of_chain = of_chain

    async def run(self) -> None:
        """Follow the logs of all chains until cancelled."""
        async with trio.open_nursery() as nursery:
            for followed in self.of_chain.values():
                nursery.start_soon(followed.run)

    def statistics(self) -> dict[str, TapeStatistics]:
        """Return the counters of each chain's tape, by chain id."""
        return {str(chain_id): followed.statistics() for chain_id, followed in self.of_chain.items()}


def open_tapes(
    store: Store,
    chains: ServedChains,
    followed_chains: FollowedChains,
    makers: Mapping[str, VenueMaker],
    wall_ms: Callable[[], int],
) -> Tapes:
    """Create the tapes of the served chains; the chains' indexers wake them.

    Args:
        followed_chains: chains whose logs are indexed; the tape of any other chain stays empty.
        makers: configured makers by name.
        wall_ms: returns the time, Unix milliseconds.
    """
    names = {
        parse_hex(account, "accounts"): name for name, maker in makers.items() for account in maker.accounts
    }
    of_chain: dict[int, FollowedTape] = {}
    for chain_id, served in chains.items():
        accounts = TradeAccounts(served.router, served.executor, names)
        worth = worth_in(served.usd, served.tokens.wrapped_native)
        of_chain[chain_id] = FollowedTape(store, chain_id, accounts, worth, wall_ms)
    for chain_id, followed in followed_chains:
        followed.listen(of_chain[chain_id].note)
    return Tapes(of_chain)


def worth_in(usd: UsdPrices, wrapped_native: bytes) -> Worth:
    """Make the function that values raw units of a token in cents, by the present mid prices.

    Args:
        wrapped_native: token whose price is that of the native token; empty for none.
    """

    def worth(token: bytes, amount: int) -> int | None:
        units = usd.units(wrapped_native if token == NATIVE_TOKEN else token, amount)
        return None if units is None else units // _CENT

    return worth
