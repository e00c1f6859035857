"""Limit orders in memory in a sentence, and a watch of prices beside a queue that writes down.

order = a_limit_order(WETH, USDC, ONE[WETH], 2_500 * ONE[USDC])
watch = a_watch(an_index(a_book("alpha", WETH, USDC, bids="2500 10")))
"""

import hashlib
import itertools
from collections.abc import Mapping
from typing import Any, cast

from cambist.codecs.eip712_orders.delta import KIND_BUY, KIND_SELL, SAME_CHAIN, DeltaOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.config.errors import ServiceUnavailable
from cambist.config.tokens import TokenSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.store.rows import DeltaOrderRow, amount32
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import terms_of
from cambist.engine.trade.delta.resting.price_watch import PriceWatch
from cambist.engine.trade.delta.resting.resting_price import RestingPrices
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.books.usd_prices import UsdPrices
from support.makers.live_books import DAI, DECIMALS, USDC, WETH

NOW_MS = 1_795_000_000_000
DELTA_GAS = 150_000
_numbers = itertools.count()


def a_limit_order(
    src: bytes,
    dest: bytes,
    src_amount: int,
    dest_amount: int,
    *,
    buys: bool = False,
    fee_bps: int = 0,
    is_partial: bool = False,
    is_market: bool = False,
) -> LiveOrder:
    """Sells the source for the destination at least, or buys the destination for the source at most."""
    number = next(_numbers)
    order_hash = hashlib.sha256(b"limit order %d" % number).digest()
    fee = PartnerAndFee(b"\x0f" * 20, fee_bps, partner_takes_surplus=False, cap_surplus=False)
    order = DeltaOrder(
        order_hash[:20], order_hash[:20], src, dest, src_amount, dest_amount, 0, 1_900_000_000,
        KIND_BUY if buys else KIND_SELL, number, pack_partner_and_fee(fee) if fee_bps else 0, b"", b"",
        SAME_CHAIN,
    )  # fmt: skip
    row = DeltaOrderRow(
        order_hash, order_hash[0], 1, order_hash[:20], amount32(number), OnChainOrderType.ORDER,
        OrderType.MARKET if is_market else OrderType.LIMIT, Side.BUY if buys else Side.SELL, "anon", NOW_MS,
        1_900_000_000, 2, OrderStatus.ACTIVE, NOW_MS, amount32(0), amount32(0), is_final=False,
    )  # fmt: skip
    document = DeltaDocument("Order", b"{}", bytes(64), partially_fillable=is_partial)
    return LiveOrder(row, order, document, terms_of(order))


class Auctions:
    """Record of the orders that a watch offers, in place of an `AuctionQueue`.

    Attributes:
        offers: the orders, as they came.
        due_in_ms: time until an order is due, from now.
        in_round: hashes of orders that a round is open with.
        anew: orders whose pauses began anew.
    """

    def __init__(self) -> None:
        self.offers: list[LiveOrder] = []
        self.due_in_ms = 0
        self.in_round: set[bytes] = set()
        self.anew: list[bytes] = []
        self.now_ms = NOW_MS

    def offer(self, live: LiveOrder, *, is_due: bool = False) -> None:
        """As `AuctionQueue`."""
        self.offers.append(live)

    def is_joinable(self, order_hash: bytes) -> bool:
        """As `AuctionQueue`."""
        return order_hash not in self.in_round

    def begin_anew(self, order_hash: bytes) -> None:
        """As `AuctionQueue`."""
        self.anew.append(order_hash)

    def due_ms(self, live: LiveOrder) -> int:
        """As `AuctionQueue`."""
        return self.now_ms + self.due_in_ms


class Watched:
    """A watch of prices whose looks are made by hand.

    Attributes:
        now_ms: the watch's clock.
        gas_price_wei: price of gas; None if unknown.
    """

    def __init__(self, index: PairIndex, decimals: Mapping[bytes, int] = DECIMALS) -> None:
        self.index = index
        self.now_ms = NOW_MS
        self.gas_price_wei: int | None = 0
        self.auctions = Auctions()
        tokens = [
            TokenSettings(chain_id=1, address=to_checksum(address), symbol=f"T{at}", decimals=count)
            for at, (address, count) in enumerate(decimals.items())
        ]
        self.prices = RestingPrices(
            Pathfinder(index, WETH),
            UsdPrices(index, decimals, frozenset({USDC, DAI})),
            TokenTable(tokens, WETH, "ETH"),
            DELTA_GAS,
        )
        self.watch = PriceWatch(
            index,
            self.prices,
            cast("Any", self.auctions),
            gas_price_wei=self._gas_price,
            wall_ms=lambda: self.now_ms,
        )
        index.watch(self.watch.book_changed)

    def _gas_price(self) -> int:
        if self.gas_price_wei is None:
            raise ServiceUnavailable("no block of the chain was seen yet")
        return self.gas_price_wei

    def rest(self, *orders: LiveOrder) -> None:
        """Take orders in."""
        for order in orders:
            self.watch.rest_or_queue(order)

    def look(self) -> list[LiveOrder]:
        """Make a look and return the orders that it offered."""
        before = len(self.auctions.offers)
        self.auctions.now_ms = self.now_ms
        for _ in self.watch.look():
            pass
        return self.auctions.offers[before:]

    def pass_ms(self, count: int) -> None:
        """Time passes."""
        self.now_ms += count
        self.auctions.now_ms = self.now_ms
