"""Makers on real sockets who sign firm quotes, each with a habit that may be bad; the desk that asks them.

async with a_stage(world) as stage:
    await stage.stock("alpha", world.usdc)
    stage.makers["beta"].habit = "hangs"
    route = await stage.sell(world.weth, world.usdc, ONE)
    spent, received = await execute(world, route)
"""

import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import trio

from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.http1 import encode_response
from cambist.codecs.messages.maker_messages import decode_pairs, decode_prices, decode_tokens
from cambist.codecs.messages.vocabulary import Side
from cambist.config.sections.venue import FirmSettings
from cambist.crypto.addresses import parse_address
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.routing.firm.firm_desk import FirmDesk
from cambist.engine.trade.routing.firm.firm_route import FirmRoute, SignedFill
from cambist.engine.trade.routing.firm.firm_scores import FirmMaker
from cambist.engine.trade.routing.firm.legs import FirmLeg, arranged
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.firm.firm_check import FirmAsked, book_amount, check_firm
from cambist.feeds.firm.firm_client import FirmClient
from cambist.feeds.firm.maker_health import MakerHealth
from cambist.feeds.maker_cache import MakerCache
from support.chain.world import HOUR_S, MOST, NOBODY, ONE, RFQ_NAME, World, person
from support.makers.firm_books import ASKS, BIDS, Levels
from support.patience import FIRM_HARD_S, FIRM_SOFT_S, PATIENCE
from support.server.scripted_server import Caller, scripted_server

PATIENT = FirmSettings(soft_s=FIRM_SOFT_S, hard_s=FIRM_HARD_S)
"""Settings for makers that all answer: a busy machine makes none of them late."""
HASTY = FirmSettings(soft_s=2 * PATIENCE, hard_s=FIRM_HARD_S)
"""Settings for a maker that does not answer: others are asked after a third of the soft bound."""
STRANGER = SigningKey(b"\x77" * 32)
_FLOOD = b"x" * (1 << 20)


