"""OTC orders as their makers and takers live them: over HTTP, and on a world's chain with the real contract.

async with an_otc_story(world, tmp_path) as story:
    order = story.an_order()
    stored = await story.posted(order)
    receipt = await story.fill(order)
    assert (await story.seen(stored))["state"] == "FULFILLED"

The venue is the one that operators run. The maker has 10,000 USDC and the taker 10 WETH, which the RFQ
contract may take.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.timeouts import INDEX_LOOK_S
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.index import indexer
from cambist.engine.chain.port import Receipt
from cambist.engine.trade.orders import accounts_watch
from cambist.engine.trade.otc import drafts
from cambist.engine.trade.otc.life import ENDED
from support.chain.world import URGENT_TIP_WEI, USDC, Moved, World, mined, moved
from support.contracts.rfq_stories import funded, refusal
from support.events.event_streams import OTC_PATH, EventStream, Following
from support.otc.otc_front import CHAIN_ID, FILLABLE, P2P, OtcFront
from support.patience import PATIENCE_S, until, until_told
from support.venue.venue_fronts import StoryClock
from support.venue.venue_role import ENVIRON, RunningVenue, devnet_of, venue_on, venue_text

Stored = dict[str, Any]
"""A stored order, as it was answered."""

CONFIRMATIONS = 3
HAS = 10_000 * USDC
"""USDC that the maker begins with, raw units."""

_NEVER_S = 3_600.0
_DRAFT_LOOK_S = 0.05


class OtcStory(OtcFront):
    """A venue, and who trades there.

    Attributes:
        web: the venue, as it is asked over HTTP.
    """

    def __init__(self, world: World, web: RunningVenue, clock: StoryClock) -> None:
        super().__init__(world, web.app.delta.store)
        self.web = web
        self.clock = clock
        self.engine = web.app.otc
        self.scheduler = web.app.delta.scheduler
        self.client = web.client
        self._people = {
            "maker": world.maker.address,
            "taker": world.taker.address,
            "user": world.user.address,
            "stranger": world.stranger.address,
            "rfq": world.at.rfq,
        }
        self._tokens = {"WETH": world.weth, "USDC": world.usdc, "DAI": world.dai}

    def now_ms(self) -> int:
        """The venue's clock."""
        return self.clock.now_ms()

    # --- Answers of the venue ---------------------------------------------------------------------------

    async def becomes(self, stored: Stored, state: str, **members: Any) -> Stored:
        """The order, once it has this state and these members."""
        return await self.until(stored, state=state, **members)

    async def is_read(self) -> None:
        """Wait until the chain is read to its head."""
        head = await self.world.chain.block()
        assert head is not None
        block_hash = head.hash
        followed = self.engine.chains[CHAIN_ID].followed

        def is_so() -> bool:
            top = followed.read_to()
            return top is not None and top.hash == block_hash

        await until(is_so, PATIENCE_S)

    async def is_looked_at(self, stored: Stored) -> None:
        """Wait until nothing is asked about the latest block any more: an anvil that mines the next one
        meanwhile may answer of that."""
        await self.is_read()
        order_hash = bytes.fromhex(stored["orderHash"][2:])
        funds = self.engine.chains[CHAIN_ID].funds

        async def is_so() -> bool:
            row, live = await self.row(stored), self.engine.orders.get(order_hash)
            is_asleep = funds._asleep.statistics().tasks_waiting == 1
            return live is not None and live.row == row and is_asleep and not funds.statistics().waiting

        await until_told(is_so)

    async def seen(self, stored: Stored) -> Stored:
        """The order as it is as soon as the chain is read to its head: asked for once."""
        await self.is_read()
        return await self.order(stored)

    async def listed(self, role: str, account: SigningKey | bytes, **query: Any) -> list[str]:
        """Hashes of a listing, in its order."""
        address = account if isinstance(account, bytes) else account.address
        page = await self.get(f"{P2P}/{role}/0x{address.hex()}", **query)
        return [order["orderHash"] for order in page["orders"]]

    async def fillable(self, token: str = "USDC", account: SigningKey | bytes | None = None) -> int:
        """GET /ft/fillablebalance, by default of the maker."""
        account = self.world.maker if account is None else account
        address = account if isinstance(account, bytes) else account.address
        key = f"0x{self._tokens[token].hex()}"
        found = await self.get(f"{FILLABLE}/0x{address.hex()}/{key}")
        return int(found[key])

    async def is_final(self, stored: Stored) -> None:
        """Mine CONFIRMATIONS blocks once the venue's memory has an order's end: after these it is final."""
        orders, order_hash = self.engine.orders, bytes.fromhex(stored["orderHash"][2:])
        await until(lambda: (live := orders.get(order_hash)) is None or live.row.status in ENDED)
        for _ in range(CONFIRMATIONS):
            await self.world.chain.mine()
        await until(lambda: orders.get(order_hash) is None)

    @asynccontextmanager
    async def following(self, **query: Any) -> AsyncIterator[Following]:
        """A stream of events."""
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        async with await trio.open_tcp_stream("127.0.0.1", self.web.port) as stream:
            events = EventStream(stream)
            await events.open(f"{OTC_PATH}?{asked}".encode())
            yield Following(events)

    # --- Actions of makers and takers -------------------------------------------------------------------

    async def later(self, order: RfqOrder, key: SigningKey | None = None, **more: Any) -> Stored:
        """Post an order that is younger than all before it."""
        self.clock.passes(0.01)
        return await self.posted(order, key, **more)

    async def fill(
        self,
        order: RfqOrder,
        taker_amount: int | None = None,
        *,
        by: SigningKey | None = None,
        signer: SigningKey | None = None,
    ) -> Receipt:
        """Fill the whole order or a part, by default by the taker and with the maker's signature."""
        data = self.filling(order, taker_amount, signer=signer)
        return await self.world.send(by or self.world.taker, self.world.at.rfq, data)

    def filling(
        self, order: RfqOrder, taker_amount: int | None = None, *, signer: SigningKey | None = None
    ) -> bytes:
        """Calldata of a fill."""
        signature = self.world.signed(order, signer)
        if taker_amount is None:
            return calldata.fill_order(order, signature)
        return calldata.partial_fill_order(order, signature, taker_amount)

    async def cancel(self, *orders: RfqOrder, by: SigningKey | None = None) -> Receipt:
        """Cancel orders, by default as the maker."""
        hashes = [self.world.rfq_hash(order) for order in orders]
        data = calldata.cancel_order(hashes[0]) if len(hashes) == 1 else calldata.cancel_orders(hashes)
        return await self.world.send(by or self.world.maker, self.world.at.rfq, data)

    async def refused(
        self, stored: Stored, order: RfqOrder, data: bytes, by: SigningKey | None = None
    ) -> str:
        """Reason of a call that the contract refuses; no account's funds and no stored order change."""
        before = await self.order(stored)
        reason = await refusal(self.world, by or self.world.taker, data, order)
        assert await self.seen(stored) == before
        return reason

    async def in_one_block(self, *sent: tuple[SigningKey, bytes, bytes]) -> list[Receipt]:
        """Mine calls (key, contract, calldata) in one block, in this order; receipts of any status."""
        world, chain = self.world, self.world.chain
        signed = [
            await world.signed_tx(*call, tip_wei=URGENT_TIP_WEI // (1 + at)) for at, call in enumerate(sent)
        ]
        await chain.set_automine(on=False)
        for transaction in signed:
            await chain.send_raw(transaction.raw)
        await chain.mine()
        await chain.set_automine(on=True)
        receipts = [await mined(chain, transaction.tx_hash) for transaction in signed]
        first = receipts[0].block_number
        assert [(receipt.block_number, receipt.tx_index) for receipt in receipts] == [
            (first, at) for at in range(len(sent))
        ]
        return receipts

    async def pays(self, amount: int, to: SigningKey | None = None) -> None:
        """Move the maker's USDC to a stranger, or to another account."""
        world = self.world
        receiver = (to or world.stranger).address
        await world.send(world.maker, world.usdc, calldata.transfer(receiver, amount))

    async def gets_back(self, amount: int) -> None:
        """A stranger's USDC go to the maker."""
        world = self.world
        await world.send(world.stranger, world.usdc, calldata.transfer(world.maker.address, amount))

    async def allows(self, amount: int) -> None:
        """The maker lets the RFQ contract take so many USDC."""
        await self.world.approve(self.world.maker, self.world.usdc, self.world.at.rfq, amount)

    async def pass_time(self, seconds: int) -> None:
        """Let time pass for the venue, and then for the chain."""
        self.clock.passes(seconds)
        await self.world.pass_time(seconds)
        self.scheduler.at(0, "time has passed", lambda: None)

    # --- Balances ---------------------------------------------------------------------------------------

    async def balances(self) -> Moved:
        """Balances of all accounts in every token."""
        return await self.world.held(self._people, self._tokens)

    async def moved_since(self, before: Moved) -> Moved:
        """Changes of balances since `before`, without zeros."""
        return moved(before, await self.balances())


def balances_of(fillable: int, makers: int, reserved: int, swappable: int) -> Stored:
    """Members of an order."""
    names = "fillableBalance", "makerBalance", "reservedBalance", "swappableBalance"
    return dict(zip(names, map(str, (fillable, makers, reserved, swappable)), strict=True))


def all_of(amount: int) -> Stored:
    """Members of an order of which all that is left can be filled."""
    return balances_of(amount, amount, amount, amount)


def none_of(amount: int) -> Stored:
    """Members of an order that has ended with so much left."""
    return balances_of(amount, 0, 0, 0)


def text_of(receipt: Receipt) -> str:
    """Hash of a transaction."""
    return f"0x{receipt.tx_hash.hex()}"


@asynccontextmanager
async def an_otc_story(world: World, folder: Path) -> AsyncGenerator[OtcStory]:
    """A story whose venue serves; see `running_otc`. Only new heads have the indexer look."""
    await funded(world)
    async with running_otc(world, folder, index_look_s=_NEVER_S) as story:
        yield story


@asynccontextmanager
async def running_otc(
    world: World, folder: Path, *, index_look_s: float = INDEX_LOOK_S
) -> AsyncGenerator[OtcStory]:
    """A venue on a world in which people have what they have. Funds are not read again by the minute.

    Args:
        folder: of its state; a second one in the same folder is a restart, whose orders may be loaded after
            the indexer's first look.
    """
    clock = StoryClock(await world.now_s())
    devnet = devnet_of(world, folder)
    chain = f"confirmations = {CONFIRMATIONS}"
    text = venue_text(devnet, {}, has_relayer=False, serves=("market", "rfq"), chain=chain)
    async with AsyncExitStack() as owned:
        for module, name, seconds in (
            (indexer, "INDEX_LOOK_S", index_look_s),
            (drafts, "DRAFT_LOOK_S", _DRAFT_LOOK_S),
            (accounts_watch, "FUNDS_RECHECK_S", _NEVER_S),
            (accounts_watch, "FUNDS_SLICE_S", _NEVER_S),
        ):
            owned.enter_context(patch.object(module, name, seconds))
        web = await owned.enter_async_context(venue_on(devnet, folder, text, ENVIRON, clock))
        story = OtcStory(world, web, clock)
        await story.is_read()
        yield story
