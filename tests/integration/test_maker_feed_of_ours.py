"""A venue's feed against our own market maker, over real sockets."""

from pathlib import Path

import pytest

from cambist.crypto.hmac_auth import RequestSigner
from cambist.feeds.books.fill import quote_received
from cambist.feeds.books.pair_index import PairIndex
from support.makers.maker_feeds import a_feed, live_of, running
from support.makers.maker_role import PREFIX, SECRET, USDC, WETH, running_maker, write_prices
from support.patience import until

BASE, QUOTE = bytes.fromhex(WETH[2:]), bytes.fromhex(USDC[2:])
LISTED = {BASE: 18, QUOTE: 6}


def a_signer() -> RequestSigner:
    return RequestSigner("venue", "key-1", SECRET.encode())


@pytest.mark.parametrize("over", ["polls", "socket"])
async def test_books_follow_our_maker_and_its_prices(tmp_path: Path, over: str) -> None:
    async with running_maker(tmp_path) as (_, venue):
        index = PairIndex()
        url = f"http://127.0.0.1:{venue.port}{PREFIX}"
        ws_url = f"ws://127.0.0.1:{venue.port}{PREFIX}/ws" if over == "socket" else ""
        feed = a_feed(url, index=index, signer=a_signer(), decimals=LISTED, ws_url=ws_url)
        async with running(feed):
            await until(lambda: live_of(index) == {(BASE, QUOTE)})
            (live,) = index.books()
            assert live.maker == "alpha"
            assert live.liquidity_usd == 1_000_000
            assert sells_for(index) == 2_500 * 10**6
            write_prices(tmp_path, **{"WETH/USDC": {"bids": [["2600", "1"]], "asks": [["2601", "1"]]}})
            await until(lambda: sells_for(index) == 2_600 * 10**6)
            statistics = feed.statistics()
            assert not statistics.restarts
            assert not statistics.cache.refused.get("prices")
        assert live_of(index) == set()


def sells_for(index: PairIndex) -> int | None:
    """Proceeds of selling one WETH."""
    (live,) = index.books()
    return quote_received(live.book.bids, 10**18)
