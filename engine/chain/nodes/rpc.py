"""Implementation of the interface `Chain` over JSON-RPC nodes, with checks of every answer.

Each answer is checked against its request. Faults are: another block than the requested one, logs of other
blocks or outside the filter, a head that cannot be read by its hash or that is far behind, an empty answer
for blocks that the node does not have. The error names the node, and the next node gets the request (see
`failover`).

The logs of one block are also checked against the bloom filter of its header. A filter with a possible match
proves nothing: if the node returns no log then, all logs of the block are read, and must account for every
set bit.

A head more than `lag_blocks_max` below the last accepted head is accepted only if no head has been accepted
for NODE_BACK_S, as the chain itself then went back. A head more than `lag_blocks_max` above the last accepted
head, and not its child, is accepted only if another node is about as high, no other node answers, or the
heads of all others stay unchanged for NODE_BACK_S: so a single node with invented blocks does not make the
others count as lagging.

A node that refuses eth_call with a block override gets calls without the override from then on, and its
pending block is not used.

Source: ARCHITECTURE.md, "Chain port"; the Ethereum execution API; EIP-1898; EIP-1559 (the next base fee).
"""

import math
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar

import trio
from msgspec import Struct

from ....codecs.http1 import Http1Limits
from ....config import limits
from ....config.errors import (
    BlockGone,
    ChainError,
    ConfigError,
    LogsRefused,
    RefusalKind,
    Reverted,
    TransactionRefused,
)
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import NODE_BACK_S, NODE_LOOK_S
from ....crypto.hexadecimal import to_hex
from ....crypto.keccak import keccak256
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.streams import client_tls
from ..port import At, EthCall, GasFees, Header, Log, LogFilter, Receipt, Upcoming
from ..reverts import NO_ERRORS, CustomErrors, revert_reason
from ..together import all_of
from . import rpc_values as values
from .failover import Nodes, NodeStatistics, NotDone, Talk, WrongChain, result_of
from .heads import Heads, HeadStatistics
from .json_rpc import AnswerTooLarge, RpcCall, RpcNode, RpcOutcome
from .logs_bloom import bloom_of, covers, may_match
from .rpc_fees import fees_of
from .rpc_wording import (
    RpcError,
    as_revert,
    is_block_unknown,
    is_known_already,
    is_logs_refusal,
    is_parameter_refusal,
    refusal_kind,
)

T = TypeVar("T")

_CONNECTIONS_MAX = 32  # to each node
_CROSS_CHECKS_MAX = 8  # at the same time
_TIP_PERCENTILE = 50


class RpcStatistics(Struct, frozen=True):
    """State and counters of the JSON-RPC client of a chain, at one moment.

    Attributes:
        height: height of the last accepted head; 0 before the first.
        cross_checks: number of blocks whose logs were all read as a check, because the node had returned no
            matching log although the bloom filter of the block's header allows a match.
        nodes: statistics of each node.
        heads: statistics of the subscriptions.
    """

    height: int
    cross_checks: int
    nodes: tuple[NodeStatistics, ...]
    heads: HeadStatistics