class SocketMaker:
    """A maker on a socket.

    Attributes:
        habit: behaviour on a question; empty for a right answer.
        moods: where it is given, chooses the habit anew for every question.
        worse_bps: by which what it signs is worse than its book.
        other_account_for: a token that it gives from another account than the rest.
        nonce: where it is given, is in every order: the same question has the same order for its answer.
        account: the named maker; the key's address unless it is a contract.
        resources: last part of a path -> JSON with which a GET is answered.
        asked: the bodies that came.
        answered: number of answers.
    """

    def __init__(self, name: str, key: SigningKey, digest_of: Callable[[RfqOrder], bytes]) -> None:
        self.name = name
        self.key = key
        self.account = key.address
        self.habit = ""
        self.moods: Callable[[], str] | None = None
        self.worse_bps = 0
        self.other_account_for = b""
        self.nonce: int | None = None
        self.resources: dict[bytes, Any] = {}
        self.asked: list[dict[str, str]] = []
        self.answered = 0
        self._digest_of = digest_of
        self.index = PairIndex()
        self.now_s: Callable[[], int] = lambda: 0

    async def script(self, caller: Caller) -> None:
        """Serve one connection."""
        while True:
            try:
                request = await caller.request()
                if request.method == b"GET":
                    # 404 as of any server: a port is given again, and a client of another test may ask here.
                    content = self.resources.get(request.path.rpartition(b"/")[2])
                    status = 404 if content is None else 200
                    await caller.stream.send_all(encode_response(status, msgspec.json.encode(content)))
                    continue
                self.asked.append(msgspec.json.decode(request.body))
                if self.moods is not None:
                    self.habit = self.moods()
                await self._respond(caller.stream, self.asked[-1])
            except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
                return
            self.answered += 1

    async def _respond(self, stream: trio.abc.Stream, body: dict[str, str]) -> None:
        habit = self.habit
        if habit == "hangs":
            await trio.sleep_forever()
        if habit == "drips":
            for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 1_000:
                await stream.send_all(bytes([byte]))
                await trio.sleep(0.05)
        if habit == "cuts":
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
            await trio.aclose_forcefully(stream)
        elif habit == "floods":
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n")
            while True:
                await stream.send_all(_FLOOD)
        elif habit == "dies once":
            self.habit = ""
            await trio.aclose_forcefully(stream)
        elif habit == "babbles":
            await stream.send_all(b"SMTP ready\r\n\r\n")
            await trio.aclose_forcefully(stream)
        else:
            status, answer = self._answer(body)
            await stream.send_all(encode_response(status, msgspec.json.encode(answer)))

    def _answer(self, body: dict[str, str]) -> tuple[int, Any]:
        if self.habit == "refuses":
            return 503, {"error": "not today"}
        if self.habit == "forbids":
            return 403, {"error": "not you"}
        if self.habit == "blacklists":
            return 200, {"message": "not you"}
        if self.habit == "shrugs":
            return 200, [1, 2]
        return 200, {"order": self._order(body)}

    def _order(self, body: dict[str, str]) -> dict[str, Any]:
        asked = FirmAsked(
            parse_address(body["takerAsset"]),
            parse_address(body["makerAsset"]),
            Side.SELL if "takerAmount" in body else Side.BUY,
            int(body.get("takerAmount") or body["makerAmount"]),
            parse_address(body["userAddress"]),
            parse_address(body["takerAddress"]),
        )
        (live,) = self.index.between(asked.src_token, asked.dest_token).values()
        other = book_amount(live, asked)
        assert other is not None, "the desk asks for more than the book has"
        if asked.side is Side.SELL:
            taker_amount, maker_amount = asked.amount, other * (10_000 - self.worse_bps) // 10_000
        else:
            taker_amount, maker_amount = other * (10_000 + self.worse_bps) // 10_000, asked.amount
        order = RfqOrder(
            pack_firm(asked.user, secrets.randbits(96) if self.nonce is None else self.nonce),
            self.now_s() + 300,
            asked.dest_token,
            asked.src_token,
            self.account,
            STRANGER.address if self.habit == "names another taker" else asked.taker,
            maker_amount,
            taker_amount,
        )
        key = STRANGER if self.habit == "signs wrongly" else self.key
        if asked.dest_token == self.other_account_for:
            key, order = STRANGER, msgspec.structs.replace(order, maker=STRANGER.address)
        signature = to_65(*key.sign(self._digest_of(order)))
        return RFQ_ORDER.to_wire(order) | {"signature": f"0x{signature.hex()}"}


