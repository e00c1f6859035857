"""Client for JSON-RPC 2.0 to one EVM node, in batches.

The node's URL often holds a key: no error, log or repr shows it.

Answers may come in any order; calls missing from a batch's answer are sent once more. After a node refuses
batches, or a batch's size, later batches are smaller, down to single calls.

An unrequested or repeated answer invalidates the whole batch.

Source: JSON-RPC 2.0; the Ethereum execution API (eth_call, eth_getBlockByNumber).
"""

from base64 import b64encode
from collections.abc import Sequence

import httpx
import msgspec

from ....codecs.http1 import Response
from ....codecs.http1.framing import joined
from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import ChainError, ConfigError, InvalidInput, NodeUnavailable
from ....config.sections.endpoint_url import NAMES_PLACE
from ....config.timeouts import NODE_CALL_S, NODE_REST_S_MAX
from ....crypto.hexadecimal import parse_hex, to_hex
from ....feeds.transport.http_client import HttpFailure
from ....feeds.transport.httpx_transport import DialTransport, origin_of
from .rpc_wording import RpcError, is_batch_refusal, is_too_large

RpcCall = tuple[str, list[object]]  # method, parameters
RpcOutcome = bytes | RpcError  # the JSON of a result, or the error in its place

_OVER_RATE = 429
_ANSWER_MIB = limits.CHAIN_ANSWER_BYTES_MAX >> 20
_REFUSES_BATCH = frozenset((400, 404, 405, 413, 415, 422, 501))


class Head(msgspec.Struct, frozen=True):
    """Height, timestamp and hash of a node's latest block.

    Attributes:
        number: height of the block.
        time_s: timestamp of the block, Unix seconds.
        hash: of 32 bytes.
    """

    number: int
    time_s: int
    hash: bytes


class _LatestBlock(msgspec.Struct):
    number: str
    timestamp: str
    hash: str


class _Answer(msgspec.Struct):
    id: int | None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: RpcError | None = None


class AnswerTooLarge(ChainError):
    """A node's answer exceeds CHAIN_ANSWER_BYTES_MAX or the node's limit; a smaller request may succeed."""


class _BatchRefused(ChainError):
    """A node refuses batches of calls, or a batch of this size."""


_decode_answers = decoder(list[_Answer] | _Answer, bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)  # type: ignore[arg-type]
_decode_text = decoder(str, bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)
_decode_block = decoder(_LatestBlock, bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)


