"""A chain of a venue for the Market surface, with prices from a table.

shop = a_shop()
route = shop.prices("srcToken=WETH&destToken=USDC&amount=1000000000000000000&network=31337&version=6.2")
envelope = await shop.build(route, {"srcAmount": ..., "slippage": 100})

The two makers quote every pair of the table, `alpha` a thousandth better than `beta`. A swap of two tokens
that are not in the table goes through USDC.
"""

import itertools
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import trio
from msgspec import Struct, structs

from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF, REMAINING
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.market_messages import (
    ContractParams,
    PriceRoute,
    TransactionEnvelope,
    decode_quote_query,
)
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.messages.wire import encode
from cambist.codecs.rounding import mul_div_up
from cambist.config.chains import ChainSettings
from cambist.config.errors import NoRoute, RateLimited, Reverted, ServiceUnavailable
from cambist.config.limits import BPS_ONE
from cambist.config.sections.partners import RegisteredPartner, Tier
from cambist.config.tokens import TokenSettings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip1271 import MAGIC_VALUE4, SELECTOR4, is_valid_signature_calldata
from cambist.crypto.route_seal import RouteSeal
from cambist.engine.chain.port import Chain, EthCall, GasFees, Header
from cambist.engine.chain.pulse import Pulse
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.market.market_desk import MarketDesk
from cambist.engine.trade.market.unfilled import Asker
from cambist.engine.trade.quote.ask import FeeRules
from cambist.engine.trade.quote.market_price import market_route
from cambist.engine.trade.routing.firm.firm_parts import HeldQuote
from cambist.engine.trade.routing.firm.firm_route import FilledHop, FirmRoute, SignedFill
from cambist.engine.trade.routing.firm.stock import Claimant, StockClaim, StockShares
from cambist.engine.trade.routing.search.pathfinder import NoPlanReason
from cambist.engine.trade.routing.search.plan import HopPlan, MakerShare, PathPlan, RoutePlan, SwapRequest
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.engine.trade.served.permit_proof import PERMIT2_OF
from cambist.engine.trade.served.served_chain import ServedChain
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.books.usd_prices import USD_DECIMALS
from cambist.feeds.standing import PairStanding
from support.chain.world import World
from support.venue.admitting import signatures

NOW_MS = 1_700_000_000_000
CHAIN_ID = 31_337
WETH, USDC, DAI, WBTC = (bytes([number]) * 20 for number in (0x11, 0x22, 0x33, 0x44))
ROUTER, EXECUTOR, RFQ, DELTA, VAULT = (bytes([number]) * 20 for number in range(0xA1, 0xA6))
USER, RECEIVER, ORIGIN = (bytes([number]) * 20 for number in (0xB1, 0xB2, 0xB3))
PERMIT2 = b"\xa6" * 20
PARTNER, STRANGER = (bytes([number]) * 20 for number in (0xC1, 0xC2))
ONE = 10**18
MAKERS = ("alpha", "beta")
GAS = 250_000
_AT_PERMIT2 = selector("allowance(address,address,address)")
RATES = {  # raw units of the second for one of the first
    (WETH, USDC): Fraction(2_500 * 10**6, ONE),
    (USDC, DAI): Fraction(ONE, 10**6),
    (WBTC, USDC): Fraction(60_000 * 10**6, 10**8),
}
USD = {WETH: Decimal(2_500).scaleb(-18), USDC: Decimal(1).scaleb(-6), WBTC: Decimal(60_000).scaleb(-8)}
PARTNERS = {
    "wallet": RegisteredPartner(address=to_checksum(PARTNER), fee_bps=50),
    "small": RegisteredPartner(address=to_checksum(PARTNER), fee_bps=10, tier="small"),
}
KEYED, ANYBODY = Asker("key k1", True, 1_000), Asker("network 192.0.2", False, 2)
USER_PLACES = 3
TIERS = {"small": Tier(fee_bps_max=25, takes_surplus=False)}