class Stage:
    """Makers alpha, beta and gamma, with books in their caches, and a desk on a world's chain."""

    def __init__(self, world: World, settings: FirmSettings, now_ms: int) -> None:
        self.world = world
        self.settings = settings
        self.now_ms = now_ms
        self.index = PairIndex()
        self.separator = rfq_domain_separator(RFQ_NAME, world.chain.chain_id, world.at.rfq)
        self.decimals = {world.weth: 18, world.usdc: 6, world.dai: 18}
        digest_of = RFQ_ORDER.compiled.digest_for(self.separator)
        self.makers = {
            name: SocketMaker(name, person(20 + number), digest_of)
            for number, name in enumerate(("alpha", "beta", "gamma"))
        }
        self.firm: dict[str, FirmMaker] = {}
        self.pathfinder = Pathfinder(self.index, world.weth)
        self.desk: FirmDesk

    # --- Makers ---------------------------------------------------------------------------------------

    async def open(self, stack: AsyncExitStack) -> None:
        """Every maker listens, and has a client, a cache and a health."""
        for name, maker in self.makers.items():
            maker.now_s = lambda: self.now_ms // 1_000
            port = await stack.enter_async_context(scripted_server(maker.script))
            client = FirmClient(
                name,
                f"http://127.0.0.1:{port}/{name}",
                signer=None,
                connections_max=8,
                wall_ms=lambda: self.now_ms,
            )
            await stack.enter_async_context(client)
            blacklist = MakerBlacklist(60_000)
            cache = MakerCache(name, self.index, self.decimals, stale_ms=10**9, blacklist=blacklist)
            health = MakerHealth(int(self.settings.rest_s * 1_000), int(self.settings.rest_s_max * 1_000))
            self.firm[name] = FirmMaker(client, health, cache)
        self.desk = FirmDesk(
            self.firm,
            self.pathfinder,
            self.index,
            self.world.chain,
            rfq=self.world.at.rfq,
            executor=self.world.at.executor,
            separator=self.separator,
            settings=self.settings,
            ledger=Ledger(),
            wall_ms=lambda: self.now_ms,
        )

    def quote(self, name: str, *books: tuple[bytes, bytes, Levels, Levels]) -> None:
        """A maker shows books, as (base, quote, bids, asks), in place of those before; and signs by them."""
        symbols = {token: token.hex()[:6] for token in self.decimals}
        tokens = {
            symbols[token]: {"address": f"0x{token.hex()}", "decimals": decimals, "type": "ERC20"}
            for token, decimals in self.decimals.items()
        }
        ids = {f"{symbols[base]}/{symbols[quote]}": (base, quote) for base, quote, _, _ in books}
        pairs = {
            pair_id: {"base": symbols[base], "quote": symbols[quote], "liquidityUSD": 1_000_000}
            for pair_id, (base, quote) in ids.items()
        }
        prices = {
            pair_id: {"bids": bids, "asks": asks}
            for pair_id, (_, _, bids, asks) in zip(ids, books, strict=True)
        }
        own = MakerCache(
            name, self.makers[name].index, self.decimals, stale_ms=10**9, blacklist=MakerBlacklist(1)
        )
        encode, now_ms = msgspec.json.encode, self.now_ms
        for cache in (self.firm[name].cache, own):
            _run(cache.apply_tokens(decode_tokens(encode({"tokens": tokens})), now_ms, now_ms))
            _run(cache.apply_pairs(decode_pairs(encode({"pairs": pairs})), now_ms, now_ms))
            _run(cache.apply_prices(decode_prices(encode({"prices": prices})), now_ms, now_ms))

    def quote_weth(self, *names: str, bids: Levels = BIDS, asks: Levels = ASKS) -> None:
        """These makers show WETH against USDC."""
        for name in names:
            self.quote(name, (self.world.weth, self.world.usdc, bids, asks))

    async def everybody_quotes(self) -> None:
        """Stock all makers, and show WETH/USDC, WETH/DAI and DAI/USDC; no maker is deep enough alone."""
        weth, usdc, dai = self.world.weth, self.world.usdc, self.world.dai
        for number, name in enumerate(self.makers):
            bids = ((f"{2500 - number}", "0.5"), (f"{2490 - number}", "1"), (f"{2400 - number}", "50"))
            asks = ((f"{2501 + number}", "0.5"), (f"{2511 + number}", "1"), (f"{2600 + number}", "50"))
            stable = ((("1.0001", "900"), ("0.9997", "70000")), (("1.0003", "900"), ("1.0007", "70000")))
            self.quote(name, (weth, usdc, bids, asks), (weth, dai, bids, asks), (dai, usdc, *stable))
            await self.stock(name, usdc, dai)

    async def stock(self, name: str, *tokens: bytes, amount: int = 10**6) -> None:
        """Give a maker `amount` whole tokens of each, which the RFQ contract may take."""
        key = self.makers[name].key
        await self.world.chain.set_balance(key.address, 2 * amount * ONE)
        for token in tokens:
            await self.world.give(key, token, amount * 10 ** self.decimals[token], self.world.at.rfq)

    # --- Swaps ----------------------------------------------------------------------------------------

    def plan(
        self, side: Side, src: bytes, dest: bytes, amount: int, **more: Any
    ) -> tuple[RoutePlan, SwapRequest]:
        """A plan by the books."""
        wanted = SwapRequest(src, dest, amount, side, **more)
        plan = self.pathfinder.find(wanted)
        assert plan is not None
        return plan, wanted

    async def sell(self, src: bytes, dest: bytes, amount: int, *, limit: int = 0, **more: Any) -> FirmRoute:
        """Have a sale signed."""
        plan, wanted = self.plan(Side.SELL, src, dest, amount, **more)
        return await self.desk.fill(plan, wanted, user=self.world.user.address, limit=limit)

    async def unchecked(self, name: str, src: bytes, dest: bytes, amount: int) -> FirmRoute:
        """A sale that one maker signs, without a check on the chain."""
        asked = FirmAsked(src, dest, Side.SELL, amount, self.world.user.address, self.world.at.executor)
        answer = await self.firm[name].client.ask(asked, deadline_s=self.settings.hard_s)
        quote = check_firm(answer, asked, self.desk.digest_of, self.now_ms // 1_000)
        route = arranged(
            Side.SELL, [[FirmLeg(src, dest, amount, (SignedFill(name, quote.order, quote.signature),))]]
        )
        assert isinstance(route, FirmRoute)
        return route

    async def buy(self, src: bytes, dest: bytes, amount: int, *, limit: int = MOST, **more: Any) -> FirmRoute:
        """Have a purchase signed."""
        plan, wanted = self.plan(Side.BUY, src, dest, amount, **more)
        return await self.desk.fill(plan, wanted, user=self.world.user.address, limit=limit)

    def reasons(self, name: str) -> dict[str, int]:
        """Reasons in a maker's score, with their counts."""
        return self.firm[name].health.report(self.now_ms).maker.reasons

    def shows(self, name: str, one: bytes, other: bytes) -> bool:
        """Whether its book between two tokens is routed."""
        return any(live.maker == name for live in self.index.between(one, other).values())


@asynccontextmanager
async def a_stage(world: World, settings: FirmSettings = PATIENT) -> AsyncGenerator[Stage]:
    """A stage without quotes; only the user has tokens: ten WETH, 100,000 USDC and 100,000 DAI."""
    stage = Stage(world, settings, (await world.now_s()) * 1_000)
    await world.give(world.user, world.weth, 10 * ONE, world.at.router)
    for token in (world.usdc, world.dai):
        await world.give(world.user, token, 10**5 * 10 ** stage.decimals[token], world.at.router)
    async with AsyncExitStack() as stack:
        await stage.open(stack)
        yield stage


async def execute(world: World, route: FirmRoute) -> tuple[int, int]:
    """The user swaps by a route through the Router. Returns what it cost and brought."""
    user, src, dest = world.user, route.hops[0].src_token, route.hops[-1].dest_token
    before = await world.balance(src, user), await world.balance(dest, user)
    swap = RouterSwap(
        src_token=src,
        dest_token=dest,
        src_amount=route.src_amount,
        dest_amount=route.dest_amount,
        expected_amount=0,
        receiver=NOBODY,
        deadline=await world.now_s() + HOUR_S,
        partner_and_fee=0,
        permit=b"",
        hops=tuple(_hops(route)),
    )
    data = swap_exact_in(swap) if route.side is Side.SELL else swap_exact_out(swap)
    await world.send(user, world.at.router, data)
    return before[0] - await world.balance(src, user), await world.balance(dest, user) - before[1]


def makers_of(route: FirmRoute) -> list[set[str]]:
    """Makers that fill each hop."""
    return [{fill.maker for fill in hop.fills} for hop in route.hops]


def fits_together(route: FirmRoute) -> bool:
    """Each hop that does not begin a path gives what the one before it brings."""
    return all(
        one.dest_token == other.src_token or other.src_token == route.hops[0].src_token
        for one, other in pairwise(route.hops)
    )


def _hops(route: FirmRoute) -> Sequence[Hop]:
    return [
        Hop(
            taker_amount=hop.taker_amount,
            maker_amount=hop.maker_amount,
            orders=tuple(
                OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills
            ),
        )
        for hop in route.hops
    ]


def _run(steps: Iterable[None]) -> None:
    for _ in steps:
        pass
