"""Store of 100,000 OTC orders, and the time of listings of their makers and takers, as the endpoints answer.

    heavy maker    90,000 orders, a thousand of them live; half name one taker, half are open and have it in
                   nonceAndMeta alone
    light makers   the others, 100 each

`python -m bench.otc_listings` asks for LOOKS pages of each kind and prints the median and the 99th percentile
of their CPU time, count and encoding included; other processes may run at the same time.
"""

import hashlib
import random
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from time import thread_time

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from cambist.codecs.messages.otc_messages import OtcListing
from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.codecs.messages.wire import encode
from cambist.config.settings import parse_settings
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import OtcFilter
from cambist.engine.store.rows import NEVER_S, OtcOrderRow, amount32
from cambist.engine.store.sqlite.sqlite import insert
from cambist.engine.store.tables import OTC_ORDER
from cambist.engine.store.units import values_of
from cambist.engine.trade.otc.document import OtcDocument, encode_document
from cambist.engine.trade.otc.stored_orders import StoredOtcOrders, StoredOtcPage

COUNT, LIGHT_ORDERS = 100_000, 100
HEAVY, LIVE = COUNT * 9 // 10, 1_000
LOOKS = 200
LIMIT = 100
AS_OF = str(COUNT)
CHAIN_ID, NOW_MS = 1, 1_795_000_000_000
HEAVY_MAKER, TAKER, NOBODY = b"\xaa" * 20, b"\xbb" * 20, bytes(20)
USDC, WETH = b"\x5d" * 20, b"\xe0" * 20
SMALL = ((USDC, amount32(10**6)), (WETH, amount32(10**8)))
_AMOUNT, _NONE = amount32(10**9), amount32(0)


class Asked(Struct, frozen=True):
    """A kind of page of OTC orders to request, with the total number of orders to expect."""

    what: str
    wanted: OtcFilter
    offset: int
    total: int


def light_maker(number: int) -> bytes:
    """Return the address of the maker of order `number`, which must be an order of a light maker."""
    return hashlib.sha256(b"maker %d" % (number // LIGHT_ORDERS)).digest()[:20]


OF_HEAVY = OtcFilter(CHAIN_ID, maker=HEAVY_MAKER)
PAGES = (
    Asked("heavy maker, first", OF_HEAVY, 0, HEAVY),
    Asked("heavy maker, at 45,000", OF_HEAVY, HEAVY // 2, HEAVY),
    Asked("heavy maker, last", OF_HEAVY, HEAVY - LIMIT, HEAVY),
    Asked("heavy maker, by expiry", OtcFilter(CHAIN_ID, maker=HEAVY_MAKER, order_by="expires_s"), 0, HEAVY),
    Asked("heavy maker, P2P", OtcFilter(CHAIN_ID, maker=HEAVY_MAKER, type=OtcType.P2P), 0, HEAVY // 2),
    Asked(
        "heavy maker, no small balances", OtcFilter(CHAIN_ID, maker=HEAVY_MAKER, swappable_min=SMALL), 0, LIVE
    ),
    Asked("its taker, first", OtcFilter(CHAIN_ID, taker=TAKER), 0, HEAVY),
    Asked("its taker, at 45,000", OtcFilter(CHAIN_ID, taker=TAKER), HEAVY // 2, HEAVY),
    Asked("light maker", OtcFilter(CHAIN_ID, maker=light_maker(HEAVY)), 0, LIGHT_ORDERS),
)


def an_order(number: int) -> OtcOrderRow:
    """Make a stored OTC order: of the heavy maker for the first 90,000 numbers, else of a light maker."""
    order_hash = hashlib.sha256(b"order %d" % number).digest()
    is_heavy = number < HEAVY
    is_live = number >= HEAVY - LIVE
    is_open = bool(number % 2)
    left = _AMOUNT if is_live else _NONE
    return OtcOrderRow(
        order_hash, order_hash[0], CHAIN_ID,
        HEAVY_MAKER if is_heavy else light_maker(number),
        NOBODY if is_open else TAKER if is_heavy else order_hash[:20],
        TAKER if is_heavy else order_hash[:20],
        USDC if number % 3 else WETH, WETH if number % 3 else USDC, _AMOUNT, _AMOUNT,
        OtcType.LIMIT if is_open else OtcType.P2P, NOW_MS + number * 7,
        NEVER_S if number % 5 else 1_900_000_000 + number % 1_000, 1,
        OtcState.PENDING if is_live else OtcState.FULFILLED, NOW_MS + number * 7 + number % 13,
        left, left, left, left, None if is_live else order_hash, not is_live,
    )  # fmt: skip


def fill_store(path: Path) -> None:
    """Write all 100,000 OTC orders to a SQLite store, in random sequence."""
    document = encode_document(OtcDocument(bytes(32), 0, bytes(65), None, _NONE))
    numbers = list(range(COUNT))
    random.Random(7).shuffle(numbers)
    orders = [an_order(number) for number in numbers]
    with closing(sqlite3.connect(path)) as connection:
        sql = insert(OTC_ORDER.name, unless_there=False)
        connection.executemany(sql, map(values_of, orders))
        connection.execute("INSERT INTO otc_body SELECT seq, ? FROM otc_order", (document,))
        connection.commit()


@asynccontextmanager
async def listings() -> AsyncIterator[StoredOtcOrders]:
    """Context manager that opens a store with all 100,000 OTC orders in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = parse_settings('[store]\nurl = "sqlite:orders.sqlite3"\n', {}, folder)
        async with open_store(settings, {}, folder, lambda: NOW_MS, in_process=True) as store:
            fill_store(folder / "orders.sqlite3")
            yield StoredOtcOrders(store)


async def answer(stored: StoredOtcOrders, requested: Asked) -> bytes:
    """Read and encode one page of OTC orders; a page after the first is as of the first page's time."""
    as_of = AS_OF if requested.offset else None
    page = await stored.page(requested.wanted, LIMIT, requested.offset, as_of)
    check(page, requested)
    has_more = requested.offset + LIMIT < page.total
    return encode(OtcListing(page.orders, LIMIT, requested.offset, page.total, has_more, page.as_of))


def check(page: StoredOtcPage, requested: Asked) -> None:
    """Check the size and the total of a page of OTC orders; raise AssertionError if it is not as expected."""
    assert (page.total, len(page.orders)) == (requested.total, LIMIT), requested.what


async def measured() -> dict[str, list[float]]:
    """Measure the CPU seconds of each requested page of OTC orders, by kind of page."""
    found: dict[str, list[float]] = {requested.what: [] for requested in PAGES}
    async with listings() as stored:
        for _ in range(LOOKS):
            for requested in PAGES:
                began = thread_time()
                await answer(stored, requested)
                found[requested.what].append(thread_time() - began)
    return found


def table() -> Table:
    """Measure the pages of OTC orders, and return their times as a table."""
    shown = Table("page of 100 among 100,000", "p50 ms", "p99 ms", "max ms", box=None)
    for what, took in trio.run(measured).items():
        took.sort()
        row = (took[len(took) // 2], took[len(took) * 99 // 100], took[-1])
        shown.add_row(what, *(f"{1_000 * seconds:.2f}" for seconds in row))
    return shown


if __name__ == "__main__":
    Console().print(table())
