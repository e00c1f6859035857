"""Streams of new trades: GET /v2/delta/trades/stream, as server-sent events.

    event: open    id: token   data: OpenMessage     once the stored trades are read
    event: trade   id: token   data: TradeMessage
    : beat         id: token                         in quiet times

A stream has a place on the tape, not a queue: a slow client costs no memory, and one that lags more than
TAPE_ARRIVALS_MAX trades behind goes on with the latest of them. A token is the place of a trade in its chain,
the same at each engine, so that a client may reconnect to any. If a re-organisation moves a trade to a block
that is earlier than the token's while the client is away, the client finds the trade in the list alone.

Source: ARCHITECTURE.md, "Push", "Trades"; WHATWG HTML, "Server-sent events".
Choice: Streams tell nothing of a trade that a re-organisation undoes; if it is mined again, they send it
    again, with its new block.
"""

from collections.abc import Callable, Mapping

import trio
from msgspec import Struct

from ....codecs.messages.event_messages import OpenMessage
from ....codecs.messages.tape_messages import TradeKind, decode_trade_stream_query
from ....codecs.messages.wire import encode
from ....config.errors import UnsupportedChain
from ....config.timeouts import TAPE_BEAT_S
from ...host.admission.ledger import Causer, Hold, Ledger
from ...host.admission.open_streams import OpenStreams
from ...host.server.routing import HttpCall, StreamReply
from ...store.follower import place_of, token_of
from ..events.event_streams import CONTENT_TYPE, HEADERS, LAST_EVENT_ID
from ..events.message import sent_event
from .tape_follower import FollowedTape
from .trade_tape import TapeEntry
from .trades import LogPlace

_ENTRIES_AT_ONCE = 16  # most trades in a piece of a body


class TradeStreamStatistics(Struct, frozen=True):
    """Counts of the streams of trades.

    Attributes:
        streams: number of open streams.
        opened, refused: number of streams opened, and of streams refused by the bounds on open streams.
        trades, beats: number of trades and of comments sent.
    """

    streams: int
    opened: int
    refused: int
    trades: int
    beats: int


class TradeStreams:
    """Streams of new trades of a venue.

    Args:
        tapes: tape of each served chain, by chain id.
        causer: returns the caller whose limits a request counts towards.
        streams_max: greatest number of open streams.
        ledger: ledger in which open streams count.
    """

    def __init__(
        self,
        tapes: Mapping[int, FollowedTape],
        *,
        causer: Callable[[HttpCall], Causer],
        streams_max: int,
        ledger: Ledger,
    ) -> None:
        self._tapes = tapes
        self._causer = causer
        self._open = OpenStreams("streams of trades", streams_max, ledger)
        self._trades = self._beats = 0

    async def open(self, call: HttpCall) -> StreamReply:
        """Answer GET /v2/delta/trades/stream with a new stream of trades.

        Raises:
            InvalidInput: a parameter or the header Last-Event-ID is malformed.
            UnsupportedChain: the venue does not serve the chain.
            RateLimited, ServiceUnavailable: the caller, or all callers together, have too many streams.
        """
        query = decode_trade_stream_query(call.request.query or b"")
        followed = self._tapes.get(query.chain_id)
        if followed is None:
            raise UnsupportedChain(field="chainId", expected="a chain of GET /chains", got=query.chain_id)
        after = None if query.after is None else place_of(query.after)
        last = call.request.fields.get(LAST_EVENT_ID, b"")
        if last:  # overrides `after`, which a reconnecting browser repeats from its first URL
            after = place_of(last.decode("latin-1"), LAST_EVENT_ID.decode())
        stream = _TradeStream(self, followed, query.kind, after, self._open.enter(self._causer(call)))
        self._open.opened += 1
        return StreamReply(content_type=CONTENT_TYPE, headers=HEADERS, pieces=stream, endless=True)

    def statistics(self) -> TradeStreamStatistics:
        """Return the counts of streams, trades and comments."""
        return TradeStreamStatistics(
            len(self._open), self._open.opened, self._open.refused, self._trades, self._beats
        )

    def count(self, trades: int, beats: int) -> None:
        """Count trades and comments that a stream sends to its client."""
        self._trades += trades
        self._beats += beats

    def leave(self, place: Hold) -> None:
        """Remove an ended stream from the count of open streams."""
        self._open.leave(place)


class _TradeStream:
    """An open stream of trades: an async iterator over the encoded server-sent events of its HTTP body.

    Args:
        after: place of the trade after which the stream starts; None to start after the newest trade.
        place: hold that counts the stream for its caller.
    """

    def __init__(
        self,
        streams: TradeStreams,
        followed: FollowedTape,
        kind: TradeKind | None,
        after: LogPlace | None,
        place: Hold,
    ) -> None:
        self._streams = streams
        self._followed = followed
        self._kind = kind
        self._place = place
        self._after = after
        self._token = token_of(*(after or (0, 0)))
        self._number = 0  # of the next arrival, once the stream has begun
        self._unsent: list[TapeEntry] = []
        self._has_begun = False
        self._is_open = True

    def __aiter__(self) -> "_TradeStream":
        return self

    async def __anext__(self) -> bytes:
        """Wait for the next piece to send: the first message, trades, or a comment in quiet times."""
        with trio.move_on_after(TAPE_BEAT_S):
            if not self._has_begun:
                await self._followed.loaded.wait()
                return self._begin()
            return await self._trades()
        self._streams.count(0, 1)
        return b": beat\nid: %b\n\n" % self._token.encode()

    async def aclose(self) -> None:
        """End the stream and remove it from the open streams; a second call has no effect."""
        if self._is_open:
            self._is_open = False
            self._streams.leave(self._place)

    def _begin(self) -> bytes:
        # No await: a trade is either later than the token and on the tape now, or an arrival from here on.
        tape = self._followed.tape
        if self._after is None:
            self._token = token_of(*tape.newest)
        else:
            self._unsent = tape.later(self._after, self._kind)
        self._number = tape.end
        self._has_begun = True
        return sent_event(b"open", self._token, encode(OpenMessage(self._token)))

    async def _trades(self) -> bytes:
        tape = self._followed.tape
        while not self._unsent:
            # The event is taken before the look at the tape: a later arrival sets it.
            arrived = self._followed.arrived()
            self._unsent, self._number = tape.arrived(self._number, self._kind), tape.end
            if not self._unsent:
                await arrived.wait()
        entries, self._unsent = self._unsent[:_ENTRIES_AT_ONCE], self._unsent[_ENTRIES_AT_ONCE:]
        self._token = max(self._token, entries[-1].token)
        self._streams.count(len(entries), 0)
        return b"".join([sent_event(b"trade", entry.token, entry.message) for entry in entries])