class RpcChain:
    """Interface to a chain (`Chain`) over JSON-RPC nodes; `open` creates it."""

    def __init__(
        self, chain_id: int, nodes: Nodes, heads: Heads, settings: NodeSettings, errors: CustomErrors
    ) -> None:
        self._chain_id = chain_id
        self._nodes = nodes
        self._heads = heads
        self._settings = settings
        self._reason = partial(revert_reason, errors=errors)
        self._height = 0
        self._height_at = -math.inf
        self._head = b""  # hash of the last head that was also read by its hash
        self._recent: Header | None = None  # the last accepted head, at `_height_at`
        self._receipts = 0  # number of reads that found receipts
        self._mined = 0  # highest block of a receipt that was read
        self._doubted: dict[str, tuple[float, int]] = {}  # node -> (since, height of the others)
        self._cross_checks = 0
        self._timeless: set[str] = set()  # nodes that execute calls at no other time than the block's

    @classmethod
    @asynccontextmanager
    async def open(
        cls, chain_id: int, settings: NodeSettings, errors: CustomErrors = NO_ERRORS
    ) -> AsyncGenerator[Self]:
        """Context manager: connect to a chain's nodes, until the `with` block ends.

        Args:
            chain_id: the chain to which every node has to belong; an unreachable node is checked later.
            settings: settings of the nodes, with URLs rather than `env:` references.
            errors: custom errors of contracts, by which the reasons of reverts are described.

        Raises:
            ConfigError: a node belongs to another chain.
        """
        field = f"chains.{chain_id}.node"
        jitter = random.SystemRandom().random
        transport = DialTransport(
            tls=client_tls(),
            connections_max=_CONNECTIONS_MAX,
            limits=Http1Limits(body_bytes_max=limits.CHAIN_ANSWER_BYTES_MAX),
        )
        async with transport:
            nodes = Nodes(
                chain_id,
                [
                    RpcNode(transport, url, f"{field}.urls[{at}]", settings.call_s)
                    for at, url in enumerate(settings.urls)
                ],
                jitter,
            )
            try:
                await nodes.check()
            except WrongChain as wrong:
                raise ConfigError(f"{field}.urls", wrong.detail) from None
            heads = Heads(chain_id, settings.ws_urls, jitter)
            async with heads.followed():
                yield cls(chain_id, nodes, heads, settings, errors)

    @property
    def chain_id(self) -> int:
        """The chain's number by EIP-155. See `Chain.chain_id`."""
        return self._chain_id

    def statistics(self) -> RpcStatistics:
        """Return the state and the counters of the nodes and of the subscription to heads."""
        return RpcStatistics(
            self._height, self._cross_checks, self._nodes.statistics(), self._heads.statistics()
        )

    # --- Calls ------------------------------------------------------------------------------------

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """Execute a call and return the data that the contract returns. See `Chain.call`."""

        async def converse(talk: Talk) -> bytes:
            (outcome,) = await talk.outcomes([_eth_call(call, at)])
            returned = self._returned(outcome, at)
            if isinstance(returned, Reverted):
                raise returned
            return returned

        return await self._nodes.ask(converse)

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """Execute many calls at one block. See `Chain.call_many`."""

        async def converse(talk: Talk) -> list[bytes | Exception]:
            block = (await self._latest(talk)).header.hash if at is None else at
            seems_s = None if talk.name in self._timeless else time_s
            outcomes = await talk.outcomes([_eth_call(call, block, seems_s) for call in calls])
            if seems_s is not None and any(map(is_parameter_refusal, outcomes)):
                outcomes = await talk.outcomes([_eth_call(call, block) for call in calls])
                if not any(map(is_parameter_refusal, outcomes)):
                    self._timeless.add(talk.name)
            return [self._returned(outcome, block) for outcome in outcomes]

        return await self._nodes.ask(converse) if calls else []

    async def estimate_gas(self, call: EthCall) -> int:
        """Estimate the gas that a transaction needs, in units. See `Chain.estimate_gas`."""

        async def converse(talk: Talk) -> int:
            (outcome,) = await talk.outcomes([("eth_estimateGas", [values.call_parameter(call), "latest"])])
            if isinstance(outcome, RpcError):
                raise as_revert(outcome, self._reason) or NotDone(outcome, "eth_estimateGas")
            return values.read_quantity(outcome)

        return await self._nodes.ask(converse)

    def _returned(self, outcome: RpcOutcome, at: At) -> bytes | Reverted:
        """Return the data of an `eth_call` outcome, or the error Reverted as a value if the call reverted.

        Raises:
            BlockGone: the node has no block `at`.
            ChainError: the outcome is another error.
        """
        if not isinstance(outcome, RpcError):
            return values.read_bytes(outcome)
        if is_block_unknown(outcome):
            raise _gone(at)
        refusal = as_revert(outcome, self._reason)
        if refusal is None:
            raise NotDone(outcome, "eth_call")
        return refusal

    # --- Transactions -----------------------------------------------------------------------------

    async def send_raw(self, raw: bytes) -> bytes:
        """Send a signed transaction and return its hash. See `Chain.send_raw`.

        The node's error "nonce too low" counts as success if this transaction itself has used the nonce.
        """
        tx_hash = keccak256(raw)

        async def converse(talk: Talk) -> bytes:
            (outcome,) = await talk.outcomes([("eth_sendRawTransaction", [to_hex(raw)])])
            if not isinstance(outcome, RpcError):
                answered = values.read_hash(outcome)
                if answered != tx_hash:
                    raise ChainError(f"took {to_hex(tx_hash)} for {to_hex(answered)}")
                return tx_hash
            # "Already known" counts as success and is looked for first. An error without a known phrase says
            # nothing about the transaction: NotDone has the next node asked.
            kind = None if is_known_already(outcome) else refusal_kind(outcome)
            if is_known_already(outcome) or (
                kind is RefusalKind.NONCE_TOO_LOW and await _knows(talk, tx_hash)
            ):
                return tx_hash
            raise (
                NotDone(outcome, "eth_sendRawTransaction")
                if kind is None
                else TransactionRefused(kind, str(outcome))
            )

        return await self._nodes.ask(converse)

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Read a transaction's receipt; None if the transaction is not mined. See `Chain.receipt`."""

        async def converse(talk: Talk) -> Receipt | None:
            (receipt,) = await _receipts(talk, [tx_hash])
            if receipt is None:
                return None
            block = await _block_at(talk, receipt.block_number)
            return receipt if block is not None and block.header.hash == receipt.block_hash else None

        receipt = await self._nodes.ask(converse)
        self._forget_head_before([receipt])
        return receipt

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        """Read the receipts of several transactions in one batch. See `Chain.receipts`."""
        receipts = await self._nodes.ask(lambda talk: _receipts(talk, tx_hashes)) if tx_hashes else []
        self._forget_head_before(receipts)
        return receipts

    async def knows(self, tx_hash: bytes) -> bool:
        """Whether a node knows a transaction, i.e. it waits to be mined or is mined. See `Chain.knows`."""
        return await self._nodes.ask(lambda talk: _knows(talk, tx_hash))

    async def fees(self) -> GasFees:
        """Read the base fee of the next block, and the tip, per unit of gas. See `Chain.fees`.

        The tip is the node's suggestion, else the median tip of the latest block, else `eth_gasPrice` minus
        the base fee.
        """

        async def converse(talk: Talk) -> GasFees:
            history, suggested, latest, price = await talk.outcomes(
                [
                    ("eth_feeHistory", ["0x1", "latest", [_TIP_PERCENTILE]]),
                    ("eth_maxPriorityFeePerGas", []),
                    ("eth_getBlockByNumber", ["latest", False]),
                    ("eth_gasPrice", []),
                ]
            )
            return fees_of(history, suggested, latest, price)

        return await self._nodes.ask(converse)

    # --- State ------------------------------------------------------------------------------------

    async def nonce(self, address: bytes, at: At = None) -> int:
        """Read the nonce of an account's next transaction. See `Chain.nonce`."""
        return await self._state("eth_getTransactionCount", values.read_quantity, address, at)

    async def balance(self, address: bytes, at: At = None) -> int:
        """Read an account's balance of native tokens, in wei. See `Chain.balance`."""
        return await self._state("eth_getBalance", values.read_quantity, address, at)

    async def code(self, address: bytes, at: At = None) -> bytes:
        """Read the code of the contract at an address. See `Chain.code`."""
        return await self._state("eth_getCode", values.read_bytes, address, at)

    async def _state(self, method: str, read: Callable[[bytes], T], address: bytes, at: At) -> T:
        async def converse(talk: Talk) -> T:
            (outcome,) = await talk.outcomes([(method, [to_hex(address), values.block_parameter(at)])])
            if isinstance(outcome, RpcError) and is_block_unknown(outcome):
                raise _gone(at)
            return read(result_of(outcome, method))

        return await self._nodes.ask(converse)

    # --- Blocks and logs --------------------------------------------------------------------------

    async def block(self, at: At = None) -> Header | None:
        """Read a block's header; None if no node has the block. See `Chain.block`."""

        async def converse(talk: Talk) -> Header:
            block = await self._latest(talk) if at is None else await _block_at(talk, at)
            if block is None:  # this node lacks the block; another may have it
                raise _gone(at)
            return block.header

        try:
            return await self._nodes.ask(converse)
        except BlockGone:
            return None

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        """Read the headers of the blocks at several heights in one batch. See `Chain.headers`."""

        async def converse(talk: Talk) -> list[Header]:
            calls: list[RpcCall] = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
            outcomes = await talk.outcomes(calls)
            found = [_block_of(one, at) for one, at in zip(outcomes, numbers, strict=True)]
            for block, number in zip(found, numbers, strict=True):
                if block is None:  # this node lacks the block; another may have it
                    raise _gone(number)
            return [block.header for block in found if block is not None]

        return await self._nodes.ask(converse) if numbers else []

    async def recent_block(self, age_s: float) -> Header:
        """Return the last accepted head if it is that young, else read the latest block.

        See `Chain.recent_block`.
        """
        found = self._recent
        if found is not None and trio.current_time() - self._height_at <= age_s:
            await trio.lowlevel.checkpoint()
            return found
        return await self._nodes.ask(self._latest_header)

    def _forget_head_before(self, receipts: Sequence[Receipt | None]) -> None:
        """Forget the recent head if a transaction is mined in a later block: who has seen it looks there."""
        mined = max((receipt.block_number for receipt in receipts if receipt is not None), default=None)
        if mined is None:
            return
        self._receipts += 1
        self._mined = max(self._mined, mined)
        if self._recent is not None and mined > self._recent.number:
            self._recent = None

    async def _latest_header(self, talk: Talk) -> Header:
        return (await self._latest(talk)).header

    async def upcoming(self) -> Upcoming:
        """Read the latest block, and the next block's timestamp. See `Chain.upcoming`.

        The timestamp is that of the node's pending block, if its height is above the latest block's.
        """

        async def converse(talk: Talk) -> Upcoming:
            if talk.name in self._timeless:
                return Upcoming(await self._latest_header(talk), None)
            block, (pending,) = await self._latest_with(talk, ("eth_getBlockByNumber", ["pending", False]))
            head = block.header
            return Upcoming(
                head, None if isinstance(pending, RpcError) else values.read_pending_time(pending, head)
            )

        return await self._nodes.ask(converse)

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        """Read the logs that pass a filter in a range of blocks. See `Chain.logs`.

        The same batch of requests reads the header of block `last`, which proves that the node has that
        block.

        Raises:
            BlockGone: no node has block `last`.
        """

        async def converse(talk: Talk) -> list[Log]:
            outcome, head = await talk.outcomes(
                [
                    ("eth_getLogs", [_ranged(wanted, first, last)]),
                    ("eth_getBlockByNumber", [hex(last), False]),
                ]
            )
            if isinstance(outcome, RpcError) and is_logs_refusal(outcome):
                raise LogsRefused(f"blocks {first} to {last}: {outcome}")
            # The header before the logs: a node without block `last` answers with no logs, or with an error.
            block = values.read_block(result_of(head, "eth_getBlockByNumber"))
            if block is None:
                raise _gone(last)
            if block.header.number != last:
                raise ChainError(f"eth_getBlockByNumber: block {block.header.number} for {last}")
            logs = values.read_logs(result_of(outcome, "eth_getLogs"))
            for log in logs:
                if not first <= log.block_number <= last or not wanted.matches(log):
                    raise ChainError(f"eth_getLogs: an unrequested log of block {log.block_number}")
                if log.block_number == last and log.block_hash != block.header.hash:
                    raise ChainError(f"eth_getLogs: two blocks {last}")
            return logs

        try:
            return await self._nodes.ask(converse) if first <= last else []
        except AnswerTooLarge as error:
            raise LogsRefused(error.detail) from None

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """Read the logs of one block that pass a filter. See `Chain.logs_of`.

        Raises:
            BlockGone: the chain does not have the block (any more); the result is never an empty list
                instead.
        """
        (logs,) = await self.logs_of_each(wanted, (block_hash,))
        return logs

    async def logs_of_each(self, wanted: LogFilter, block_hashes: Sequence[bytes]) -> list[list[Log]]:
        """Read the logs of several blocks that pass a filter, in one batch. See `Chain.logs_of_each`.

        Raises:
            BlockGone: as of `logs_of`, for any of the blocks.
        """
        return await self._nodes.ask(lambda talk: self._logs_of_each(talk, wanted, block_hashes))

    async def _logs_of_each(
        self, talk: Talk, wanted: LogFilter, block_hashes: Sequence[bytes]
    ) -> list[list[Log]]:
        calls: list[RpcCall] = []
        for block_hash in block_hashes:
            named = to_hex(block_hash)
            calls.append(("eth_getBlockByHash", [named, False]))
            calls.append(("eth_getLogs", [values.filter_parameter(wanted) | {"blockHash": named}]))
        outcomes = await talk.outcomes(calls)
        found: list[list[Log]] = []
        doubted: list[values.FullHeader] = []
        for block_hash, shown, outcome in zip(block_hashes, outcomes[::2], outcomes[1::2], strict=True):
            block, logs = _logs_in(wanted, block_hash, shown, outcome)
            found.append(logs)
            if not logs and may_match(block.bloom, wanted):
                doubted.append(block)
        await all_of(partial(self._cross_check, talk, wanted), doubted, _CROSS_CHECKS_MAX)
        return found

    async def _cross_check(self, talk: Talk, wanted: LogFilter, block: values.FullHeader) -> None:
        """Check that all logs of a block together set every bit of the bloom filter in the block's header.

        Called if a node returned no log that passes `wanted`, though the bloom filter allows a match.

        Raises:
            ChainError: the logs leave out a bit, or one of them passes `wanted`: the node withheld logs.
        """
        self._cross_checks += 1
        named = to_hex(block.header.hash)
        (outcome,) = await talk.outcomes([("eth_getLogs", [{"blockHash": named}])])
        if isinstance(outcome, RpcError) and is_logs_refusal(outcome):
            return  # too many logs to read: the check proves nothing
        logs = values.read_logs(result_of(outcome, "eth_getLogs"))
        if any(wanted.matches(log) for log in logs) or not covers(bloom_of(logs), block.bloom):
            raise ChainError(f"eth_getLogs: only a part of the logs of block {named}")

    # --- The head ---------------------------------------------------------------------------------

    async def wait_head(self, known: bytes) -> None:
        """Wait until a subscription announces a new head, or a poll every `poll_s` finds one.

        See `Chain.wait_head`. If a later head than `known` was announced already, the first poll is at once.
        As the polled node may not have that head yet, the next poll follows NODE_LOOK_S later; this interval
        doubles with each poll, up to `poll_s`. A failed poll ends the wait without an error: the caller's
        next request raises the error.
        """
        pause_s = 0.0 if self._heads.is_past(known) else self._settings.poll_s
        while True:
            with trio.move_on_after(pause_s):
                await self._heads.other_than(known)
                return
            try:
                header = await self.block()
            except ChainError:
                return
            if header is None or header.hash != known:
                return
            pause_s = min(max(2 * pause_s, NODE_LOOK_S), self._settings.poll_s)

    async def _latest(self, talk: Talk) -> values.FullHeader:
        """Read a node's latest block, as `_latest_with` does."""
        return (await self._latest_with(talk))[0]

    async def _latest_with(self, talk: Talk, *more: RpcCall) -> tuple[values.FullHeader, list[RpcOutcome]]:
        """Read a node's latest block; check that it is readable by hash and near the last accepted head.

        Args:
            more: calls in the same request as that for the latest block; their outcomes are returned, too.

        The node is asked for its latest block, then for the block with that hash. Since a re-organisation may
        remove the block between the two requests, the pair of requests is tried twice.

        Raises:
            ChainError: the block is too far behind, too far ahead, or not readable by its hash.
        """
        missed = b""
        for _ in range(2):
            receipts = self._receipts
            first, *others = await talk.outcomes([("eth_getBlockByNumber", ["latest", False]), *more])
            block = values.read_block(result_of(first, "eth_getBlockByNumber"))
            if block is None:
                raise ChainError("has no latest block")
            header = block.header
            # Compared after the await: other tasks accept heads meanwhile.
            now = trio.current_time()
            behind = self._height - header.number
            if behind > self._settings.lag_blocks_max and now - self._height_at < NODE_BACK_S:
                raise ChainError(f"the latest block is {header.number}, {behind} behind its earlier head")
            ahead = header.number - self._height
            if self._head and ahead > self._settings.lag_blocks_max and header.parent_hash != self._head:
                await self._confirm(talk, header.number, ahead)
            # The last check: `_head` was read by its hash before, so the same head needs no second request.
            if header.hash != self._head:
                had = await _block_at(talk, header.hash)
                if had is None or had.header != header:
                    missed = header.hash
                    continue
            if now >= self._height_at:  # a conversation that began earlier may end later
                self._head, self._height, self._height_at = header.hash, header.number, now
                # A receipt that was read since this look began may be of a later block than the look's.
                # Such a head is accepted, but is not at hand, since `recent_block` goes back behind no read
                # receipt. After a re-organisation `_mined` may be too high: looks that begin later do count.
                is_current = header.number >= self._mined or receipts == self._receipts
                self._recent = header if is_current else None
            return block, others
        raise ChainError(f"names {to_hex(missed)} as its latest block, and does not have it")

    async def _confirm(self, talk: Talk, number: int, ahead: int) -> None:
        """Check a node's latest block, far above the last accepted head, by the latest blocks of other nodes.

        The block passes if no other node answers, if another node is at most `lag_blocks_max` blocks lower,
        or if the highest latest block of the other nodes has not risen for NODE_BACK_S seconds.

        Args:
            number: height of the block.
            ahead: difference to the height of the last accepted head, in blocks, for the error's text.

        Raises:
            ChainError: the block does not pass.
        """
        highest = max(await self._nodes.ask_others(talk.name, _latest_number), default=number)
        if number - highest <= self._settings.lag_blocks_max:
            self._doubted.pop(talk.name, None)
            return
        now = trio.current_time()
        since, before = self._doubted.get(talk.name, (now, highest))
        if highest > before:  # the other nodes go on: the wait begins anew
            since, before = now, highest
        self._doubted[talk.name] = since, before
        if now - since >= NODE_BACK_S:
            return
        beyond = f"{ahead} above the highest seen before, and the other nodes are at {highest} at most"
        raise ChainError(f"the latest block is {number}, {beyond}")


