"""`cambist.client` as a program uses it, at the venue of `cambist up`: plain code, asyncio and trio."""

import asyncio
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.client import (
    Allowing,
    AsyncioVenue,
    BlockingVenue,
    ChainError,
    ConfigError,
    Mode,
    OfferDeclined,
    OfferedTrade,
    OrderStatus,
    OtcState,
    SigningKey,
    ToChain,
    TokenAmount,
    TradeVerdict,
    Venue,
    VenueError,
)
from support.chain.devnet import Devnet, telling_process
from support.patience import STORY_S

pytestmark = pytest.mark.process
CHAIN, THERE = 31_337, 31_338


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    folder = tmp_path_factory.mktemp("client")
    options = ("--port", "0", "--devnet-port", "0", "--json")
    with telling_process("up", *options, folder=folder) as process:
        yield process


@pytest.fixture(scope="module")
def places(up: Devnet) -> dict[str, Any]:
    """Arguments of `open` for a session with nodes of both chains."""
    chains = up.told["chains"]
    return {"rpc": chains[str(CHAIN)], "others": {THERE: chains[str(THERE)]}}


@pytest.fixture(scope="module")
def venue(up: Devnet, places: dict[str, Any]) -> Iterator[BlockingVenue]:
    with BlockingVenue.open(up.told["venue"], CHAIN, **places) as opened:
        yield opened


def key(up: Devnet, account: int = 0) -> str:
    found: str = up.told["accounts"][account]["key"]
    return found


def test_a_quote_is_in_whole_tokens_and_needs_no_node_and_no_key(up: Devnet) -> None:
    with BlockingVenue.open(up.told["venue"], CHAIN) as venue:
        quote = venue.quote("weth", "USDC", "1.5")
        assert (str(quote.sell), quote.mode) == ("1.5 WETH", Mode.DELTA)
        assert 2_000 < quote.price < 3_000
        assert round(quote.price * Decimal("1.5"), 6) == quote.buy.whole
        market = venue.quote("WETH", "USDC", Decimal("1.5"), mode="market")
        assert market.mode is Mode.MARKET
        bought = venue.quote("WETH", "USDC", 3_000, side="buy")
        assert (bought.buy.raw, bought.sell.token.symbol) == (3_000 * 10**6, "WETH")
        assert venue.quote("WETH", "USDC", 1, to=THERE).buy.whole > 2_000
        with pytest.raises(ConfigError, match=r"rpc: is needed: no node of chain 31337 is named"):
            venue.swap("WETH", "USDC", 1, key=key(up))


def test_a_swap_moves_what_its_result_says(venue: BlockingVenue, up: Devnet) -> None:
    told: list[OfferedTrade[Any]] = []

    def agree(offered: OfferedTrade[Any]) -> bool:
        told.append(offered)
        return True

    swap = venue.swap("WETH", "USDC", "1.5", key=key(up), slippage_bps=200, agree=agree)
    (offered,) = told
    assert (swap.verdict, str(swap.spent)) == (TradeVerdict.SWAPPED, "1.5 WETH")
    assert swap.received.raw >= offered.bound.raw
    assert swap.received.token.symbol == "USDC"
    assert swap.tx_hash.startswith("0x")
    assert swap.gas_wei > 0


def test_a_limit_or_a_refusal_signs_nothing(venue: BlockingVenue, up: Devnet) -> None:
    with pytest.raises(VenueError, match=r"the quote and the slippage give at least [\d.]+ USDC, and limit"):
        venue.swap("WETH", "USDC", 1, key=key(up), limit=1_000_000)
    with pytest.raises(VenueError, match=r"at most [\d.]+ WETH"):
        venue.swap("WETH", "USDC", 2_500, side="BUY", key=key(up), limit="0.5")
    with pytest.raises(OfferDeclined, match=r"declined: 1 WETH for [\d.]+ USDC"):
        venue.swap("WETH", "USDC", 1, key=key(up), agree=lambda _: False)
    with pytest.raises(OfferDeclined):
        venue.order("WETH", "USDC", 1, key=key(up), agree=lambda _: False)
    rehearsed = venue.swap("WBTC", "DAI", 1, key=key(up), rehearse=True)
    assert (rehearsed.verdict, rehearsed.tx_hash) == (TradeVerdict.REHEARSED, "")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"amount": 1.5}, "amount: expected an int, a str or a Decimal, got float 1.5"),
        ({"amount": True}, "amount: expected an int, a str or a Decimal, got bool True"),
        ({"amount": "1,5"}, "amount: expected "),
        ({"amount": Decimal(-1)}, "amount: expected "),
        ({"amount": Decimal("nan")}, "amount: expected "),
        ({"amount": 0}, "amount: is zero"),
        ({"amount": "0.0000000000000000001"}, "amount: WETH has 18 decimals"),
        ({"sell": "NOPE"}, "sell: expected an address or a symbol that the venue lists"),
        ({"buy": "weth"}, "buy: equals sell"),
        ({"key": "0x1234"}, "key: "),
        ({"key": "env:NO_SUCH_KEY"}, "key: environment variable NO_SUCH_KEY is not set or empty"),
        ({"receiver": "me"}, "receiver: expected "),
        ({"limit": 1.5}, "limit: expected an int, a str or a Decimal, got float 1.5"),
    ],
)
def test_a_wrong_argument_is_named(
    venue: BlockingVenue, up: Devnet, given: dict[str, Any], says: str
) -> None:
    arguments: dict[str, Any] = {"sell": "WETH", "buy": "USDC", "amount": 1, "key": key(up)} | given
    with pytest.raises(ConfigError) as error:
        venue.swap(**arguments)
    assert str(error.value).startswith(says)
    assert "1234" not in str(error.value)


