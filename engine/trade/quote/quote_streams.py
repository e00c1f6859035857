"""GET /v2/quote/stream: the quote of GET /v2/quote, repeated whenever a relevant book changes it.

    event: quote    data: the answer of GET /v2/quote   first, when its amounts have changed, and at each beat
    event: error    data: the error body                the quote cannot be priced now; the stream goes on
    : beat                                              at a beat, the quote still cannot be priced

A beat comes after QUOTE_STREAM_BEAT_S without an event. A change of the books marks the streams that it may
concern, at most every QUOTE_STREAM_LOOK_S; a marked stream is priced once its client has received the last
piece. Each sent quote is thus the newest, and no queue builds up for a slow client. Streams are priced one at
a time, and other tasks run in between: many streams slow down only each other.

A changed book matters to a quote stream if its pair can lie on a path of at most 4 tokens between both ends.
A quote across chains follows the books of its origin: a changed fee of a bridge comes with the next beat.

Source: ARCHITECTURE.md, "Push"; WHATWG HTML, "Server-sent events".
Choice: A wrong parameter of a quote stream is answered as by GET /v2/quote; a missing route is an event, not
    a 400.
Choice: An unchanged quote is sent anew every QUOTE_STREAM_BEAT_S with a fresh seal, so that a client's newest
    quote can always be built.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import msgspec
import trio
from msgspec import UNSET, Struct, UnsetType

from ....codecs.messages.market_messages import QuoteQuery, QuoteResponse, decode_quote_query
from ....codecs.messages.resource_messages import TradingError
from ....config.errors import CambistError, ChainError, NoRoute, ServiceUnavailable, UnsupportedChain
from ....config.timeouts import QUOTE_STREAM_BEAT_S, QUOTE_STREAM_LOOK_S
from ....feeds.books.pair_index import PairIndex
from ...host.admission.ledger import Causer, Hold, Ledger
from ...host.admission.open_streams import OpenStreams
from ...host.server.routing import HttpCall, StreamReply
from ..api.routes import Endpoint, encode_trading_error
from ..events.event_streams import CONTENT_TYPE, HEADERS
from ..routing.tokens import TokenTable
from ..served.bridge_lanes import BridgeLanes

# `Quotes.body`: raw query, now_ms, default partner -> the body of GET /v2/quote; raises its errors
QuoteEncoder = Callable[[bytes, int, str], bytes]

_BEAT = b": beat\n\n"
_COST = 5  # a stream is priced again and again
_MARKED_AT_ONCE = 32  # streams that are checked between two checkpoints


class StreamedChain(Struct, frozen=True):
    """A chain for which the venue streams quotes.

    Attributes:
        index: live books by pair of tokens.
        tokens: the chain's listed tokens.
    """

    index: PairIndex
    tokens: TokenTable


class QuoteStreamStatistics(Struct, frozen=True):
    """Counters of the quote streams.

    Attributes:
        streams: open streams.
        opened, refused: streams opened so far, and streams refused because too many were open.
        quotes, errors, beats: number of quotes, errors and heartbeats sent so far.
    """

    streams: int
    opened: int
    refused: int
    quotes: int
    errors: int
    beats: int


class _Amount(Struct):
    amount: str


class _Leg(Struct):
    input: _Amount
    output: _Amount


class _Route(Struct):
    origin: _Leg
    destination: _Leg


class _Delta(Struct):
    route: _Route


class _Market(Struct, rename="camel"):
    src_amount: str
    dest_amount: str


class _QuotedAmounts(Struct):
    """Amounts of an encoded quote, which are compared with the previous quote's amounts."""

    delta: _Delta | UnsetType = UNSET
    market: _Market | UnsetType = UNSET


_decode_amounts = msgspec.json.Decoder(_QuotedAmounts).decode


class _Changes:
    """Records the token pairs of one chain whose books change, and marks the quote streams to price again.

    Args:
        index: the chain's live books; reports each change.
        woken: function that is called after each recorded change.

    Attributes:
        streams: the chain's open quote streams.
    """

    def __init__(self, index: PairIndex, woken: Callable[[], None]) -> None:
        self.streams: set[_Stream] = set()
        self._index = index
        self._woken = woken
        self._pairs: set[tuple[bytes, bytes]] = set()
        index.watch(self._note)

    async def mark(self) -> None:
        """Mark each stream whose quote the changed books may affect, so that it is priced again.

        The recorded changes are cleared.
        """
        pairs, self._pairs = self._pairs, set()
        partners: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for base, quote in pairs:
            partners[base].add(quote)
            partners[quote].add(base)
        for number, stream in enumerate(tuple(self.streams), 1):
            if not stream.is_marked and any(
                self._concerns(stream.src, dest, partners) for dest in stream.dests
            ):
                stream.mark()
            if not number % _MARKED_AT_ONCE:
                await trio.lowlevel.checkpoint()

    def _note(self, base: bytes, quote: bytes) -> None:
        """Record a pair of tokens whose books have changed, unless the chain has no open stream."""
        if self.streams:
            self._pairs.add((base, quote))
            self._woken()

    def _concerns(self, src: bytes, dest: bytes, partners: Mapping[bytes, set[bytes]]) -> bool:
        if src in partners or dest in partners:
            return True
        near_src, near_dest = self._index.neighbours(src), self._index.neighbours(dest)
        tokens = near_src if len(near_src) < len(partners) else partners
        return any(
            not partners[token].isdisjoint(near_dest)
            for token in tokens
            if token in near_src and token in partners
        )


