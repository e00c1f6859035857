"""Quote streams over real books: what is quoted is what the first book between the two tokens gives.

venue = a_streaming_venue()
venue.price(WETH, USDC, "2500")
"""

from decimal import Decimal

import msgspec
import trio

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.codecs.messages.market_messages import decode_quote_query
from cambist.config.errors import NoRoute, ServiceUnavailable
from cambist.config.tokens import TokenSettings
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.server import RouteGroup, Router
from cambist.engine.trade.api.routes import encode_trading_error
from cambist.engine.trade.quote.quote_streams import QuoteStreams, StreamedChain
from cambist.engine.trade.routing.tokens import TokenTable
from cambist.engine.trade.served.bridge_lanes import BridgeLanes
from cambist.feeds.books.book import build_book
from cambist.feeds.books.fill import quote_received
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from support.venue.admitting import NOW_MS

CHAIN_ID = 1
WETH, USDC, DAI, WBTC, LINK, AAVE = (bytes([number]) * 20 for number in range(1, 7))
ONE = 10**18
TOKENS = {"WETH": WETH, "USDC": USDC, "DAI": DAI, "WBTC": WBTC, "LINK": LINK, "AAVE": AAVE}
TARGET = (
    f"/v2/quote/stream?chainId={CHAIN_ID}&srcToken=0x{WETH.hex()}&destToken=0x{USDC.hex()}"
    f"&amount={ONE}&srcDecimals=18&destDecimals=18&mode=MARKET&userAddress=0x{'ab' * 20}"
).encode()
"""Target of a stream of quotes: one WETH for USDC, which has 18 decimals here."""


class StreamingVenue:
    """A venue on a chain whose books a test sets.

    Attributes:
        priced: number of quotes that were made.
        padding: bytes that each answer carries besides.
        is_away: no quote can be made.
    """

    def __init__(self, *, streams_max: int, admission: Admission) -> None:
        self.index = PairIndex()
        self.priced = 0
        self.padding = 0
        self.is_away = False
        self.partners: list[str] = []
        tokens = TokenTable(
            [
                TokenSettings(chain_id=CHAIN_ID, address=f"0x{address.hex()}", symbol=symbol, decimals=18)
                for symbol, address in TOKENS.items()
            ],
            b"",
            "ETH",
        )
        self.streams = QuoteStreams(
            self._quote,
            {CHAIN_ID: StreamedChain(self.index, tokens)},
            BridgeLanes({}),
            causer=admission.causer,
            partner_of=admission.partner,
            streams_max=streams_max,
            ledger=Ledger(),
            wall_ms=lambda: NOW_MS + round(trio.current_time() * 1_000),
        )
        self._admission = admission

    def price(self, base: bytes, quote: bytes, bid: str, maker: str = "alpha") -> None:
        """A maker now bids this much for ten of base."""
        book = build_book(PriceGrid(bids=((bid, "10"),), asks=()), 18, 18)
        self.index.put(LiveBook(maker, base, quote, book, Decimal(1_000)))

    def clear(self, base: bytes, quote: bytes, maker: str = "alpha") -> None:
        self.index.drop(maker, base, quote)

    def router(self) -> Router:
        surface = RouteGroup(encode_trading_error)
        surface.coroutine("GET", "/v2/quote/stream", self._admission.coroutine(self.streams.open, 1))
        router = Router(encode_trading_error)
        router.mount(surface)
        return router

    def _quote(self, raw_query: bytes, now_ms: int, partner: str) -> bytes:
        query = decode_quote_query(raw_query)
        self.priced += 1
        self.partners.append(partner)
        if self.is_away:
            raise ServiceUnavailable(f"the last block of the chain was seen before {now_ms}")
        src, dest = (bytes.fromhex(text[2:]) for text in (query.src_token, query.dest_token))
        for live in self.index.between(src, dest).values():
            amount = quote_received(live.book.bids, int(query.amount))
            if amount is not None:
                market = {"srcAmount": query.amount, "destAmount": str(amount), "hmac": f"{now_ms}"}
                return msgspec.json.encode({"market": market, "padding": "x" * self.padding})
        raise NoRoute


def sealed_at_s(event: tuple[str, dict[str, object]]) -> float:
    """Time at which a quote was made, by trio's clock, seconds."""
    market = event[1]["market"]
    assert isinstance(market, dict)
    return (int(market["hmac"]) - NOW_MS) / 1_000


def amount_of(event: tuple[str, dict[str, object]]) -> Decimal:
    """Amount that a quote event promises, in whole tokens."""
    kind, data = event
    assert kind == "quote", event
    market = data["market"]
    assert isinstance(market, dict)
    return Decimal(market["destAmount"]).scaleb(-18)
