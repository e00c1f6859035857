"""JSON-RPC filters, which a client polls, and subscriptions, whose changes the node sends over a WebSocket.

Filters and subscriptions read the same list of added and removed blocks ("moves"). A filter is dropped once
its next move is no longer kept; the node closes the socket of a subscription whose next move is no longer
kept.

Pending transactions are those that come into the pool without a gap before their nonce, mined at once or not.

After a re-organisation the logs of removed blocks are reported again, with `removed`.

Source: eth_newFilter and eth_subscribe of the execution API; go-ethereum's pub/sub (removed logs).
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from ....codecs.messages.wire import encode
from ....config import limits
from ....crypto.hexadecimal import to_hex
from ...chain.port import LogFilter
from ..embedded.embedded import EmbeddedChain
from . import parameters as given
from . import rendering
from .facade import Method, Methods, Reads
from .faults import INVALID_PARAMS, REFUSED, RpcFault
from .moves import Lost, Move, Moves

_ID_BITS = 127
_KINDS = ("newHeads", "logs", "newPendingTransactions")


class _Filter(Struct):
    """A client's filter, which the client polls for new logs, new blocks or pending transactions.

    Attributes:
        log_filter: selection of the logs that the client polls for; None if the client polls for others.
        heard: number of the chain's block changes (blocks added or removed), or of the transactions that came
            into the pool, up to the client's last poll.
        is_of_arrivals: whether the client polls for pending transactions.
    """

    log_filter: given.Filter | None
    heard: int
    is_of_arrivals: bool = False


class _Subscription(Struct, frozen=True):
    """A client's subscription to logs or to headers of new blocks.

    Attributes:
        wanted: filter of the logs to send; None to send headers.
        begin: number of the first block change (block added or removed) to send, counted from 0.
    """

    wanted: LogFilter | None
    begin: int


class Filters:
    """JSON-RPC methods by which clients create, poll and remove filters of logs, blocks or transactions."""

    def __init__(self, moves: Moves, chain: EmbeddedChain, reads: Reads) -> None:
        self._moves = moves
        self._arrivals = chain.arrivals
        self._reads = reads
        self._kept: OrderedDict[int, _Filter] = OrderedDict()

    def methods(self) -> Methods:
        """Return the JSON-RPC methods for filters, by name, e.g. `eth_newFilter`."""
        return {
            "eth_newFilter": Method(given.OfLogs, self.new),
            "eth_newBlockFilter": Method(given.Nothing, self.new_of_blocks),
            "eth_newPendingTransactionFilter": Method(given.Nothing, self.new_of_arrivals),
            "eth_getFilterChanges": Method(given.OfFilterId, self.changes),
            "eth_getFilterLogs": Method(given.OfFilterId, self.logs),
            "eth_uninstallFilter": Method(given.OfFilterId, self.remove),
        }

    async def new(self, params: given.OfLogs) -> str:
        """Answer `eth_newFilter`: create a filter of logs; return its id."""
        return self._keep(_Filter(params.filter, await self._moves.catch_up()))

    async def new_of_blocks(self, _: given.Nothing) -> str:
        """Answer `eth_newBlockFilter`: create a filter of new blocks; return its id."""
        return self._keep(_Filter(None, await self._moves.catch_up()))

    async def new_of_arrivals(self, _: given.Nothing) -> str:
        """Answer `eth_newPendingTransactionFilter`: create a filter of transactions; return its id."""
        return self._keep(_Filter(None, self._arrivals.count, is_of_arrivals=True))

    async def changes(self, params: given.OfFilterId) -> list[rendering.Json] | list[str]:
        """Answer `eth_getFilterChanges`: hashes of blocks or transactions, or logs, since the last poll.

        An answer has at most DEVNET_LOGS_MAX logs; further logs are dropped.
        """
        kept = self._found(params.id)
        if kept.is_of_arrivals:
            arrived = self._arrivals.since(kept.heard)
            if arrived is None:
                del self._kept[params.id]
                raise _not_found()
            kept.heard = self._arrivals.count
            return [to_hex(received.tx_hash) for received in arrived]
        count = await self._moves.catch_up()
        try:
            moves = self._moves.since(kept.heard)
        except Lost:
            del self._kept[params.id]
            raise _not_found() from None
        kept.heard = count
        if kept.log_filter is None:
            return [to_hex(move.block.header.hash) for move in moves if not move.is_gone]
        wanted = kept.log_filter.wanted()
        return [log for move in moves for log in logs_of(move, wanted)][: limits.DEVNET_LOGS_MAX]

    async def logs(self, params: given.OfFilterId) -> list[rendering.Json]:
        """Answer `eth_getFilterLogs`: all logs that match a filter, as `eth_getLogs` returns them."""
        kept = self._found(params.id)
        if kept.log_filter is None:
            raise RpcFault(REFUSED, "filter not found: it is of blocks or transactions, not of logs")
        return [rendering.log_json(log) for log in await self._reads.found_logs(kept.log_filter)]

    async def remove(self, params: given.OfFilterId) -> bool:
        """Answer `eth_uninstallFilter`: remove a filter; return whether it existed."""
        return self._kept.pop(params.id, None) is not None

    def _keep(self, made: _Filter) -> str:
        number = secrets.randbits(_ID_BITS)
        self._kept[number] = made
        if len(self._kept) > limits.DEVNET_FILTERS_MAX:
            self._kept.popitem(last=False)
        return hex(number)

    def _found(self, number: int) -> _Filter:
        if number not in self._kept:
            raise _not_found()
        self._kept.move_to_end(number)
        return self._kept[number]


class Subscriptions:
    """JSON-RPC methods by which the client of one WebSocket subscribes to headers, logs and transactions.

    Args:
        send: queues a message for the client; may close the socket of a slow client.
    """

    def __init__(self, moves: Moves, chain: EmbeddedChain, send: Callable[[str], object]) -> None:
        self._moves = moves
        self._chain = chain
        self._send = send
        self._kept: dict[int, _Subscription] = {}
        self._pending: dict[int, bool] = {}  # subscription to pending transactions -> whether whole
        self._heard = moves.count

    def methods(self) -> Methods:
        """Return the JSON-RPC methods `eth_subscribe` and `eth_unsubscribe`, by name."""
        return {
            "eth_subscribe": Method(given.OfSubscription, self.subscribe),
            "eth_unsubscribe": Method(given.OfFilterId, self.unsubscribe),
        }

    async def subscribe(self, params: given.OfSubscription) -> str:
        """Answer `eth_subscribe`: subscribe to headers, logs or pending transactions; return the id."""
        if params.kind not in _KINDS:
            words = f"no {params.kind[:32]!a} subscription: there are {', '.join(_KINDS)}"
            raise RpcFault(INVALID_PARAMS, words)
        if len(self._kept) + len(self._pending) >= limits.DEVNET_SUBSCRIPTIONS_MAX:
            raise RpcFault(REFUSED, f"too many subscriptions: at most {limits.DEVNET_SUBSCRIPTIONS_MAX}")
        number = secrets.randbits(_ID_BITS)
        if params.kind == "newPendingTransactions":
            self._pending[number] = params.filter is True
            return hex(number)
        if params.kind == "logs" and isinstance(params.filter, bool):
            raise RpcFault(INVALID_PARAMS, "invalid argument 1: filter: expected an object, got a boolean")
        log_filter = params.filter if isinstance(params.filter, given.Filter) else given.Filter()
        wanted = None if params.kind == "newHeads" else log_filter.wanted()
        self._kept[number] = _Subscription(wanted, await self._moves.catch_up())
        return hex(number)

    async def unsubscribe(self, params: given.OfFilterId) -> bool:
        """Answer `eth_unsubscribe`: remove a subscription; return whether it existed."""
        return self._kept.pop(params.id, None) is not None or self._pending.pop(params.id, None) is not None

    async def run_pending(self) -> None:
        """Send subscribed transactions as they come into the pool, until cancelled.

        Raises:
            Lost: a transaction that is still to be sent is no longer kept.
        """
        heard = self._chain.arrivals.count
        while True:
            await self._chain.wait_arrival(heard)
            arrived = self._chain.arrivals.since(heard)
            if arrived is None:
                raise Lost
            heard += len(arrived)
            for received in arrived:
                for number, is_whole in self._pending.items():
                    shown = (
                        rendering.transaction_json(received, None) if is_whole else to_hex(received.tx_hash)
                    )
                    self._send_event(number, shown)

    async def run(self) -> None:
        """Send subscribed headers and logs as the chain adds and removes blocks, until cancelled.

        Raises:
            Lost: a block change that is still to be sent is no longer kept.
        """
        while True:
            await self._moves.wait(self._heard)
            self._announce()

    def _announce(self) -> None:
        moves = self._moves.since(self._heard)
        first, self._heard = self._heard, self._moves.count
        for place, move in enumerate(moves, first):
            for number, kept in self._kept.items():
                for result in _announced(move, kept.wanted) if place >= kept.begin else ():
                    self._send_event(number, result)

    def _send_event(self, number: int, result: object) -> None:
        params = {"subscription": hex(number), "result": result}
        self._send(encode({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).decode())


def logs_of(move: Move, wanted: LogFilter) -> list[rendering.Json]:
    """Return the logs of an added or removed block that match a filter, as JSON objects."""
    return [rendering.log_json(log, removed=move.is_gone) for log in move.logs(wanted)]


def _announced(move: Move, wanted: LogFilter | None) -> list[rendering.Json]:
    if wanted is not None:
        return logs_of(move, wanted)
    return [] if move.is_gone else [rendering.header_json(move.block)]


def _not_found() -> RpcFault:
    return RpcFault(REFUSED, "filter not found")