def test_an_order_is_placed_watched_and_proven(venue: BlockingVenue, up: Devnet) -> None:
    hashes: list[bytes] = []
    order = venue.order("WETH", "USDC", "0.5", key=key(up, 1), about_to=hashes.append)
    assert order.order_hash == "0x" + hashes[0].hex()
    assert (order.verdict, order.has_ended) == (TradeVerdict.PLACED, False)
    with venue.watch(order) as records:
        seen = [record.status for record in records]
    assert seen[-1] is OrderStatus.COMPLETED
    end = venue.follow(order)
    assert end.is_settled
    assert str(end.spent) == "0.5 WETH"
    assert end.received is not None
    assert end.received.whole > 1_000
    record = end.outcome.record
    assert record is not None
    false = venue.state(replace(record, input=replace(record.input, token=f"0x{'de' * 20}")))
    assert (false.verdict, "no token at" in false.reason) == (TradeVerdict.UNKNOWN, True)
    by_hash = venue.follow(end.order_hash)
    assert (by_hash.id, by_hash.received) == (end.id, end.received)


def test_a_limit_order_rests_is_explained_and_cancelled(venue: BlockingVenue, up: Devnet) -> None:
    order = venue.order("WETH", "USDC", 1, key=key(up, 1), price=5_000)
    assert order.offer is not None
    assert order.offer.terms.limit == 5_000 * 10**6
    waiting = venue.follow(order, timeout_s=1)
    assert (waiting.verdict, waiting.has_ended) == (TradeVerdict.UNKNOWN, False)
    assert venue.explain(order).reasons
    (cancelled,) = venue.cancel(order, key=key(up, 1))
    assert (cancelled.status, cancelled.is_settled) == (OrderStatus.CANCELLED, False)
    with pytest.raises(VenueError, match="is CANCELLED already"):
        venue.cancel(order.id, key=key(up, 1))


def test_a_twap_has_its_schedule(venue: BlockingVenue, up: Devnet) -> None:
    with pytest.raises(ConfigError, match="interval_s: expected at least 60, got 5"):
        venue.twap("WETH", "USDC", 2, key=key(up, 1), slices=2, interval_s=5)
    twap = venue.twap("WETH", "USDC", 2, key=key(up, 1), slices=2, interval_s=60, limit=2)
    record = twap.outcome.record
    assert record is not None
    assert (record.on_chain_order_type, twap.verdict) == ("TWAPOrder", TradeVerdict.PLACED)
    venue.cancel(twap, key=key(up, 1))


def test_an_order_reaches_the_other_chain(venue: BlockingVenue, up: Devnet) -> None:
    with pytest.raises(ConfigError, match="via: is needed without agree"):
        venue.order("WETH", "USDC", "0.5", key=key(up, 2), to=THERE)
    order = venue.order("WETH", "USDC", "0.5", key=key(up, 2), to=ToChain(THERE, via="USDC"))
    end = venue.follow(order)
    assert (end.is_settled, end.reason) == (True, "")
    assert end.received is not None
    assert end.received.whole > 1_000


def test_an_otc_order_is_filled_by_its_hash_and_by_its_text(venue: BlockingVenue, up: Devnet) -> None:
    taker = up.told["accounts"][3]["address"]
    posted = venue.otc("WETH", "USDC", 2, key=key(up, 2), price=2_000, taker=taker)
    assert (posted.verdict, posted.state) == (TradeVerdict.POSTED, OtcState.PENDING)
    with BlockingVenue.open(f"{up.told['venue']}/moved", CHAIN) as moved:
        unknown = moved.follow_otc(posted)
    assert (unknown.verdict, unknown.state, unknown.signed) == (
        TradeVerdict.UNKNOWN,
        OtcState.PENDING,
        posted.signed,
    )
    assert "404" in unknown.reason
    part = venue.fill(posted.order_hash, key=key(up, 3), receive="0.5")
    assert (str(part.spent), str(part.received)) == ("1000 USDC", "0.5 WETH")
    rest = venue.fill(posted.signed, key=key(up, 3))
    assert str(rest.received) == "1.5 WETH"
    end = venue.follow_otc(posted)
    assert (end.state, end.verdict) == (OtcState.FULFILLED, TradeVerdict.FULFILLED)
    node = up.told["chains"][str(CHAIN)]
    with BlockingVenue.open(up.told["venue"], THERE, others={CHAIN: node}) as of_the_other_chain:
        assert of_the_other_chain.follow_otc(posted.order_hash).verdict is TradeVerdict.FULFILLED
    with pytest.raises(ChainError, match="has no unfilled amount"):
        venue.fill(posted, key=key(up, 3))
    other = venue.otc("WETH", "USDC", 1, key=key(up, 2), receive="9999.5", life_s=0)
    venue.cancel_otc(other, key=key(up, 2))
    assert venue.follow_otc(other).state is OtcState.CANCELLED
    with pytest.raises(ConfigError, match="order: "):
        venue.fill("no order", key=key(up, 3))


