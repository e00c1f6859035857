"""Who is asked when, and for how long anybody is waited for: on a clock of the test's own."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.maker_messages import FirmOrder
from cambist.codecs.vocabulary import Side
from cambist.config.errors import NoRoute
from cambist.config.venue import FirmSettings
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.venue.market.firm_desk import FirmDesk, FirmMaker
from cambist.engine.venue.market.firm_route import FirmRoute
from cambist.engine.venue.pricing.pathfinder import Pathfinder
from cambist.engine.venue.pricing.plan import Wanted
from cambist.feeds.firm_check import FirmAsked, FirmFailure, FirmFault, book_amount
from cambist.feeds.maker_health import MakerHealth
from cambist.feeds.pair_index import PairIndex
from support.firm_books import USDC, WETH, a_live_book

NOW_MS = 1_795_000_000_000
USER, EXECUTOR, RFQ = b"\xbb" * 20, b"\xaa" * 20, b"\x0f" * 20
SEPARATOR = rfq_domain_separator("Cambist RFQ", 31_337, RFQ)
DIGEST_OF = RFQ_ORDER.compiled.digest_for(SEPARATOR)
ONE = 10**18
SETTINGS = FirmSettings()
SOFT_S, HARD_S, PATIENCE_S = SETTINGS.soft_s, SETTINGS.hard_s, SETTINGS.soft_s / 2
ORDER = ("alpha", "beta", "gamma", "delta")
"""From the best price to the worst."""


class TimedClient:
    """Answers after so many seconds: with a quote, or with a failure."""

    def __init__(self, name: str, index: PairIndex, after_s: float, fault: FirmFault | None) -> None:
        self._name = name
        self._index = index
        self._after_s = after_s
        self._fault = fault
        self._key = SigningKey(name.encode().ljust(32, b"\x01"))
        self.asked_at: list[float] = []

    async def ask(self, asked: FirmAsked, *, deadline_s: float) -> FirmOrder:
        self.asked_at.append(trio.current_time())
        with trio.move_on_after(deadline_s):
            await trio.sleep(self._after_s)
            if self._fault is not None:
                raise FirmFailure(self._fault)
            return self._signed(asked)
        raise FirmFailure(FirmFault.LATE)

    def _signed(self, asked: FirmAsked) -> FirmOrder:
        books = self._index.between(asked.src_token, asked.dest_token).values()
        (live,) = [live for live in books if live.maker == self._name]
        other = book_amount(live, asked)
        assert other is not None
        meta, expiry = pack_firm(asked.user, 7), NOW_MS // 1_000 + 300
        order = RfqOrder(
            meta,
            expiry,
            asked.dest_token,
            asked.src_token,
            self._key.address,
            asked.taker,
            other,
            asked.amount,
        )
        signature = to_65(*self._key.sign(DIGEST_OF(order)))
        return FirmOrder(**_snake(RFQ_ORDER.to_wire(order)), signature=f"0x{signature.hex()}")


class Clocked:
    """A desk on the mock clock. `makers`: name -> seconds until it answers, and how it fails if it does."""

    def __init__(self, **makers: tuple[float, FirmFault | None]) -> None:
        index = PairIndex()
        self.clients: dict[str, TimedClient] = {}
        self.rests: list[tuple[str, int]] = []
        firm: dict[str, FirmMaker] = {}
        for name, (after_s, fault) in makers.items():
            price = str(2_500 - ORDER.index(name))
            index.put(a_live_book(name, bids=((price, "100"),), asks=(("2600", "100"),)))
            self.clients[name] = TimedClient(name, index, after_s, fault)
            firm[name] = self._maker(name)
        self.health = {name: maker.health for name, maker in firm.items()}
        nobody: Any = None  # nothing is asked of a chain
        self.desk = FirmDesk(
            firm,
            Pathfinder(index, b""),
            index,
            nobody,
            rfq=RFQ,
            executor=EXECUTOR,
            separator=SEPARATOR,
            settings=SETTINGS,
            wall_ms=lambda: NOW_MS,
        )

    def _maker(self, name: str) -> FirmMaker:
        cache: Any = SimpleNamespace(
            rest_pair=lambda one, other, until_ms: self.rests.append((name, until_ms - NOW_MS)),
            rest_maker=lambda until_ms: self.rests.append((f"all of {name}", until_ms - NOW_MS)),
            blacklist=SimpleNamespace(add=lambda addresses, now_ms: None),
        )
        client: Any = self.clients[name]
        return FirmMaker(client, MakerHealth(5_000, 900_000), cache)

    async def sell(self, *, limit: int = 0) -> FirmRoute:
        wanted = Wanted(WETH, USDC, ONE, Side.SELL)
        plan = self.desk.pathfinder.find(wanted)
        assert plan is not None
        return await self.desk.fill(plan, wanted, user=USER, limit=limit, check_funds=False)

    def asked(self) -> dict[str, list[float]]:
        return {name: client.asked_at for name, client in self.clients.items() if client.asked_at}

    def reasons(self) -> dict[str, dict[str, int]]:
        told = {name: health.report(NOW_MS).maker.reasons for name, health in self.health.items()}
        return {name: reasons for name, reasons in told.items() if reasons}


def makers_of(route: FirmRoute) -> Sequence[str]:
    return [fill.maker for hop in route.hops for fill in hop.fills]


async def test_a_prompt_maker_is_asked_alone(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(0.1, None), beta=(0.0, None))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(0.1)
    assert stage.asked() == {"alpha": [0.0]}


async def test_a_slow_maker_has_another_asked_beside_it(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(5.0, None), beta=(0.1, None))
    assert makers_of(await stage.sell()) == ["beta"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.1)
    assert stage.asked() == {"alpha": [0.0], "beta": [pytest.approx(PATIENCE_S)]}
    assert stage.reasons() == {"alpha": {"late": 1}}
    assert stage.rests == [("alpha", 5_000)]


async def test_a_slow_makers_own_quote_is_taken_if_it_comes_first(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(PATIENCE_S + 0.05, None), beta=(0.2, None))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.05)
    assert stage.reasons() == {}, "beta was asked, and its time was not up"


async def test_where_there_is_nobody_else_a_slow_maker_is_waited_for_to_the_end(
    autojump_clock: MockClock,
) -> None:
    stage = Clocked(alpha=(HARD_S - 0.01, None))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(HARD_S - 0.01)
    assert stage.reasons() == {}


async def test_nothing_is_waited_for_after_the_hard_bound(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(60.0, None), beta=(60.0, None))
    with pytest.raises(NoRoute, match="time is up; alpha: late; beta: late"):
        await stage.sell()
    assert trio.current_time() == pytest.approx(HARD_S)
    assert stage.reasons() == {"alpha": {"late": 1}, "beta": {"late": 1}}


async def test_nobody_is_asked_after_the_soft_bound(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(SOFT_S + 0.01, FirmFault.REFUSED), beta=(60.0, None), gamma=(0.0, None))
    with pytest.raises(NoRoute, match="alpha: refused; beta: late"):
        await stage.sell()
    assert stage.asked() == {"alpha": [0.0], "beta": [pytest.approx(PATIENCE_S)]}
    assert trio.current_time() == pytest.approx(HARD_S)


async def test_failures_are_followed_up_as_long_as_there_is_time(autojump_clock: MockClock) -> None:
    stage = Clocked(
        alpha=(0.1, FirmFault.REFUSED), beta=(0.1, FirmFault.INVALID), gamma=(0.1, FirmFault.UNFUNDED),
        delta=(0.1, None),
    )  # fmt: skip
    assert makers_of(await stage.sell()) == ["delta"]
    assert trio.current_time() == pytest.approx(0.4)
    assert stage.reasons() == {"alpha": {"refused": 1}, "beta": {"invalid": 1}, "gamma": {"unfunded": 1}}


async def test_one_who_fails_beside_a_slow_maker_is_followed_up_at_once(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(60.0, None), beta=(0.05, FirmFault.REFUSED), gamma=(0.1, None))
    assert makers_of(await stage.sell()) == ["gamma"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.05 + 0.1)


async def test_one_that_was_given_too_little_time_is_not_late(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(60.0, None), beta=(0.2, FirmFault.REFUSED), gamma=(0.1, None), delta=(0.0, None))
    route = await stage.sell()
    assert makers_of(route) == ["gamma"]
    assert stage.reasons() == {"alpha": {"late": 1}, "beta": {"refused": 1}}


@pytest.mark.parametrize("at_s", [0.1, PATIENCE_S + 0.1])
async def test_a_swap_that_is_cancelled_scores_only_what_failed(
    autojump_clock: MockClock, at_s: float
) -> None:
    stage = Clocked(alpha=(0.05, FirmFault.REFUSED), beta=(60.0, None), gamma=(60.0, None))
    with trio.move_on_after(at_s):
        await stage.sell()
    assert trio.current_time() == pytest.approx(at_s)
    assert stage.reasons() == {"alpha": {"refused": 1}}
    assert stage.desk.statistics().under_way == 0


async def test_a_blacklisted_user_and_a_full_pool_are_nobodys_fault(autojump_clock: MockClock) -> None:
    stage = Clocked(alpha=(0.0, FirmFault.BLACKLISTED), beta=(0.0, FirmFault.OUT_OF_TIME), gamma=(0.0, None))
    assert makers_of(await stage.sell()) == ["gamma"]
    assert stage.reasons() == {}
    assert stage.rests == []


def _snake(wire: dict[str, Any]) -> dict[str, Any]:
    names = {
        "nonceAndMeta": "nonce_and_meta", "expiry": "expiry", "makerAsset": "maker_asset",
        "takerAsset": "taker_asset", "maker": "maker", "taker": "taker", "makerAmount": "maker_amount",
        "takerAmount": "taker_amount",
    }  # fmt: skip
    return {names[key]: value for key, value in wire.items()}