async def _latest_number(talk: Talk) -> int:
    block = values.read_block(await talk.result("eth_getBlockByNumber", "latest", False))  # noqa: FBT003
    if block is None:
        raise ChainError("has no latest block")
    return block.header.number


async def _block_at(talk: Talk, at: bytes | int) -> values.FullHeader | None:
    """Read a block's header, or None if the node does not have the block.

    Raises:
        ChainError: the node answers with another block.
    """
    named = hex(at) if isinstance(at, int) else to_hex(at)
    (outcome,) = await talk.outcomes([(_method_of(at), [named, False])])
    return _block_of(outcome, at)


def _method_of(at: bytes | int) -> str:
    return "eth_getBlockByNumber" if isinstance(at, int) else "eth_getBlockByHash"


def _block_of(outcome: RpcOutcome, at: bytes | int) -> values.FullHeader | None:
    """Decode the node's answer for the block at a height or with a hash. See `_block_at`."""
    method = _method_of(at)
    if isinstance(outcome, RpcError) and is_block_unknown(outcome):
        return None
    block = values.read_block(result_of(outcome, method))
    if block is not None and at not in (block.header.number, block.header.hash):
        named = at if isinstance(at, int) else to_hex(at)
        raise ChainError(f"{method}: block {block.header.number} {to_hex(block.header.hash)} for {named}")
    return block


