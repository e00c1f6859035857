"""Swaps as users of a venue make them: over HTTP, with makers on sockets, on a world's chain.

async with a_venue_story(world, tmp_path, {"alpha": {"WETH/USDC": A_BOOK}}) as story:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    moved = await story.swap(route, slippage=100)
    assert moved["user", "USDC"] == int(route["destAmount"])

Venue and makers are those that operators run; `alpha` is heard over its WebSocket, the others are polled.
Before each maker stands a `Front`, which hands everything through until it has a habit.

The user has 100 WETH and 100,000 of USDC and DAI, and has allowed all of it to the Router; each maker has
1,000 WETH and a million of the others, and has allowed it to the RFQ contract.

A swap is asserted to take from each maker what it signed, to the unit, and to keep to the user's bound; one
that is refused, to move nothing.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from cambist.codecs.contracts.contract_events import OrderFilled, Swapped, decode_event
from cambist.codecs.contracts.router_calldata import RouterSwap, owed
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.address_book import write_entries
from cambist.engine.chain.port import Receipt
from cambist.engine.roles.maker.app import MakerApp
from cambist.feeds.books.book import Book
from support.chain.world import NATIVE, ONE, RFQ_NAME, USDC, Moved, World, mined, moved, person
from support.makers.server_styles import Style
from support.patience import FIRM, until
from support.server.asked_front import listening
from support.server.scripted_server import scripted_server
from support.venue.venue_fronts import KEYS, Front, StoryClock
from support.venue.venue_role import (
    API_KEY,
    CHAIN_ID,
    DECIMALS,
    ENVIRON,
    Devnet,
    RunningVenue,
    devnet_of,
    maker_text,
    venue_on,
    venue_text,
    write_grids,
)

Route = dict[str, Any]
Grids = Mapping[str, Mapping[str, Any]]

PARTNER = person(50)
RECEIVER = b"\x7e" * 20
SLIPPAGE_BPS = 100
"""Firm settings for makers that all answer: a busy machine makes none of them late."""

_GAS = 3_000_000  # where an envelope names none
_ENVIRON = ENVIRON | {
    name: text
    for maker, key in KEYS.items()
    for name, text in (
        (f"{maker.upper()}_KEY", key.secret32().hex()),
        (f"{maker.upper()}_SECRET", f"the secret of {maker}"),
    )
}
_MORE = """
[venue.firm]
{firm}
[partners.wallet]
address = "{partner}"
fee_bps = 50
[partners.modest]
address = "{partner}"
fee_bps = 10
tier = "modest"
[tiers.modest]
fee_bps_max = 20
takes_surplus = false
"""
_TWIN = """
[[tokens]]
chain_id = {chain_id}
address = "{weth}"
symbol = "WETH"
decimals = 18
[chains.{chain_id}]
name = "twin"
market = true
rfq = true
"""


class Story:
    """A venue, its makers, and its users.

    Attributes:
        web: the venue, as it is asked over HTTP.
        fronts: of the makers, by name.
        folder: in which each maker's prices lie.
        TWIN: a second chain, with contracts at the same addresses, where it was asked for.
        is_anonymous: swaps are asked for without an API key, so that their share of the makers' stock is
            small; the makers of most stories have little.
    """

    TWIN = 31_338

    def __init__(
        self, world: World, web: RunningVenue, clock: StoryClock, fronts: dict[str, Front], folder: Path
    ) -> None:
        self.world = world
        self.web = web
        self.clock = clock
        self.fronts = fronts
        self.folder = folder
        self.is_anonymous = False
        self.tokens = {"ETH": NATIVE, "WETH": world.weth, "USDC": world.usdc, "DAI": world.dai}
        self.people: dict[str, bytes] = {
            "user": world.user.address,
            "receiver": RECEIVER,
            "stranger": world.stranger.address,
            "partner": PARTNER.address,
            "protocol": world.protocol,
            "vault": world.at.fee_vault,
            "router": world.at.router,
            "executor": world.at.executor,
            **{name: KEYS[name].address for name in fronts},
        }

    # --- Quotes ---------------------------------------------------------------------------------------

    async def prices(self, side: str, src: str, dest: str, amount: int, **more: Any) -> Route:
        """The `priceRoute` of GET /prices."""
        status, told = await self.priced(side, src, dest, amount, **more)
        assert status == 200, told
        return cast("Route", told["priceRoute"])

    async def priced(self, side: str, src: str, dest: str, amount: int, **more: Any) -> tuple[int, Any]:
        """GET /prices: status and JSON of any answer."""
        query = self._trade(side, src, dest, amount) | {"network": CHAIN_ID, "version": "6.2"} | more
        return await self.web.answer("/prices", **query)

    async def quote(self, side: str, src: str, dest: str, amount: int, **more: Any) -> Any:
        """GET /v2/quote, by default with mode=MARKET."""
        query = self._trade(side, src, dest, amount) | {"chainId": CHAIN_ID, "mode": "MARKET"} | more
        return await self.web.get("/v2/quote", **query)

    def _trade(self, side: str, src: str, dest: str, amount: int) -> dict[str, Any]:
        text = self.web.devnet.text
        ends = {"srcToken": text(src), "destToken": text(dest), "side": side, "amount": str(amount)}
        return ends | {"srcDecimals": DECIMALS[src], "destDecimals": DECIMALS[dest]}

    async def quoted_by(self, side: str, src: str, dest: str, amount: int) -> set[str]:
        """Makers of a route; empty if there is no route."""
        status, told = await self.priced(side, src, dest, amount)
        return makers_of(told["priceRoute"]) if status == 200 else set()

    # --- Transactions ---------------------------------------------------------------------------------

    def body(self, route: Route, **changed: Any) -> dict[str, Any]:
        """Of POST /transactions: the user's, a per cent of slippage allowed; None leaves a member out."""
        fixed = "srcAmount" if route["side"] == "SELL" else "destAmount"
        sent = {
            "priceRoute": route,
            "srcToken": route["srcToken"],
            "destToken": route["destToken"],
            "userAddress": to_checksum(self.world.user.address),
            fixed: route[fixed],
            "slippage": SLIPPAGE_BPS,
        }
        return {name: value for name, value in (sent | changed).items() if value is not None}

    async def ask_transaction(
        self, route: Route, query: Mapping[str, Any] | None = None, **body: Any
    ) -> tuple[int, Any]:
        """POST /transactions: status and JSON of any answer."""
        with self.web.with_key("" if self.is_anonymous else API_KEY):
            return await self.web.post(f"/transactions/{CHAIN_ID}", self.body(route, **body), **(query or {}))

    async def build(self, route: Route, query: Mapping[str, Any] | None = None, **body: Any) -> Any:
        """An envelope, or with onlyParams the call."""
        status, told = await self.ask_transaction(route, query, **body)
        assert status == 200, told
        return told

    async def not_built(self, route: Route, **body: Any) -> tuple[int, str]:
        """Status and details of a refusal; nothing has moved."""
        before = await self.balances()
        status, told = await self.ask_transaction(route, **body)
        assert status >= 400, told
        assert await self.balances() == before
        return status, told["details"]

    async def swap(self, route: Route, query: Mapping[str, Any] | None = None, **body: Any) -> Moved:
        """Build, sign and send; what has moved, gas apart."""
        return await self.send(await self.build(route, query, **body), route, **body)

    async def send(self, envelope: Any, route: Route, **body: Any) -> Moved:
        """Sign and send an envelope as it stands; what has moved, gas apart."""
        before = await self.balances()
        receipt = await self.submit(envelope)
        assert receipt.succeeded
        after = await self.balances()
        after["user", "ETH"] += receipt.gas_used * receipt.gas_price_wei
        changed = moved(before, after)
        self._check(changed, receipt, envelope, route, body)
        return changed

    async def submit(self, envelope: Any) -> Receipt:
        """Mine a transaction; its receipt, successful or not."""
        world = self.world
        assert parse_address(envelope["from"]) == world.user.address
        most = int(envelope.get("maxFeePerGas") or envelope["gasPrice"])
        transaction = Transaction(
            chain_id=envelope["chainId"],
            nonce=await world.chain.nonce(world.user.address),
            tip_wei=int(envelope.get("maxPriorityFeePerGas", most)),
            fee_max_wei=most,
            gas=int(envelope.get("gas", _GAS)),
            to=parse_address(envelope["to"]),
            value_wei=int(envelope["value"]),
            data=parse_hex(envelope["data"], "data"),
        )
        return await mined(
            world.chain, await world.chain.send_raw(sign_transaction(transaction, world.user).raw)
        )

    async def reverted(self, envelope: Any, key: SigningKey | None = None) -> str:
        """Reason of the chain's refusal of an envelope, sent with `key`; no balance changes."""
        before = await self.balances()
        reason = await self.world.refused(
            key or self.world.user,
            parse_address(envelope["to"]),
            parse_hex(envelope["data"], "data"),
            value_wei=int(envelope["value"]),
        )
        after = await self.balances()
        sender = "user" if key is None else "stranger"
        assert {name: after[name] for name in after if name != (sender, "ETH")} == {
            name: before[name] for name in before if name != (sender, "ETH")
        }
        return reason

    # --- State ----------------------------------------------------------------------------------------

    async def balances(self) -> Moved:
        """Balances of all accounts in every token."""
        return await self.world.held(self.people, self.tokens)

    async def owed(self, who: str, token: str) -> int:
        """Amount that the fee vault owes an account, raw units."""
        return await self.world.ask(self.world.at.fee_vault, owed(self.people[who], self.tokens[token]))

    async def score(self, maker: str) -> Any:
        """Score of a maker in GET /makers/scores."""
        scores = await self.web.get("/makers/scores", network=CHAIN_ID)
        return next(score for score in scores if score["maker"] == maker)

    async def allow(self, token: str, amount: int, maker: str = "") -> None:
        """The user allows the Router, or a maker the RFQ contract, to take so much."""
        world = self.world
        owner, spender = (KEYS[maker], world.at.rfq) if maker else (world.user, world.at.router)
        await world.approve(owner, self.tokens[token], spender, amount)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass for venue and makers, until all that has grown old by it is fresh again."""
        self.clock.passes(seconds)
        await self.world.chain.mine()  # for the venue to look at the chain
        place = self.web.app.chains[CHAIN_ID]
        await until(lambda: not any(maker.not_ready() for maker in self.web.makers.values()))
        for feed in place.feeds.values():
            feed.cache.expire(self.clock.now_ms())

        def shown() -> set[str]:
            return {live.maker for live in place.index.books()}

        await until(lambda: shown() == self.fronts.keys() and place.gas.is_fresh)

    async def quotes(self, maker: str, **pairs: Any) -> None:
        """A maker changes its books: all of them."""
        index = self.web.app.chains[CHAIN_ID].index

        def books() -> list[Book]:
            return [live.book for live in index.books() if live.maker == maker]

        before = books()
        write_grids(self.folder / maker, maker, pairs)
        await until(lambda: not any(book is old for book in books() for old in before))

    def symbol(self, text: str) -> str:
        """Of a token's address."""
        address = parse_address(text)
        return next(symbol for symbol, token in self.tokens.items() if token == address)

    # --- Checks of every swap -------------------------------------------------------------------------

    def _check(
        self, moved: Moved, receipt: Receipt, envelope: Any, route: Route, body: Mapping[str, Any]
    ) -> None:
        """Makers gave and got what they signed; the user's bound was kept; nothing is left on the way."""
        side, swap = decode_swap(parse_hex(envelope["data"], "data"))
        events = [decode_event(log.topics, log.data) for log in receipt.logs]
        fills = [event for event in events if isinstance(event, OrderFilled)]
        self._check_fills(moved, fills, side, swap)
        assert not {key for key in moved if key[0] in ("router", "executor")}
        (swapped,) = (event for event in events if isinstance(event, Swapped))
        slippage = body.get("slippage", SLIPPAGE_BPS)
        quoted_src, quoted_dest = int(route["srcAmount"]), int(route["destAmount"])
        if side is Side.SELL:
            assert swapped.spent == quoted_src
            if slippage is not None and not {"partner", "partnerFeeBps"} & body.keys():
                assert swapped.received >= quoted_dest * (10_000 - slippage) // 10_000
        else:
            assert swapped.received == quoted_dest
            if slippage is not None and not {"partner", "partnerFeeBps"} & body.keys():
                assert swapped.spent <= quoted_src * (10_000 + slippage) // 10_000
        assert moved["user", self.symbol(route["srcToken"])] == -swapped.spent
        receiver = "receiver" if body.get("receiver") else "user"
        assert moved[receiver, self.symbol(route["destToken"])] == swapped.received

    def _check_fills(self, moved: Moved, fills: Sequence[OrderFilled], side: Side, swap: RouterSwap) -> None:
        orders = [info.order for hop in swap.hops for info in hop.orders]
        digest_of = RFQ_ORDER.compiled.digest_for(rfq_domain_separator(RFQ_NAME, CHAIN_ID, self.world.at.rfq))
        signed = {digest_of(order): order for order in orders}
        symbols = {address: symbol for symbol, address in self.tokens.items()}
        flows: Moved = {}
        for fill in fills:
            order = signed[fill.order_hash]
            assert (fill.maker, fill.maker_asset, fill.taker_asset) == (
                order.maker,
                order.maker_asset,
                order.taker_asset,
            )
            if side is Side.SELL:
                assert fill.taker_amount <= order.taker_amount
                assert fill.maker_amount == fill.taker_amount * order.maker_amount // order.taker_amount
            else:
                assert fill.maker_amount <= order.maker_amount
                assert fill.taker_amount == -(-fill.maker_amount * order.taker_amount // order.maker_amount)
            maker = next(name for name, address in self.people.items() if address == fill.maker)
            for token, amount in (
                (fill.maker_asset, -fill.maker_amount),
                (fill.taker_asset, fill.taker_amount),
            ):
                key = maker, symbols[token]
                flows[key] = flows.get(key, 0) + amount
        of_makers = {key: amount for key, amount in moved.items() if key[0] in self.fronts}
        assert of_makers == {key: amount for key, amount in flows.items() if amount}


def makers_of(route: Route) -> set[str]:
    """Makers whose fills a route contains."""
    return {
        one["exchange"]
        for part in route["bestRoute"]
        for swap in part["swaps"]
        for one in swap["swapExchanges"]
    }


def by_slippage(amount: str, bps: int = SLIPPAGE_BPS) -> int:
    """The least that a quoted amount may become."""
    return int(amount) * (10_000 - bps) // 10_000


@asynccontextmanager
async def a_venue_story(
    world: World,
    folder: Path,
    grids: Grids,
    *,
    firm: str = FIRM,
    changed: Callable[[str, Mapping[str, int]], Mapping[str, Any]] = lambda name, ports: {},
    delta: bool = True,
    twin: bool = False,
    environ: Mapping[str, str] | None = None,
    style: Style | None = None,
) -> AsyncIterator[Story]:
    """A story in which every book is live.

    Args:
        folder: for state and prices, empty.
        grids: what each maker quotes; they are started in this order.
        firm: TOML of the venue's firm settings.
        changed: name and ports of the makers before -> other settings of a maker's chain.
        delta: whether the venue serves Delta, too.
        twin: the venue serves a second chain, without makers.
        environ: added to the venue's environment, which may change settings.
        style: how the fronts of the makers write their answers.
    """
    await _stock(world, grids)
    clock = StoryClock(await world.now_s())
    devnet = devnet_of(world, folder)
    chains = [CHAIN_ID, Story.TWIN] if twin else [CHAIN_ID]
    write_entries(folder, dict.fromkeys(chains, devnet.entry))
    async with AsyncExitStack() as owned:
        makers: dict[str, MakerApp] = {}
        ports: dict[str, int] = {}
        fronts: dict[str, Front] = {}
        streams: dict[str, int] = {}
        for name, pairs in grids.items():
            (folder / name).mkdir()
            write_grids(folder / name, name, pairs)
            made = _running_maker(folder / name, devnet, name, pairs, clock, changed(name, ports))
            makers[name], streams[name] = await owned.enter_async_context(made)
            fronts[name] = Front(name, world, streams[name])
            fronts[name].style = style
            ports[name] = await owned.enter_async_context(scripted_server(fronts[name].script))
        text = venue_text(devnet, ports, accounts=KEYS) + _MORE.format(
            firm=firm, partner=to_checksum(PARTNER.address)
        )
        for name, port in ports.items():
            text = text.replace(f"ws://127.0.0.1:{port}/", f"ws://127.0.0.1:{streams[name]}/")
        if style is not None:  # prices come by polls alone
            text = re.sub(r"\nws_url = .*", "", text)
        if twin:
            text += _TWIN.format(chain_id=Story.TWIN, weth=devnet.text("WETH"))
        if not delta:
            text = text.replace("delta = true", "delta = false")
        environ = {**_ENVIRON, **(environ or {})}
        seen = dict.fromkeys(chains, world.chain)
        async with venue_on(devnet, folder, text, environ, clock, seen) as web:
            web.makers = makers
            expected, place = sum(map(len, grids.values())), web.app.chains[CHAIN_ID]
            await until(lambda: len(list(place.index.books())) == expected and place.gas.is_fresh)
            yield Story(world, web, clock, fronts, folder)


@asynccontextmanager
async def _running_maker(
    home: Path,
    devnet: Devnet,
    name: str,
    pairs: Mapping[str, Any],
    clock: StoryClock,
    changed: Mapping[str, Any],
) -> AsyncGenerator[tuple[MakerApp, int]]:
    """The maker and its port."""
    settings = parse_settings(maker_text(devnet, name, pairs), _ENVIRON, home)
    assert settings.maker
    chain = settings.maker.chains[CHAIN_ID]
    chain = replace(chain, price_options=chain.price_options | {"poll_ms": 50, "refresh_ms": 100})
    chain = replace(chain, **changed)
    settings = replace(settings, maker=replace(settings.maker, chains={CHAIN_ID: chain}), state_dir=str(home))
    app = MakerApp(settings, environ=_ENVIRON, folder=home, clock=clock)
    with app.remembering():
        async with listening(app.run) as port:
            yield app, port


async def _stock(world: World, makers: Grids) -> None:
    """Give all traders their tokens and allowances."""
    await world.chain.set_balance(world.user.address, 1_000 * ONE)
    for owner, spender, weth, others in (
        (world.user, world.at.router, 100, 100_000),
        *((KEYS[name], world.at.rfq, 1_000, 1_000_000) for name in makers),
    ):
        await world.chain.set_balance(owner.address, 2_000 * ONE)
        await world.give(owner, world.weth, weth * ONE, spender)
        await world.give(owner, world.usdc, others * USDC, spender)
        await world.give(owner, world.dai, others * ONE, spender)
