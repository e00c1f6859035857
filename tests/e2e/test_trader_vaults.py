"""The trader's own clients sell out of a vault at our own venue, and keep a venue from taking more shares."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from cambist.codecs.eip712_orders.delta import PRODUCTIVE_ORDER
from cambist.codecs.messages.delta_messages import BuildBody, BuildResponse
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType
from cambist.codecs.messages.wire import encode
from cambist.config.errors import ConfigError, UnsafeTransaction
from cambist.engine.trader.client.allowing import Allowing
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.order.order_view import order_table
from cambist.engine.trader.client.terms import TradedToken
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook
from support.chain.world import ONE, USDC, World
from support.client.order_trader import TraderAtVenue
from support.delta.delta_stories import DeltaStory
from support.delta.resting_stories import VaultStory, a_vault_story
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


class VaultTrading(Struct):
    """A venue with one agent, a book to quote by and a vault, and its trader, who has allowed nothing."""

    vaults: VaultStory
    trader: TraderAtVenue
    token: TradedToken

    @property
    def story(self) -> DeltaStory:
        return self.vaults.story

    def wish(self, **changed: Any) -> Any:
        """The user sells one WETH out of the vault."""
        return self.trader.wish(vault=self.token, **changed)


@pytest.fixture
async def trading(world: World, tmp_path: Path) -> AsyncIterator[VaultTrading]:
    async with a_vault_story(world, tmp_path) as vaults:
        grid = PriceGrid(bids=(("2500", "50"),), asks=(("2501", "50"),))
        book = LiveBook("alpha", world.weth, world.usdc, build_book(grid, 18, 6), Decimal(1_000_000))
        vaults.story.web.app.chains[CHAIN_ID].index.put(book)
        await world.approve(world.user, vaults.vault.address, world.at.delta, 0)
        await vaults.vault.earns(ONE)  # 5 WETH for 4 shares
        async with VenueClient.open(vaults.story.web.url) as client:
            token = TradedToken(vaults.vault.address, "FICKLE", 18)
            yield VaultTrading(vaults, TraderAtVenue(world, client), token)


@pytest.mark.parametrize("allowing", [Allowing.EXACT, Allowing.PERMIT])
async def test_shares_are_quoted_signed_settled_and_proven(trading: VaultTrading, allowing: Allowing) -> None:
    trading.story.agents["ann"].gives = lambda _: 2_500 * USDC
    before = await trading.story.balances()
    record, settled = await trading.trader.settled(trading.wish(), allowing)
    assert record.status is OrderStatus.COMPLETED
    assert record.on_chain_order_type is OnChainOrderType.PRODUCTIVE_ORDER
    assert (settled.spent, settled.is_closed, settled.fault, settled.remarks) == (ONE, True, "", ())
    moved = await trading.story.moved_since(before)
    assert (moved["user", "SHARE"], ("user", "WETH") in moved) == (-4 * ONE // 5, False)


async def test_the_terms_name_the_vault_and_the_shares(trading: VaultTrading) -> None:
    offer = await trading.trader.placer().offer(trading.wish())
    assert (offer.terms.shares, offer.terms.held_token) == (4 * ONE // 5, trading.token)
    assert offer.terms.held_max == 4 * ONE // 5 * 1_005 // 1_000
    table = order_table(offer, Allowing.EXACT)
    rows = dict(zip(*(column.cells for column in table.columns), strict=False))
    assert rows["from"] == f"0.8 FICKLE of the vault FICKLE  {trading.token.text}"
    assert rows["at most"].startswith("0.804 FICKLE")
    assert rows["first"] == "approve the exact amount of FICKLE to the spender"


async def test_all_shares_may_be_sold_whatever_the_bound_is(trading: VaultTrading) -> None:
    whole = 3 * ONE + 3 * ONE // 4
    trading.story.agents["ann"].gives = lambda _: 9_300 * USDC
    record, settled = await trading.trader.settled(trading.wish(amount=whole, slippage_bps=100))
    assert (record.status, settled.spent) == (OrderStatus.COMPLETED, whole)
    assert await trading.vaults.vault.shares() == 0


async def test_a_limit_order_rests_and_is_filled_by_its_yield(trading: VaultTrading) -> None:
    wish = trading.wish(type=OrderType.LIMIT, limit_amount=2_600 * USDC)
    offer, placed = await trading.trader.place(wish)
    assert placed.record is not None, placed.fault
    await trading.story.becomes({"id": placed.record.id}, "ACTIVE")
    trading.story.agents["ann"].gives = lambda _: 2_700 * USDC
    await trading.vaults.vault.earns(ONE // 2)
    await trading.story.becomes({"id": placed.record.id}, "COMPLETED")
    record = await trading.trader.client.order(placed.record.id)
    assert (await trading.trader.proven(offer, placed, record)).fault == ""


async def test_a_vault_that_is_none_of_the_sold_token_is_refused_before_anything_is_signed(
    world: World, trading: VaultTrading
) -> None:
    other = TradedToken(world.dai, "DAI", 18)
    with pytest.raises(ConfigError, match="is no vault of WETH"):
        await trading.trader.placer().offer(trading.trader.wish(vault=other))


@pytest.mark.parametrize(
    ("changed", "member"),
    [
        ({"shares": 0}, "shares"),
        ({"shares": 4 * ONE // 5 * 1_005 // 1_000 + 1}, "shares"),
        ({"shares": 2**128 - 1}, "shares"),
        ({"strategy": b"\x77" * 20}, "strategy"),
        ({"use_shares": False}, "useShares"),
    ],
)
async def test_a_venue_that_builds_another_sale_gets_no_signature(
    trading: VaultTrading, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], member: str
) -> None:
    build_order = trading.trader.client.build_order

    async def greedy(body: BuildBody) -> BuildResponse:
        told = await build_order(body)
        value = PRODUCTIVE_ORDER.from_wire(msgspec.json.decode(told.to_sign.value))
        wire = Raw(encode(PRODUCTIVE_ORDER.to_wire(replace(value, **changed))))
        return replace(told, to_sign=replace(told.to_sign, value=wire))

    monkeypatch.setattr(trading.trader.client, "build_order", greedy)
    placer = trading.trader.placer()
    offer = await placer.offer(trading.wish())
    with pytest.raises(UnsafeTransaction, match=f"toSign.value.{member}"):
        await placer.rehearse(offer)