def test_a_native_deposit_comes_back(venue: BlockingVenue, up: Devnet) -> None:
    order = venue.order("ETH", "USDC", 1, key=key(up, 4), price=5_000)
    venue.cancel(order, key=key(up, 4))
    assert str(venue.withdraw(key=key(up, 4))) == "1 native"


def test_asyncio_awaits_the_same_calls(up: Devnet, places: dict[str, Any]) -> None:
    async def main() -> tuple[TokenAmount, list[str]]:
        async with AsyncioVenue.open(up.told["venue"], CHAIN, **places) as venue:
            quotes = await asyncio.gather(*[venue.quote("WETH", "USDC", n) for n in (1, 2, 3)])
            assert [str(quote.sell) for quote in quotes] == ["1 WETH", "2 WETH", "3 WETH"]
            order = await venue.order("WETH", "USDC", 1, key=key(up, 4), allowing=Allowing.MOST)
            async with venue.watch(order) as records:
                statuses = [record.status.value async for record in records]
            end = await venue.follow(order)
            assert end.received is not None
            with pytest.raises(ConfigError):
                await venue.quote("WETH", "WETH", 1)
            return end.received, statuses

    received, statuses = asyncio.run(main())
    assert received.whole > 2_000
    assert statuses[-1] == "COMPLETED"


def test_a_cancelled_call_of_asyncio_ends_in_its_thread(up: Devnet, places: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncioVenue.open(up.told["venue"], CHAIN, **places) as venue:
            order = await venue.order("WETH", "USDC", 1, key=key(up, 4), price=9_000)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(venue.follow(order, timeout_s=STORY_S), 0.2)
            await venue.cancel(order, key=key(up, 4))

    before = {*threading.enumerate()}
    asyncio.run(main())
    assert {*threading.enumerate()} <= before


def test_many_threads_share_one_venue(venue: BlockingVenue) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(str(venue.quote("WETH", "USDC", n).sell)))
        for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"{n} WETH" for n in range(1, 9)]


def test_a_closed_venue_says_so(up: Devnet) -> None:
    with BlockingVenue.open(up.told["venue"], CHAIN) as venue:
        pass
    with pytest.raises(RuntimeError, match="the venue is closed"):
        venue.quote("WETH", "USDC", 1)
    with (
        pytest.raises(ConfigError, match="url: expected http"),
        BlockingVenue.open("ftp://host", CHAIN),
    ):
        pass


def test_trio_needs_no_thread(up: Devnet, places: dict[str, Any]) -> None:
    async def main() -> None:
        async with Venue.open(up.told["venue"], CHAIN, **places) as venue:
            signer = SigningKey(bytes.fromhex(key(up, 3)[2:]))
            swap = await venue.swap("DAI", "USDC", 100, key=signer, slippage_bps=300)
            assert swap.received.token.symbol == "USDC"
            order = await venue.order("WETH", "USDC", 1, key=signer)
            async with venue.watch(order.id) as records:
                statuses = [record.status async for record in records]
            assert statuses[-1] is OrderStatus.COMPLETED

    trio.run(main)


def test_errors_of_the_callers_code_pass_a_watch_as_they_are(up: Devnet, places: dict[str, Any]) -> None:
    async def main() -> None:
        async with Venue.open(up.told["venue"], CHAIN, **places) as venue:
            order = await venue.order("WETH", "USDC", 1, key=key(up, 3))
            with pytest.raises(LookupError, match="the caller's own"):
                async with venue.watch(order):
                    raise LookupError("the caller's own")
            with pytest.raises(VenueError, match="404"):
                async with venue.watch("00000000-0000-0000-0000-000000000000") as records:
                    assert [record async for record in records] == []

    trio.run(main)


def test_a_watch_whose_channel_the_caller_closes_ends_quietly(up: Devnet, places: dict[str, Any]) -> None:
    async def main() -> None:
        async with Venue.open(up.told["venue"], CHAIN, **places) as venue:
            order = await venue.order("WETH", "USDC", 1, key=key(up, 3))
            async with venue.watch(order.id) as records:
                await records.aclose()
                assert (await venue.follow(order)).is_settled

    trio.run(main)
