"""JSON-RPC 2.0 to an EVM node, in batches.

The node's URL often holds a key: it is in no error, log or repr.

Source: JSON-RPC 2.0; the Ethereum execution API (eth_call, eth_getBlockByNumber).
"""

from collections.abc import Sequence

import httpx
import msgspec

from ...codecs.wire import decoder, encode
from ...config import limits
from ...config.errors import ChainError, InvalidInput
from ...crypto.hexadecimal import parse_hex, to_hex

BATCH_CALLS_MAX = 100

Call = tuple[str, list[object]]  # method, parameters


class Head(msgspec.Struct, frozen=True):
    """The latest block.

    Attributes:
        number: its height.
        time_s: its timestamp, Unix seconds.
    """

    number: int
    time_s: int


class _Block(msgspec.Struct):
    number: str
    timestamp: str


class _Fault(msgspec.Struct):
    code: int
    message: str = ""


class _Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Fault | None = None


_decode_answers = decoder(list[_Answer], bytes_max=limits.MAKER_JSON_BYTES_MAX)
_decode_text = decoder(str, bytes_max=limits.MAKER_JSON_BYTES_MAX)
_decode_block = decoder(_Block, bytes_max=limits.MAKER_JSON_BYTES_MAX)


class Node:
    """One node.

    Args:
        client: its time-outs bound every call; its owner closes it.
        url: http or https.
        name: shown in errors instead of the URL.
    """

    def __init__(self, client: httpx.AsyncClient, url: str, name: str) -> None:
        self._client = client
        self._url = url
        self._name = name

    async def batch(self, calls: Sequence[Call]) -> list[bytes]:
        """The results of calls, as the JSON they came in, in order.

        Raises:
            ChainError: the node cannot be reached, refuses a call, or answers something else.
        """
        results: list[bytes] = []
        for start in range(0, len(calls), BATCH_CALLS_MAX):
            results += await self._post(calls[start : start + BATCH_CALLS_MAX])
        return results

    async def head(self) -> Head:
        """The latest block.

        Raises:
            ChainError: as `batch`.
        """
        (answer,) = await self.batch([("eth_getBlockByNumber", ["latest", False])])
        try:
            block = _decode_block(answer)
            return Head(int(block.number, 16), int(block.timestamp, 16))
        except (InvalidInput, ValueError):
            raise ChainError(f"{self._name}: not a block: {answer[:80]!a}") from None

    async def call_all(self, calls: Sequence[tuple[bytes, bytes]], block: int) -> list[bytes]:
        """`eth_call` for each (contract of 20 bytes, calldata) at one block.

        Raises:
            ChainError: as `batch`; a revert too.
        """
        answers = await self.batch(
            [("eth_call", [{"to": to_hex(to), "data": to_hex(data)}, hex(block)]) for to, data in calls]
        )
        try:
            return [parse_hex(_decode_text(answer), "result of eth_call") for answer in answers]
        except InvalidInput as error:
            raise ChainError(f"{self._name}: {error.detail}") from None

    async def _post(self, calls: Sequence[Call]) -> list[bytes]:
        body = encode(
            [
                {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
                for number, (method, parameters) in enumerate(calls)
            ]
        )
        try:
            response = await self._client.post(
                self._url, content=body, headers={"content-type": "application/json"}
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ChainError(f"{self._name}: not reached: {type(error).__name__}") from None
        if response.status_code != 200:
            raise ChainError(f"{self._name}: HTTP status {response.status_code}")
        try:
            answers = {answer.id: answer for answer in _decode_answers(response.content)}
            return [self._result(answers.get(number), method) for number, (method, _) in enumerate(calls)]
        except InvalidInput as error:
            raise ChainError(f"{self._name}: not a batch's answer: {error.detail}") from None

    def _result(self, answer: _Answer | None, method: str) -> bytes:
        if answer is None or answer.error is not None or isinstance(answer.result, msgspec.UnsetType):
            said = f"{answer.error.code} {answer.error.message}" if answer and answer.error else "no result"
            raise ChainError(f"{self._name}: {method}: {said}")
        return bytes(answer.result)

    def __repr__(self) -> str:
        return f"Node({self._name})"
