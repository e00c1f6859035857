"""Makers that answer after so many seconds of a clock that tests own, and the desk that asks them.

stage = Timed(alpha=Maker(0.1), beta=HANGING, gamma=Maker(0.0, FirmFault.REFUSED))
route = await stage.sell()
"""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import trio
from msgspec import Struct

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import REMAINING
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.messages.maker_messages import FirmOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config.limits import BPS_ONE
from cambist.config.sections.venue import FirmSettings
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.chain.port import At, EthCall
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.routing.firm.firm_desk import FirmDesk
from cambist.engine.trade.routing.firm.firm_route import FirmRoute
from cambist.engine.trade.routing.firm.firm_scores import FirmMaker
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import RoutePlan, SwapRequest
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.firm.firm_check import FirmAsked, FirmFailure, FirmFault, book_amount
from cambist.feeds.firm.maker_health import MakerHealth
from support.chain.scripted_chain import ScriptedChain
from support.makers.firm_books import USDC, WETH, Levels, a_live_book
from support.stretched_bounds import OWN_S

NOW_MS = 1_795_000_000_000
USER, EXECUTOR, RFQ = b"\xbb" * 20, b"\xaa" * 20, b"\x0f" * 20
SEPARATOR = rfq_domain_separator("AUGUSTUS RFQ", 31_337, RFQ)
DIGEST_OF = RFQ_ORDER.compiled.digest_for(SEPARATOR)
ONE = 10**18
SETTINGS = FirmSettings(soft_s=OWN_S["FIRM_SOFT_S"], hard_s=OWN_S["FIRM_HARD_S"])
Shown = tuple[bytes, bytes, Levels, Levels]  # base, quote, bids, asks


class Maker(Struct, frozen=True):
    """Behaviour of a maker.

    Attributes:
        after_s: until it answers.
        fault: the maker's failure then; None signs by its book.
        books: what it shows; unless given, WETH against USDC, a USDC worse than the maker named before it. Of
            two books of a pair it signs by the one that routes use.
        worse_bps: basis points by which it signs worse than its book.
        lasts_s: seconds for which its quotes last.
        repeats: whether all its orders have the same nonce.
        other_account_for: token that it gives from another account.
    """

    after_s: float
    fault: FirmFault | None = None
    books: tuple[Shown, ...] = ()
    worse_bps: int = 0
    lasts_s: int = 300
    repeats: bool = False
    other_account_for: bytes = b""


HANGING = Maker(math.inf)


def wall_ms() -> int:
    """Unix milliseconds, which pass with the clock of the tasks."""
    return NOW_MS + round(1_000 * trio.current_time())


class RichChain(ScriptedChain):
    """A chain on which every account has every token, and on which every order is new.

    Attributes:
        poor: accounts whose tokens cannot be moved.
    """

    def __init__(self) -> None:
        super().__init__()
        self.poor: set[bytes] = set()

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        await trio.lowlevel.checkpoint()
        return [self._answer(call.data) for call in calls]

    def _answer(self, data: bytes) -> bytes:
        is_nothing = data.startswith(REMAINING) or any(account in data for account in self.poor)
        return bytes(32) if is_nothing else uint_word(2**255)


class TimedClient:
    """Client of a maker that answers the desk without a socket.

    Attributes:
        account: of the maker's orders; asked_at: times of questions, seconds; amounts: raw units of the fixed
            side.
    """

    def __init__(self, name: str, index: PairIndex, maker: Maker) -> None:
        self._name = name
        self._index = index
        self.maker = maker
        self._key = SigningKey(name.encode().ljust(32, b"\x01"))
        self.account = self._key.address
        self.asked_at: list[float] = []
        self.amounts: list[int] = []

    async def ask(self, asked: FirmAsked, *, deadline_s: float) -> FirmOrder:
        self.asked_at.append(trio.current_time())
        self.amounts.append(asked.amount)
        nonce = 1 if self.maker.repeats else len(self.asked_at)
        with trio.move_on_after(deadline_s):
            await trio.sleep(self.maker.after_s)
            if self.maker.fault is not None:
                raise FirmFailure(self.maker.fault)
            return self._signed(asked, nonce)
        raise FirmFailure(FirmFault.LATE)

    def _signed(self, asked: FirmAsked, nonce: int) -> FirmOrder:
        books = self._index.between(asked.src_token, asked.dest_token).values()
        live = max((live for live in books if live.maker == self._name), key=lambda live: live.base)
        other = book_amount(live, asked)
        assert other is not None
        is_other = asked.dest_token == self.maker.other_account_for
        key = SigningKey(b"\x02" * 32) if is_other else self._key
        sells = asked.side is Side.SELL
        worse_bps = self.maker.worse_bps
        other = other * (BPS_ONE - worse_bps if sells else BPS_ONE + worse_bps) // BPS_ONE
        order = RfqOrder(
            pack_firm(asked.user, nonce),
            wall_ms() // 1_000 + self.maker.lasts_s,
            asked.dest_token,
            asked.src_token,
            key.address,
            asked.taker,
            other if sells else asked.amount,
            asked.amount if sells else other,
        )
        signature = to_65(*key.sign(DIGEST_OF(order)))
        return FirmOrder(**_snake(RFQ_ORDER.to_wire(order)), signature=f"0x{signature.hex()}")


