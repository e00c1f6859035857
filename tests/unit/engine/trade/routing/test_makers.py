"""Makers of a chain, opened as the settings say: their rests, their blacklists, and who is barred."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import cast

from cambist.config.chains import ChainSettings
from cambist.config.sections.venue import FirmSettings, VenueMaker, VenueMakerChain
from cambist.engine.chain.port import Chain
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.routing.makers import MakersOpening, OpenMakers, open_makers
from cambist.engine.trade.routing.served import ConfiguredChain
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.feeds.firm.firm_check import FirmFault
from cambist.feeds.maker_cache import EXCLUDED
from cambist.feeds.transport.streams import client_tls

CHAIN_ID = 31_337
ADDRESSES = {name: bytes([number]) * 20 for number, name in enumerate(("wrapped_native", "rfq_contract"), 1)}
ONE, OTHER, USER, STRANGER = (bytes([number]) * 20 for number in range(10, 14))
FIRM = FirmSettings(rest_s=2.5, rest_s_max=4.25)
BLACKLIST_S = 1.5


class Unasked:
    """A chain of which nobody asks anything but its number."""

    chain_id = CHAIN_ID


@asynccontextmanager
async def _opened() -> AsyncIterator[OpenMakers]:
    """Two makers, of which no feed runs."""
    makers = {
        name: VenueMaker(chains={CHAIN_ID: VenueMakerChain(url=f"http://{name}.example")})
        for name in ("alpha", "beta")
    }
    opening = MakersOpening(
        field="venue.makers",
        makers=makers,
        firm=FIRM,
        blacklist_s=BLACKLIST_S,
        wall_ms=lambda: 0,
        random=Random(0),
        tls=client_tls(),
        ledger=Ledger(),
    )
    served = ConfiguredChain(
        chain_id=CHAIN_ID,
        field="chains.31337",
        settings=ChainSettings(name="devnet"),
        addresses=ADDRESSES | {"executor": bytes(20)},
        tokens=TokenTable((), ADDRESSES["wrapped_native"], "ETH"),
        listed=(),
        stables=frozenset(),
        makers={name: maker.chains[CHAIN_ID] for name, maker in makers.items()},
    )
    async with AsyncExitStack() as owned:
        yield await open_makers(owned, opening, served, cast("Chain", Unasked()))


async def test_a_pair_rests_for_the_seconds_of_the_settings_and_no_longer_than_the_most() -> None:
    """The third fault is one too many; those after it would double the rest, and more."""
    async with _opened() as opened:
        health = opened.desk.makers["alpha"].health
        rests = [
            health.record(ONE, OTHER, FirmFault.INVALID, at_ms, "caller").pair_until_ms
            for at_ms in (0, 1, 2, 2_501, 2_502)
        ]
    assert rests == [0, 0, 2_502, 0, 2_502 + 4_250]


async def test_makers_that_have_blacklisted_a_user_or_are_excluded_are_barred() -> None:
    async with _opened() as opened:
        assert opened.barred(USER, STRANGER, now_ms=0) == frozenset()
        opened.feeds["beta"].cache.blacklist.add([USER], 0)
        assert opened.barred(STRANGER, USER, now_ms=1_499) == {"beta"}
        assert opened.barred(STRANGER, now_ms=1_499) == frozenset()
        assert opened.barred(STRANGER, USER, now_ms=1_500) == frozenset()
        opened.feeds["alpha"].cache.withhold(EXCLUDED)
        assert opened.barred(STRANGER, now_ms=1_499) == {"alpha"}
        assert opened.barred(now_ms=1_499) == {"alpha"}
        assert opened.barred(USER, now_ms=1_499) == {"alpha", "beta"}


async def test_the_desk_asks_the_makers_whose_books_the_feeds_keep() -> None:
    async with _opened() as opened:
        for name, maker in opened.desk.makers.items():
            assert maker.cache is opened.feeds[name].cache
            assert maker.notices is None
        assert opened.desk.makers.keys() == opened.feeds.keys() == {"alpha", "beta"}
        assert (opened.desk.rfq, opened.desk.executor) == (ADDRESSES["rfq_contract"], bytes(20))
        assert opened.desk.pathfinder is opened.pathfinder
        assert opened.desk.index is opened.index