def _logs_in(
    wanted: LogFilter, block_hash: bytes, shown: RpcOutcome, outcome: RpcOutcome
) -> tuple[values.FullHeader, list[Log]]:
    """Decode the node's answers for the block with a hash, and for its logs that pass a filter.

    Raises:
        BlockGone: the node does not have the block.
        ChainError: the answers are of another block, or hold other logs.
    """
    named = to_hex(block_hash)
    block = values.read_block(result_of(shown, "eth_getBlockByHash"))
    if block is None or (isinstance(outcome, RpcError) and is_block_unknown(outcome)):
        raise _gone(block_hash)
    logs = values.read_logs(result_of(outcome, "eth_getLogs"))
    for log in logs:
        if (log.block_hash, log.block_number) != (block_hash, block.header.number):
            raise ChainError(f"eth_getLogs: logs of block {to_hex(log.block_hash)} for {named}")
        if not wanted.matches(log):
            raise ChainError("eth_getLogs: an unrequested log")
    if block.header.hash != block_hash:
        raise ChainError(f"block {to_hex(block.header.hash)} for {named}")
    return block, logs


async def _receipts(talk: Talk, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
    outcomes = await talk.outcomes([("eth_getTransactionReceipt", [to_hex(key)]) for key in tx_hashes])
    found = [values.read_receipt(result_of(one, "eth_getTransactionReceipt")) for one in outcomes]
    for receipt, tx_hash in zip(found, tx_hashes, strict=True):
        if receipt is not None and receipt.tx_hash != tx_hash:
            raise ChainError(f"the receipt of {to_hex(receipt.tx_hash)} for {to_hex(tx_hash)}")
    return found


async def _knows(talk: Talk, tx_hash: bytes) -> bool:
    found = values.read_transaction_hash(await talk.result("eth_getTransactionByHash", to_hex(tx_hash)))
    if found not in (None, tx_hash):
        raise ChainError(f"another transaction for {to_hex(tx_hash)}")
    return found is not None


def _eth_call(call: EthCall, at: At, time_s: int | None = None) -> RpcCall:
    parameters: list[object] = [values.call_parameter(call), values.block_parameter(at)]
    if time_s is not None:
        parameters += [{}, {"time": hex(time_s)}]  # no state override, one block override
    return "eth_call", parameters


def _ranged(wanted: LogFilter, first: int, last: int) -> dict[str, object]:
    return values.filter_parameter(wanted) | {"fromBlock": hex(first), "toBlock": hex(last)}


def _gone(at: At) -> BlockGone:
    return BlockGone(f"no block {to_hex(at) if isinstance(at, bytes) else at}")
