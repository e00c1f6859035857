"""GET /v2/delta/trades, its stream, and GET /stats: a venue's latest trades and their statistics, public.

An answer is bytes that were encoded once: a list until the tape changes, statistics until the tape changes or
TAPE_STATISTICS_S seconds have passed. No request reads the store.

Source: ARCHITECTURE.md, "Trades".
Choice: Trades are public, without their owners and orders: the chain shows both to everybody who looks.
"""

from collections.abc import Hashable, Mapping

from ....codecs.messages.event_messages import OpenMessage
from ....codecs.messages.tape_messages import (
    TradeMessage,
    TradesQuery,
    TradeStatistics,
    TradeStatisticsQuery,
    TradeStreamQuery,
    decode_trade_statistics_query,
    decode_trades_query,
)
from ....codecs.messages.wire import encode
from ....config.errors import UnsupportedChain
from ....config.timeouts import TAPE_STATISTICS_S
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from ..events.event_streams import CONTENT_TYPE
from .tape_follower import FollowedTape
from .trade_streams import TradeStreams
from .trade_tape import TradeTape

_COST = 5
_ANSWERS_MAX = 32  # kept encoded lists of a chain
_STATISTICS_MS = int(TAPE_STATISTICS_S * 1_000)


class _Answers:
    """Encoded answers about one tape, kept until the tape changes or a time has passed."""

    def __init__(self, tape: TradeTape) -> None:
        self.tape = tape
        self._version = -1
        self._kept: dict[Hashable, bytes] = {}
        self._statistics = b""
        self._statistics_until_ms = 0

    def trades(self, query: TradesQuery, now_ms: int) -> bytes:
        """Return the encoded list of trades."""
        self._look(now_ms)
        key = query.kind, query.limit
        answer = self._kept.get(key)
        if answer is None:
            if len(self._kept) >= _ANSWERS_MAX:
                self._kept.clear()
            entries = self.tape.listed(query.kind, query.limit)
            answer = self._kept[key] = b"[%b]" % b",".join([entry.message for entry in entries])
        return answer

    def statistics(self, now_ms: int) -> bytes:
        """Return the encoded statistics."""
        self._look(now_ms)
        if not self._statistics or now_ms >= self._statistics_until_ms:
            self._statistics = encode(self.tape.statistics(now_ms))
            self._statistics_until_ms = now_ms + _STATISTICS_MS
        return self._statistics

    def _look(self, now_ms: int) -> None:
        self.tape.forget(now_ms)
        if self.tape.version != self._version:
            self._version = self.tape.version
            self._kept.clear()
            self._statistics = b""


class TapeEndpoints:
    """HTTP endpoints of a venue's trades: the latest ones, a stream of new ones, and their statistics.

    Args:
        tapes: tape of each served chain, by chain id.
        streams: streams of new trades.
    """

    def __init__(self, tapes: Mapping[int, FollowedTape], streams: TradeStreams) -> None:
        self._streams = streams
        self._answers = {chain_id: _Answers(followed.tape) for chain_id, followed in tapes.items()}

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints, as rows of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/v2/delta/trades",
                plain=self._trades,
                group="Trades",
                summary="The latest trades of a chain, the latest first",
                detail="Settlements of Delta orders and swaps by the Router of the last 24 hours, without "
                "owners and orders.",
                query=TradesQuery,
                answer=tuple[TradeMessage, ...],
            ),
            Endpoint(
                method="GET",
                path="/v2/delta/trades/stream",
                coroutine=self._streams.open,
                cost=_COST,
                group="Trades",
                summary="Trades of a chain, pushed as they are mined",
                detail="Server-sent events: `open` with a token, then a `trade` for each, and a comment with "
                "a token after every 15 seconds without a trade. A client that reconnects with its last "
                "token, as `after` or `Last-Event-ID`, gets every later trade, at most the latest 1,000.",
                query=TradeStreamQuery,
                content_type=CONTENT_TYPE,
                events={"open": OpenMessage, "trade": TradeMessage},
            ),
            Endpoint(
                method="GET",
                path="/stats",
                plain=self._statistics,
                group="Trades",
                summary="Statistics of a chain's trades of the last 24 hours",
                detail="Volume, medians, makers, agents and hours. Values in US dollars are of the moment "
                "when the venue first saw each trade. At most 20,000 trades count, the latest ones.",
                query=TradeStatisticsQuery,
                answer=TradeStatistics,
            ),
        )

    def _trades(self, call: HttpCall) -> Reply:
        query = decode_trades_query(call.request.query or b"")
        return Reply(200, self._of(query.chain_id).trades(query, call.now_ms))

    def _statistics(self, call: HttpCall) -> Reply:
        query = decode_trade_statistics_query(call.request.query or b"")
        return Reply(200, self._of(query.chain_id).statistics(call.now_ms))

    def _of(self, chain_id: int) -> _Answers:
        """Return the answers about a chain.

        Raises:
            UnsupportedChain: the venue does not serve the chain.
        """
        answers = self._answers.get(chain_id)
        if answers is None:
            raise UnsupportedChain(field="chainId", expected="a chain of GET /chains", got=chain_id)
        return answers