class WrittenPrices:
    """Finder of the only path, direct or through `hub`: the first maker fills six tenths.

    Attributes:
        asked: every swap that was to be found.
    """

    def __init__(self, rates: Mapping[tuple[bytes, bytes], Fraction], hub: bytes) -> None:
        self.hub = hub
        self.rates = {**rates, **{(dest, src): 1 / rate for (src, dest), rate in rates.items()}}
        self.asked: list[SwapRequest] = []

    def find(self, wanted: SwapRequest) -> RoutePlan | None:
        self.asked.append(wanted)
        ends = (wanted.src_token, wanted.dest_token)
        way = wanted.route or (ends if ends in self.rates else (ends[0], self.hub, ends[1]))
        pairs = list(itertools.pairwise(way))
        makers = [maker for maker in MAKERS if wanted.only is None or maker in wanted.only]
        makers = [maker for maker in makers if maker not in wanted.without]
        if not makers or any(pair not in self.rates for pair in pairs):
            return None
        hops = (
            self._sale(wanted, pairs, makers)
            if wanted.side is Side.SELL
            else self._buy(wanted, pairs, makers)
        )
        taxes = wanted.taxes
        if wanted.side is Side.SELL:
            src, dest = wanted.amount, _less(hops[-1].dest_amount, taxes.dest_dex, taxes.dest)
        else:
            src, dest = _more(hops[0].src_amount, taxes.src_dex, taxes.src), wanted.amount
        path = PathPlan(hops[0].src_amount, hops[-1].dest_amount, tuple(hops))
        return RoutePlan(wanted.side, src, dest, GAS, (path,)) if dest else None

    def lack(self, wanted: SwapRequest) -> NoPlanReason:
        return NoPlanReason.BOOKS

    def by_maker(self, wanted: SwapRequest) -> dict[str, RoutePlan]:
        found = {maker: self.find(structs.replace(wanted, only=frozenset({maker}))) for maker in MAKERS}
        return {maker: plan for maker, plan in found.items() if plan is not None}

    def _sale(
        self, wanted: SwapRequest, pairs: list[tuple[bytes, bytes]], makers: list[str]
    ) -> list[HopPlan]:
        amount = _less(wanted.amount, wanted.taxes.src, wanted.taxes.src_dex)
        hops = []
        for pair in pairs:
            parts = _parts(amount, makers)
            shares = [MakerShare(maker, part, int(part * self._rate(pair, maker))) for maker, part in parts]
            hops.append(_hop(pair, shares))
            amount = hops[-1].dest_amount
        return hops

    def _buy(self, wanted: SwapRequest, pairs: list[tuple[bytes, bytes]], makers: list[str]) -> list[HopPlan]:
        amount = _more(wanted.amount, wanted.taxes.dest, wanted.taxes.dest_dex)
        hops: list[HopPlan] = []
        for pair in reversed(pairs):
            parts = _parts(amount, makers)
            shares = [
                MakerShare(maker, -int(-part // self._rate(pair, maker)), part) for maker, part in parts
            ]
            hops.insert(0, _hop(pair, shares))
            amount = hops[0].src_amount
        return hops

    def _rate(self, pair: tuple[bytes, bytes], maker: str) -> Fraction:
        return self.rates[pair] * (1 if maker == "alpha" else Fraction(999, 1_000))


class WrittenUsd:
    """Prices by `USD`."""

    def __init__(self, prices: dict[bytes, Decimal]) -> None:
        self.prices = prices

    def value(self, token: bytes, amount: int) -> Decimal | None:
        price = self.prices.get(token)
        return None if price is None else price * amount

    def units(self, token: bytes, amount: int) -> int | None:
        value = self.value(token, amount)
        return None if value is None else int(value.scaleb(USD_DECIMALS))


class WrittenGas:
    """A block and a price of gas; `head` None for a chain that cannot be reached."""

    def __init__(self) -> None:
        self.seen: Header | None = Header(19, b"\x99" * 32, bytes(32), NOW_MS // 1_000, 10**9)

    @property
    def head(self) -> Header:
        if self.seen is None:
            raise ServiceUnavailable("no block of the chain was seen yet")
        return self.seen

    @property
    def fees(self) -> GasFees:
        return GasFees(self.head.base_fee_wei, 10**8)

    @property
    def gas_price_wei(self) -> int:
        return self.fees.base_fee_wei + self.fees.tip_wei


class WillingDesk:
    """Every maker signs exactly what is planned.

    Args:
        sign: an order -> signature.

    Attributes:
        asked: (plan, wanted, user, limit) of each fill.
        claimants: whose share of stock each fill takes.
        improvement_bps: by which makers give more than planned.
        is_silent: they do not sign.
        has_no_share: callers without a key have no share of their stock left.
    """

    def __init__(
        self,
        executor: bytes = EXECUTOR,
        maker: bytes = b"\xd1" * 20,
        sign: Callable[[RfqOrder], bytes] = lambda order: b"\x01" * 65,
        expiry_s: int = NOW_MS // 1_000 + 120,
    ) -> None:
        self.asked: list[tuple[RoutePlan, SwapRequest, bytes, int]] = []
        self.claimants: list[Claimant | None] = []
        self.improvement_bps = 0
        self.is_silent = self.has_no_share = False
        self.stock = StockShares(Ledger(), CHAIN_ID)
        self._executor = executor
        self._maker = maker
        self._sign = sign
        self._expiry_s = expiry_s

    async def fill(
        self,
        plan: RoutePlan,
        wanted: SwapRequest,
        *,
        user: bytes,
        limit: int,
        held: list[HeldQuote],
        claimant: Claimant | None,
        freed: Callable[[], Awaitable[bool]],
        account: str,
    ) -> FirmRoute:
        assert bool(account) == (claimant is None), "a caller has a key, or takes a share"
        self.claimants.append(claimant)
        self.asked.append((plan, wanted, user, limit))
        if self.is_silent:
            raise NoRoute("nobody signs")
        if self.has_no_share and claimant is not None:
            await freed()
            raise RateLimited("nothing left")
        digest32 = len(self.asked).to_bytes(32, "big")
        claim = self.stock.claim(None, MAKERS[0], wanted.dest_token, 1, NOW_MS)
        assert isinstance(claim, StockClaim)
        held.append(HeldQuote(self._expiry_s, self._maker, digest32, ONE, claim))
        sells = plan.side is Side.SELL
        gives = sum(path.hops[0].src_amount for path in plan.paths)
        gets = sum(path.hops[-1].dest_amount for path in plan.paths)
        if gets < limit if sells else gives > limit:
            raise NoRoute("beyond the user's limit")
        hops = tuple(
            FilledHop(
                hop.src_token,
                hop.dest_token,
                0,
                0 if sells else hop.dest_amount,
                tuple(self._signed(hop, share, user) for share in hop.shares),
            )
            for path in plan.paths
            for hop in path.hops
        )
        return FirmRoute(plan.side, gives, gets, hops, self._expiry_s)

    def _signed(self, hop: HopPlan, share: MakerShare, user: bytes) -> SignedFill:
        order = RfqOrder(
            nonce_and_meta=pack_firm(user, secrets.randbits(96)),
            expiry=self._expiry_s,
            maker_asset=hop.dest_token,
            taker_asset=hop.src_token,
            maker=self._maker,
            taker=self._executor,
            maker_amount=share.dest_amount * (BPS_ONE + self.improvement_bps) // BPS_ONE,
            taker_amount=share.src_amount,
        )
        return SignedFill(share.maker, order, self._sign(order))


class TalkingChain:
    """A chain whose answers a test sets: funds of any user, and the outcome of a transaction.

    Attributes:
        left: what the RFQ contract has of orders, by hash, or its error; others it has never seen.
        funds: what owners have and allow, where it is not `tokens` and `allowed`.
        signed: signatures that a contract accepts as its own, by its address.
        permits: what tokens say of permits that they are shown, by the owner; others take none.
        permit2: what Permit2 says of what it is shown; an error refuses it.
        at_permit2: what Permit2 lets the Router take, of anybody.
        code_of: code of contracts; other accounts have none.
        outcome: gas that a transaction needs, or the error that it ends in.
        is_stuck: the chain does not answer.
        is_silent: contracts answer nothing.
        asked: calls of which many were made at once.
        calls: what was simulated or estimated, by the name of the method.
    """

    chain_id = CHAIN_ID

    def __init__(self) -> None:
        self.native = self.tokens = self.allowed = 10**30
        self.left: dict[bytes, int | Exception] = {}
        self.funds: dict[bytes, tuple[int, int]] = {}
        self.signed: dict[bytes, bytes] = {}
        self.permits: dict[bytes, bytes | Exception] = {}
        self.tried: set[bytes] = set()
        self.permit2: bytes | Exception = b""
        self.at_permit2 = 0
        self.code_of: dict[bytes, bytes] = {}
        self.outcome: int | Exception = 200_001
        self.is_stuck = self.is_silent = False
        self.asked: list[EthCall] = []
        self.calls: list[tuple[str, EthCall]] = []

    async def block(self, at: object = None) -> Header:
        if self.is_stuck:
            await trio.sleep_forever()
        return Header(19, b"\x99" * 32, bytes(32), NOW_MS // 1_000, 10**9)

    async def recent_block(self, age_s: float) -> Header:
        return await self.block()

    async def balance(self, address: bytes, at: object = None) -> int:
        return self.native

    async def code(self, address: bytes, at: object = None) -> bytes:
        return self.code_of.get(address, b"")

    async def call_many(self, calls: list[EthCall], at: object = None) -> list[bytes | Exception]:
        self.asked += calls
        return [b"" if self.is_silent else self._answer(call) for call in calls]

    def _answer(self, call: EthCall) -> bytes | Exception:
        asked, first = call.data[:4], call.data[4:36]
        if call.to == PERMIT2:
            if asked == _AT_PERMIT2:
                return uint_word(self.at_permit2) + uint_word(2**48 - 1) + bytes(32)
            return self.permit2
        owner = first[12:]
        balance, allowed = self.funds.get(owner, (self.tokens, self.allowed))
        if asked == BALANCE_OF:
            return balance.to_bytes(32, "big")
        if asked == ALLOWANCE:
            return (10**30 if call.data.endswith(PERMIT2) else allowed).to_bytes(32, "big")
        if asked == REMAINING:
            left = self.left.get(call.data[36:68], 0)
            return left if isinstance(left, Exception) else uint_word(left)
        if asked == SELECTOR4:
            accepted = self.signed.get(call.to)
            is_its_own = accepted is not None and call.data == is_valid_signature_calldata(first, accepted)
            return MAGIC_VALUE4.ljust(32, b"\0") if is_its_own else b""
        if owner not in self.permits:
            return Reverted("no permits here", b"")
        # A permit that is tried behind the same permit, and differs by its last bit, is a forged one.
        if bytes([*call.data[:-1], call.data[-1] ^ 1]) in self.tried:
            return Reverted("forged", b"")
        self.tried.add(call.data)
        return self.permits[owner]

    async def call(self, call: EthCall, at: object = None) -> bytes:
        if call.data == PERMIT2_OF:
            return address_word(PERMIT2)
        self.calls.append(("call", call))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bytes(32)

    async def estimate_gas(self, call: EthCall) -> int:
        self.calls.append(("estimate_gas", call))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Shop(Struct, frozen=True):
    """A place and the desk in front of it.

    Attributes:
        blacklists: by maker.
    """

    place: ServedChain
    desk: MarketDesk
    seal: RouteSeal
    finder: WrittenPrices
    usd: WrittenUsd
    gas: WrittenGas
    firm: WillingDesk
    chain: TalkingChain
    blacklists: dict[str, MakerBlacklist]

    def prices(self, query: str, now_ms: int = NOW_MS) -> PriceRoute:
        """GET /prices."""
        return self.desk.prices(query.encode(), now_ms).price_route

    def quote(self, query: bytes, now_ms: int = NOW_MS) -> PriceRoute:
        """The Market route of GET /v2/quote."""
        places, fees = {CHAIN_ID: self.place}, FeeRules(PARTNERS, TIERS)
        return market_route(places, self.seal, fees, decode_quote_query(query), now_ms)

    async def build(
        self,
        route: PriceRoute,
        body: Mapping[str, Any],
        query: str = "",
        *,
        now_ms: int = NOW_MS,
        chain_id: int = CHAIN_ID,
        asker: Asker = KEYED,
    ) -> TransactionEnvelope | ContractParams:
        """POST /transactions with the route as it came; what `body` says None of is left out."""
        sent = {
            "priceRoute": json.loads(encode(route)),
            "srcToken": route.src_token,
            "destToken": route.dest_token,
            "userAddress": to_checksum(USER),
            **body,
        }
        kept = {name: value for name, value in sent.items() if value is not None}
        raw = json.dumps(kept).encode()
        return await self.desk.transaction(chain_id, query.encode(), raw, now_ms, asker, signatures())


def a_shop(
    chain: Chain | None = None,
    firm: WillingDesk | None = None,
    *,
    market: bool = True,
    tokens: tuple[bytes, bytes, bytes, bytes] = (WETH, USDC, DAI, WBTC),
    at: tuple[bytes, bytes, bytes, bytes, bytes] = (ROUTER, EXECUTOR, RFQ, DELTA, VAULT),
) -> Shop:
    """A shop on a chain that talks, or on another.

    Args:
        tokens: WETH, USDC, DAI, WBTC.
        at: router, executor, RFQ, Delta, fee vault.
    """
    renamed = dict(zip((WETH, USDC, DAI, WBTC), tokens, strict=True))
    rates = {(renamed[src], renamed[dest]): rate for (src, dest), rate in RATES.items()}
    rows = [("WETH", 18, False), ("USDC", 6, True), ("DAI", 18, True), ("WBTC", 8, False)]
    listed = [
        TokenSettings(
            chain_id=CHAIN_ID, address=to_checksum(token), symbol=symbol, decimals=decimals, stable_usd=stable
        )
        for token, (symbol, decimals, stable) in zip(tokens, rows, strict=True)
    ]
    finder, gas = WrittenPrices(rates, renamed[USDC]), WrittenGas()
    usd = WrittenUsd({renamed[token]: price for token, price in USD.items()})
    talking, willing = TalkingChain(), firm or WillingDesk()
    blacklists = {maker: MakerBlacklist(3_600_000) for maker in MAKERS}
    router, executor, rfq, delta, vault = at
    feeds = {
        maker: SimpleNamespace(
            cache=SimpleNamespace(
                blacklist=blacklist, is_withheld=lambda _: False, hidden=lambda *_: frozenset[PairStanding]()
            )
        )
        for maker, blacklist in blacklists.items()
    }
    place = ServedChain(
        chain_id=CHAIN_ID,
        settings=ChainSettings(name="devnet", market=market, rfq=True),
        chain=cast("Chain", chain or talking),
        pulse=Pulse(cast("Chain", chain or talking), lambda: None),
        has_relayer=True,
        router=router,
        executor=executor,
        rfq=rfq,
        delta=delta,
        fee_vault=vault,
        tokens=TokenTable(listed, tokens[0], "ETH"),
        index=PairIndex(),
        usd=cast("Any", usd),
        pathfinder=cast("Any", finder),
        gas=cast("Any", gas),
        desk=cast("Any", willing),
        feeds=cast("Any", feeds),
    )
    seal = RouteSeal([b"key of the seal"])
    desk = MarketDesk({CHAIN_ID: place}, seal, PARTNERS, TIERS, ledger=Ledger(), user_places=USER_PLACES)
    return Shop(place, desk, seal, finder, usd, gas, willing, talking, blacklists)


def a_shop_on(world: World, chain: Any = None, fourth: bytes = b"\x44" * 20) -> Shop:
    """A shop with a world's tokens and contracts, on its chain or on another."""
    at = world.at
    return a_shop(
        world.chain if chain is None else chain,
        tokens=(world.weth, world.usdc, world.dai, fourth),
        at=(at.router, at.executor, at.rfq, at.delta, at.fee_vault),
    )


def listed_on(world: World, odd: bytes | None = None) -> TokenTable:
    """The tokens of a world as a venue lists them.

    Args:
        odd: another token, which takes permits only.
    """
    rows = [(world.weth, "WETH", 18), (world.usdc, "USDC", 6), (world.dai, "DAI", 18)]
    rows += [] if odd is None else [(odd, "ODD", 18)]
    listed = [
        TokenSettings(
            chain_id=CHAIN_ID,
            address=to_checksum(token),
            symbol=symbol,
            decimals=decimals,
            permit_only=token == odd,
        )
        for token, symbol, decimals in rows
    ]
    return TokenTable(listed, world.weth, "ETH")


def _hop(pair: tuple[bytes, bytes], shares: list[MakerShare]) -> HopPlan:
    src, dest = sum(share.src_amount for share in shares), sum(share.dest_amount for share in shares)
    return HopPlan(*pair, src, dest, tuple(shares))


def _parts(amount: int, makers: list[str]) -> list[tuple[str, int]]:
    if len(makers) == 1 or amount < 10:
        return [(makers[0], amount)]
    first = amount * 6 // 10
    return [(makers[0], first), (makers[1], amount - first)]


def _less(amount: int, *taxes_bps: int) -> int:
    for bps in taxes_bps:
        amount = amount * (BPS_ONE - bps) // BPS_ONE
    return amount


def _more(amount: int, *taxes_bps: int) -> int:
    for bps in taxes_bps:
        amount = mul_div_up(amount, BPS_ONE, BPS_ONE - bps)
    return amount