class Timed:
    """A desk and its makers, by name, the best price first.

    Attributes:
        clients: by name.
        health: by name.
        chain: on which makers' funds are looked up.
        rests: (maker, or `all of` it, for how many milliseconds), as they began.
        bounds: (maker, src, dest, raw units of the base token, for how many milliseconds), as they were set.
        freed: makers of which all was released.
        expired: makers of whose books what has ended was taken off.
        excluded: makers that the operator excludes.
        blacklisted: (maker, users that it does not serve), as it was found out.
    """

    def __init__(self, **makers: Maker) -> None:
        self.index = PairIndex()
        self.clients: dict[str, TimedClient] = {}
        self.rests: list[tuple[str, int]] = []
        self.bounds: list[tuple[str, bytes, bytes, int, int]] = []
        self.freed: list[str] = []
        self.expired: list[str] = []
        self.excluded: set[str] = set()
        self.blacklisted: list[tuple[str, tuple[bytes, ...]]] = []
        firm: dict[str, FirmMaker] = {}
        for number, (name, maker) in enumerate(makers.items()):
            books = maker.books or ((WETH, USDC, ((f"{2_500 - number}", "100"),), (("2600", "100"),)),)
            for shown in books:
                self.index.put(a_live_book(name, *shown))
            self.clients[name] = TimedClient(name, self.index, maker)
            firm[name] = self._maker(name)
        self.health: Mapping[str, MakerHealth] = {name: maker.health for name, maker in firm.items()}
        self.chain = RichChain()
        chain: Any = self.chain
        self.desk = FirmDesk(
            firm,
            Pathfinder(self.index, b""),
            self.index,
            chain,
            rfq=RFQ,
            executor=EXECUTOR,
            separator=SEPARATOR,
            settings=SETTINGS,
            ledger=Ledger(),
            wall_ms=wall_ms,
        )

    def _maker(self, name: str) -> FirmMaker:
        cache: Any = SimpleNamespace(
            rest_pair=lambda one, other, until_ms: self.rests.append((name, until_ms - wall_ms())),
            rest_maker=lambda until_ms: self.rests.append((f"all of {name}", until_ms - wall_ms())),
            bound=lambda src, dest, amount, until_ms: self.bounds.append(
                (name, src, dest, amount, until_ms - wall_ms())
            ),
            expire=lambda now_ms: self.expired.append(name),
            is_withheld=lambda reason: name in self.excluded,
            free=lambda now_ms: self.freed.append(name),
            blacklist=SimpleNamespace(
                add=lambda addresses, now_ms: self.blacklisted.append((name, addresses))
            ),
        )
        client: Any = self.clients[name]
        return FirmMaker(client, MakerHealth(5_000, 900_000), cache)

    def plan(
        self, dest: bytes = USDC, amount: int = ONE, *, side: Side = Side.SELL, src: bytes = WETH, **more: Any
    ) -> tuple[RoutePlan, SwapRequest]:
        """A plan by the books; `more` are fields of the request."""
        wanted = SwapRequest(src, dest, amount, side, **more)
        plan = self.desk.pathfinder.find(wanted)
        assert plan is not None
        return plan, wanted

    async def sell(
        self, dest: bytes = USDC, amount: int = ONE, *, limit: int = 0, account: str = "", **more: Any
    ) -> FirmRoute:
        """Have a sale of WETH signed."""
        return await self.desk.fill(*self.plan(dest, amount, **more), user=USER, limit=limit, account=account)

    async def sell_usdc(self, amount: int) -> FirmRoute:
        """Have a sale of USDC for WETH signed."""
        return await self.desk.fill(*self.plan(WETH, amount, src=USDC), user=USER, limit=0)

    async def buy(self, dest: bytes, amount: int, *, limit: int = 2**256 - 1) -> FirmRoute:
        """Have a purchase with WETH signed."""
        return await self.desk.fill(*self.plan(dest, amount, side=Side.BUY), user=USER, limit=limit)

    def asked(self) -> dict[str, list[float]]:
        """Maker -> times of its questions, seconds."""
        return {name: client.asked_at for name, client in self.clients.items() if client.asked_at}

    def reasons(self) -> dict[str, dict[str, int]]:
        """Maker -> reasons in its score, with their counts."""
        told = {name: health.report(NOW_MS).maker.reasons for name, health in self.health.items()}
        return {name: reasons for name, reasons in told.items() if reasons}


def makers_of(route: FirmRoute) -> list[str]:
    """Makers of all fills, hop after hop."""
    return [fill.maker for hop in route.hops for fill in hop.fills]


def _snake(wire: dict[str, Any]) -> dict[str, Any]:
    names = {
        "nonceAndMeta": "nonce_and_meta", "expiry": "expiry", "makerAsset": "maker_asset",
        "takerAsset": "taker_asset", "maker": "maker", "taker": "taker", "makerAmount": "maker_amount",
        "takerAmount": "taker_amount",
    }  # fmt: skip
    return {names[key]: value for key, value in wire.items()}