class QuoteStreams:
    """Streams of GET /v2/quote/stream of a venue; the method `run` has to run as a background task.

    Args:
        quote: returns the response body of GET /v2/quote.
        chains: streamed chains by chain id.
        bridges: lanes between the chains.
        causer: returns the caller whose limits a request counts towards.
        partner_of: returns the partner of a request's API key, used if the query names none; empty for none.
        streams_max: greatest number of open streams.
        ledger: ledger in which open streams count.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        quote: QuoteEncoder,
        chains: Mapping[int, StreamedChain],
        bridges: BridgeLanes,
        *,
        causer: Callable[[HttpCall], Causer],
        partner_of: Callable[[HttpCall], str],
        streams_max: int,
        ledger: Ledger,
        wall_ms: Callable[[], int],
    ) -> None:
        self._quote = quote
        self._chains = chains
        self._bridges = bridges
        self._causer = causer
        self._partner_of = partner_of
        self._wall_ms = wall_ms
        self._changed = trio.Event()
        self._changes = {chain_id: _Changes(chain.index, self._wake) for chain_id, chain in chains.items()}
        self._open = OpenStreams("quote streams", streams_max, ledger)
        self._pricing = trio.Lock()
        self._sent: Counter[str] = Counter()

    async def run(self) -> None:
        """Mark quote streams for pricing as books change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()  # before `mark`, which awaits: a change meanwhile sets the new event
            for changes in self._changes.values():
                await changes.mark()
            await trio.sleep(QUOTE_STREAM_LOOK_S)

    async def open(self, call: HttpCall) -> StreamReply:
        """Answer GET /v2/quote/stream with a new stream of quotes.

        Raises:
            RateLimited, ServiceUnavailable: the caller, or all callers together, have too many streams.
            RequestError: a parameter is wrong.
        """
        query = decode_quote_query(call.request.query or b"")
        src, dests = self._ends(query)
        place = self._open.enter(self._causer(call))
        # No await until `try`: a place that no stream holds would never be left.
        partner = self._partner_of(call)
        stream = _Stream(self, self._changes[query.chain_id], call, src, dests, place, partner)
        try:
            await stream.begin()
        except BaseException:
            await stream.aclose()
            raise
        self._open.opened += 1
        return StreamReply(content_type=CONTENT_TYPE, headers=HEADERS, pieces=stream, endless=True)

    def statistics(self) -> QuoteStreamStatistics:
        """Return the counts of open, opened and refused streams, and of messages sent, by kind."""
        return QuoteStreamStatistics(
            len(self._open),
            self._open.opened,
            self._open.refused,
            self._sent["quote"],
            self._sent["error"],
            self._sent["beat"],
        )

    def leave(self, place: Hold) -> None:
        """Remove an ended stream from the count of open streams."""
        self._open.leave(place)

    def count(self, kind: str) -> None:
        """Count a message that a stream sends to its client.

        Args:
            kind: `quote`, `error` or `beat` (heartbeat).
        """
        self._sent[kind] += 1

    async def price(self, stream: "_Stream") -> bytes:
        """Compute the present body of GET /v2/quote for a stream, once no other stream is being priced.

        Raises:
            CambistError: the quote cannot be priced.
        """
        async with self._pricing:
            # No await in between: a later change of the books marks the stream again, so none is missed.
            stream.unmark()
            return self._quote(stream.raw_query, self._wall_ms(), stream.partner)

    def _wake(self) -> None:
        self._changed.set()

    def _ends(self, query: QuoteQuery) -> tuple[bytes, frozenset[bytes]]:
        """Return the address of a query's source token, and of the tokens that makers swap this token to.

        A quote on one chain swaps to the destination token alone, a quote across chains to the tokens that
        bridges take. The wrapped token stands for a native token, since makers' books name only wrapped ones.

        Raises:
            UnsupportedChain: the venue streams no quotes for the chain.
            InvalidToken, TokenNotSupported: a token is invalid or not listed.
            NoRoute: decimals in the query are wrong, or no lane leads to the destination chain.
        """
        chain = self._chains.get(query.chain_id)
        if chain is None:
            raise UnsupportedChain(field="chainId", expected="a chain of GET /chains", got=query.chain_id)
        src = chain.tokens.find(query.src_token, "srcToken", query.src_decimals)
        if query.is_crosschain:
            return src.routed, frozenset(lane.origin.routed for lane in self._bridges.wanted(query))
        dest = chain.tokens.find(query.dest_token, "destToken", query.dest_decimals)
        return src.routed, frozenset({dest.routed})


