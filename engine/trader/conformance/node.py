"""Queries to a chain's node about a maker: contract code, EIP-1271 signatures, balances and allowances.

The queries are JSON-RPC. A malformed answer raises ChainError, and so does an error that is no revert, such
as a time-out: such an answer says nothing about the maker.

Source: Ethereum JSON-RPC; EIP-20; EIP-1271.
"""

from collections.abc import Sequence

import msgspec

from ....codecs.contracts.abi import address_word, decode_uint, selector
from ....codecs.messages.wire import decoder
from ....config.errors import ChainError, InvalidInput
from ....config.limits import CHAIN_ANSWER_BYTES_MAX
from ....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.nodes.rpc_wording import RpcError, revert_data
from .exchange import read_json
from .probe import Probe

_DECIMALS = selector("decimals()")
_BALANCE = selector("balanceOf(address)")
_ALLOWANCE = selector("allowance(address,address)")


class ProbedNode:
    """JSON-RPC client of a chain's node, over the harness's HTTP client. Addresses are 20 bytes."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._id = 0

    async def chain_id(self) -> int:
        """Query the chain id by eth_chainId."""
        answer = await self._call("eth_chainId", [])
        try:
            return int(str(answer), 16)
        except ValueError:
            raise ChainError(f"eth_chainId: not a number: {answer!r}") from None

    async def has_code(self, address: bytes) -> bool:
        """Whether an address holds contract code, by eth_getCode."""
        return bool(await self._bytes("eth_getCode", [to_hex(address), "latest"]))

    async def decimals(self, token: bytes) -> int | None:
        """Query decimals() of a token contract; None if the call reverts or its result is no number."""
        try:
            return decode_uint(await self._eth_call(token, _DECIMALS))
        except (_CallReverted, InvalidInput):
            return None

    async def balance(self, token: bytes, owner: bytes) -> int:
        """Query the owner's balance of a token, in raw units."""
        return await self._uint(token, _BALANCE + address_word(owner))

    async def allowance(self, token: bytes, owner: bytes, spender: bytes) -> int:
        """Query the amount of a token that the spender may take from the owner, in raw units."""
        return await self._uint(token, _ALLOWANCE + address_word(owner) + address_word(spender))

    async def accepts(self, contract: bytes, digest32: bytes, signature: bytes) -> bool:
        """Whether a contract accepts a signature of a digest by EIP-1271; False if the call reverts."""
        try:
            returned = await self._eth_call(contract, is_valid_signature_calldata(digest32, signature))
        except _CallReverted:
            return False
        return is_magic_answer(returned)

    async def _uint(self, contract: bytes, calldata: bytes) -> int:
        try:
            return decode_uint(await self._eth_call(contract, calldata))
        except InvalidInput:
            raise ChainError(f"{to_hex(contract)}: the token's answer is no number") from None

    async def _eth_call(self, contract: bytes, calldata: bytes) -> bytes:
        return await self._bytes("eth_call", [{"to": to_hex(contract), "data": to_hex(calldata)}, "latest"])

    async def _bytes(self, method: str, params: Sequence[object]) -> bytes:
        try:
            return parse_hex(await self._call(method, params), method)
        except InvalidInput as error:
            raise ChainError(f"node: {error.detail}") from None

    async def _call(self, method: str, params: Sequence[object]) -> object:
        self._id += 1
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        answer = await self._probe.send("POST", self._probe.place.path or "/", body)
        document = read_json(answer.body).value if answer.succeeded else None
        if not isinstance(document, dict):
            raise ChainError(f"node: {method}: {answer.said}")
        if "error" not in document:
            return document.get("result")
        detail = f"node: {method}: {document['error']}"
        try:
            fault = _decode_refusal(answer.body).error
        except InvalidInput:
            raise ChainError(detail) from None
        raise ChainError(detail) if revert_data(fault) is None else _CallReverted(detail)


class _Refusal(msgspec.Struct):
    error: RpcError


_decode_refusal = decoder(_Refusal, bytes_max=CHAIN_ANSWER_BYTES_MAX)


class _CallReverted(ChainError):
    """Error: the called contract reverted."""