class RpcNode:
    """Client for one node behind JSON-RPC.

    Args:
        transport: HTTP transport, which the caller opens and closes, and which bounds the size of answers.
            Requests bypass httpx's client: nodes need no redirects and cookies, and httpx's objects take
            longer than the request itself.
        url: http or https; a user and a password in the URL become basic authentication.
        name: shown in errors instead of the URL.
        call_s: time limit of one request, in seconds.

    Raises:
        ConfigError: the URL is invalid.
    """

    def __init__(self, transport: DialTransport, url: str, name: str, call_s: float = NODE_CALL_S) -> None:
        try:
            place = httpx.URL(url)
        except httpx.InvalidURL:
            raise ConfigError(name, NAMES_PLACE) from None
        self._origin = origin_of(place)
        self._target = place.raw_path
        self._headers = [(b"content-type", b"application/json")]
        if place.userinfo:
            user = b64encode(f"{place.username}:{place.password}".encode())
            self._headers.append((b"authorization", b"Basic " + user))
        self._transport = transport
        self._call_s = call_s
        self._next_id = 1
        self.name = name
        self.batch_max = limits.CHAIN_BATCH_CALLS_MAX
        self.rest_s = 0.0  # the node's Retry-After, when over its rate

    async def outcomes(self, calls: Sequence[RpcCall]) -> list[RpcOutcome]:
        """Send calls, and return for each the JSON of its result or the node's error, in order.

        Raises:
            NodeUnavailable: the node cannot be reached, is late, answers with HTTP status 5xx or is over its
                rate limit.
            ChainError: the answer is no valid JSON-RPC answer to the calls.
        """
        outcomes: list[RpcOutcome] = []
        size = self.batch_max
        is_rule = False  # the node limits its batches; False: only these answers are too large
        while len(outcomes) < len(calls):
            chunk = calls[len(outcomes) : len(outcomes) + size]
            try:
                outcomes += await self._chunk(chunk)
            except (_BatchRefused, AnswerTooLarge) as refused:
                if len(chunk) == 1:
                    raise (
                        refused if isinstance(refused, AnswerTooLarge) else ChainError(refused.detail)
                    ) from None
                size = len(chunk) // 2
                is_rule = isinstance(refused, _BatchRefused)
            else:
                # Kept for later calls only now: this size has got its answers.
                if is_rule:
                    self.batch_max = size
        return outcomes

    async def batch(self, calls: Sequence[RpcCall]) -> list[bytes]:
        """Send calls and return the JSON of their results, in order.

        Raises:
            ChainError: the node gives no valid answer, or answers a call with an error.
        """
        results: list[bytes] = []
        for (method, _), outcome in zip(calls, await self.outcomes(calls), strict=True):
            if isinstance(outcome, RpcError):
                raise ChainError(f"{self.name}: {method}: {outcome}")
            results.append(outcome)
        return results

    async def head(self) -> Head:
        """Read height, timestamp and hash of the node's latest block.

        Raises:
            ChainError: the node gives no valid answer.
        """
        (answer,) = await self.batch([("eth_getBlockByNumber", ["latest", False])])
        try:
            block = _decode_block(answer)
            found = parse_hex(block.hash, "hash of a block")
            return Head(int(block.number, 16), int(block.timestamp, 16), found)
        except (InvalidInput, ValueError):
            raise ChainError(f"{self.name}: not a block: {answer[:80]!a}") from None

    async def call_all(self, calls: Sequence[tuple[bytes, bytes]], block: int) -> list[bytes]:
        """Execute calls by `eth_call`, all at one block, and return their results in order.

        Args:
            calls: (contract of 20 bytes, calldata) of each.
            block: height of the block.

        Raises:
            ChainError: the node gives no valid answer, or a call reverts.
        """
        answers = await self.batch(
            [("eth_call", [{"to": to_hex(to), "data": to_hex(data)}, hex(block)]) for to, data in calls]
        )
        try:
            return [parse_hex(_decode_text(answer), "result of eth_call") for answer in answers]
        except InvalidInput as error:
            raise ChainError(f"{self.name}: {error.detail}") from None

    async def _chunk(self, calls: Sequence[RpcCall]) -> list[RpcOutcome]:
        """Send calls in one request; calls that are missing from the answer are sent once more."""
        found = await self._post(calls)
        if 0 < len(found) < len(calls):
            missing = [at for at in range(len(calls)) if at not in found]
            again = await self._post([calls[at] for at in missing])
            found |= {missing[place]: outcome for place, outcome in again.items()}
        if len(found) < len(calls):
            raise ChainError(f"{self.name}: left {len(calls) - len(found)} of {len(calls)} calls unanswered")
        return [found[at] for at in range(len(calls))]

    async def _post(self, calls: Sequence[RpcCall]) -> dict[int, RpcOutcome]:
        """Send calls in one request; return index of the call -> outcome, for the calls in the answer."""
        # Taken before the await: tasks send at the same time, and no two requests share an id.
        first = self._next_id
        self._next_id += len(calls)
        requests = [
            {"jsonrpc": "2.0", "id": first + at, "method": method, "params": parameters}
            for at, (method, parameters) in enumerate(calls)
        ]
        is_batch = len(calls) > 1
        try:
            response = await self._transport.exchange(
                self._origin,
                b"POST",
                self._target,
                self._headers,
                encode(requests if is_batch else requests[0]),
                deadline_s=self._call_s,
            )
        except httpx.HTTPError as error:
            failure = error.__cause__
            if isinstance(failure, HttpFailure) and failure.is_over_limit:
                raise AnswerTooLarge(f"{self.name}: an answer of more than {_ANSWER_MIB} MiB") from None
            # The error's type alone, and `from None`: its text may hold the URL, and the URL a key.
            raise NodeUnavailable(f"{self.name}: not reached: {type(error).__name__}") from None
        # Before the body, which is no JSON-RPC where a proxy refuses the request or the batch.
        self._check_status(response, is_batch=is_batch)
        try:
            answers = _decode_answers(response.body)
        except InvalidInput as error:
            raise self._odd(response, f"not a JSON-RPC answer: {error.detail}") from None
        return self._sorted(answers, first, len(calls))

    def _check_status(self, response: Response, *, is_batch: bool) -> None:
        status = response.status
        if status == _OVER_RATE:
            after = joined(response.headers).get(b"retry-after", b"")
            self.rest_s = min(float(after), NODE_REST_S_MAX) if after.isdigit() else 0.0
            raise NodeUnavailable(f"{self.name}: over its rate: HTTP status {status}")
        if is_batch and status in _REFUSES_BATCH:
            raise _BatchRefused(f"{self.name}: HTTP status {status}")
        if status >= 500:
            raise NodeUnavailable(f"{self.name}: HTTP status {status}")

    def _odd(self, response: Response, detail: str) -> ChainError:
        if response.status != 200:
            return NodeUnavailable(f"{self.name}: HTTP status {response.status}")
        return ChainError(f"{self.name}: {detail}")

    def _sorted(self, answers: list[_Answer] | _Answer, first: int, count: int) -> dict[int, RpcOutcome]:
        if isinstance(answers, _Answer):
            if count > 1:  # one error for the whole batch
                if answers.error is None:
                    raise ChainError(f"{self.name}: one answer to a batch of {count}")
                raise _BatchRefused(f"{self.name}: {answers.error}")
            answers = [answers]
        found: dict[int, RpcOutcome] = {}
        for answer in answers:
            error = answer.error
            if answer.id is None and error is not None:
                if count == 1:
                    answer.id = first  # the node could not even read the id
                elif is_batch_refusal(error):
                    raise _BatchRefused(f"{self.name}: {error}")
            at = -1 if answer.id is None else answer.id - first
            if not 0 <= at < count or at in found:
                raise ChainError(f"{self.name}: an unrequested or repeated answer")
            found[at] = self._outcome(answer, is_batch=count > 1)
        return found

    def _outcome(self, answer: _Answer, *, is_batch: bool) -> RpcOutcome:
        error = answer.error
        if error is None:
            if isinstance(answer.result, msgspec.UnsetType):
                raise ChainError(f"{self.name}: an answer with neither result nor error")
            return bytes(answer.result)
        if is_batch and is_too_large(error):
            raise AnswerTooLarge(f"{self.name}: {error}")
        if is_batch and is_batch_refusal(error):
            raise _BatchRefused(f"{self.name}: {error}")
        return error

    def __repr__(self) -> str:
        return f"Node({self.name})"