class _Stream:
    """An open quote stream: an async iterator over the encoded server-sent events of its HTTP body.

    The stream counts as open from its creation to `aclose`.

    Attributes:
        raw_query: the parameters of GET /v2/quote.
        partner: default partner of the request's API key, used if the parameters name no partner.
        src: address of the source token; the wrapped token in place of the native one.
        dests: addresses of the tokens that the source is swapped to on its chain; native tokens as in `src`.
        is_marked: whether the books may have changed the stream's quote since the last pricing.
    """

    def __init__(
        self,
        streams: QuoteStreams,
        changes: _Changes,
        call: HttpCall,
        src: bytes,
        dests: frozenset[bytes],
        place: Hold,
        partner: str,
    ) -> None:
        self.raw_query = call.request.query or b""
        self.partner = partner
        self.src, self.dests = src, dests
        self.is_marked = False
        self._streams = streams
        self._changes = changes
        self._request_id = call.request_id
        self._place = place
        self._marked = trio.Event()
        self._first: bytes | None = None
        self._last: tuple[str, ...] = ()
        self._is_open = True
        changes.streams.add(self)

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> bytes:
        """Wait for the next message to send: a quote, an error, or a heartbeat.

        After QUOTE_STREAM_BEAT_S seconds without a message, the stream repeats its quote, or sends a comment
        as heartbeat if the quote still cannot be priced.
        """
        if self._first is not None:
            piece, self._first = self._first, None
            return piece
        beat_at = trio.current_time() + QUOTE_STREAM_BEAT_S
        while True:
            with trio.move_on_at(beat_at) as waiting:
                await self._marked.wait()
            event = await self._event(anew=waiting.cancelled_caught)
            if event is not None:
                return event
            if waiting.cancelled_caught:
                self._streams.count("beat")
                return _BEAT

    async def begin(self) -> None:
        """Price the stream's quote for the first time, before the answer starts.

        Raises:
            RequestError: the request itself is wrong; a missing price becomes an event of the stream.
        """
        self._first = await self._event(refuse=True)

    def mark(self) -> None:
        """Record that changed books may have changed the quote, so that the stream prices it again."""
        self.is_marked = True
        self._marked.set()

    def unmark(self) -> None:
        """Record that the quote is being priced now, from the present books."""
        self.is_marked, self._marked = False, trio.Event()

    async def aclose(self) -> None:
        """End the stream and remove it from the open streams; a second call has no effect."""
        if self._is_open:
            self._is_open = False
            self._changes.streams.discard(self)
            self._streams.leave(self._place)

    async def _event(self, *, refuse: bool = False, anew: bool = False) -> bytes | None:
        """Price the stream's quote and return it, or the error of pricing, as a server-sent event.

        Args:
            refuse: whether to raise an error that the request itself causes, instead of sending it as an
                event.
            anew: whether to return the quote even if its amounts equal those of the last event.

        Returns:
            The event; None if the quote's amounts, or the type of error, equal those of the last event.
        """
        try:
            body = await self._streams.price(self)
            kind, content = "quote", _amounts(body)
        except CambistError as error:
            if refuse and not isinstance(error, NoRoute | ServiceUnavailable | ChainError):
                raise
            kind, content = "error", (type(error).__name__,)  # its text may change all the time
            body = encode_trading_error(error, self._request_id)
        if content == self._last and not (anew and kind == "quote"):
            return None
        self._last = content
        self._streams.count(kind)
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), body)


def _amounts(body: bytes) -> tuple[str, ...]:
    """Return (`market` or `delta`, source amount, destination amount) of an encoded quote.

    Two quotes with equal results count as unchanged. The result is empty for a body without a price.
    """
    quote = _decode_amounts(body)
    market, delta = quote.market, quote.delta
    if market is not UNSET:
        return "market", market.src_amount, market.dest_amount
    if delta is not UNSET:
        route = delta.route
        return "delta", route.origin.input.amount, route.destination.output.amount
    return ()


def stream_endpoints(streams: QuoteStreams) -> tuple[Endpoint, ...]:
    """Return the HTTP endpoint GET /v2/quote/stream, as a row of the route table."""
    return (
        Endpoint(
            method="GET",
            path="/v2/quote/stream",
            coroutine=streams.open,
            cost=_COST,
            group="Quotes",
            summary="The quote, sent again at each change",
            detail="Server-sent events: `quote` with the answer of GET /v2/quote, every 15 seconds "
            "without a change, and `error` with an error body while it cannot be priced.",
            query=QuoteQuery,
            content_type=CONTENT_TYPE,
            events={"quote": QuoteResponse, "error": TradingError},
        ),
    )
