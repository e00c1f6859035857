"""Decode the results of a node's JSON-RPC methods, and encode the parameters of these methods.

The readers check sizes, hexadecimal, ranges and shapes of each result: a value that passes has the right type
and is within the bounds of config/limits.py.

Every reader takes the JSON of one result and raises no error but InvalidInput, for any bytes.

A quantity may have leading zeros, as some nodes write them.

Source: the Ethereum execution API (JSON-RPC); EIP-1474 (quantities and data); EIP-1898 (a block by its hash).
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from ....codecs.messages.wire import decoder
from ....config import limits
from ....config.errors import InvalidInput
from ....crypto.addresses import ZERO_ADDRESS
from ....crypto.hexadecimal import parse_hex, to_hex
from ..port import At, EthCall, Header, Log, LogFilter, Receipt

_QUANTITY = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")
_TOPICS_MAX = 4

T = TypeVar("T")


class FullHeader(Struct, frozen=True):
    """A block's header with its bloom filter, and with the gas from which the next base fee follows.

    Attributes:
        bloom: bloom filter of the addresses and topics of the block's logs, 256 bytes.
        gas_used, gas_limit: gas that the block used, and its limit, in units.
    """

    header: Header
    bloom: bytes
    gas_used: int
    gas_limit: int


class FeeHistory(Struct, frozen=True):
    """Base fee of the next block, and tip paid in the latest block, in wei per unit of gas.

    Attributes:
        tip_wei: None if the node reports no tip.
    """

    base_fee_wei: int
    tip_wei: int | None


class _RpcBlock(Struct, rename="camel"):
    number: str
    hash: str
    parent_hash: str
    timestamp: str
    logs_bloom: str
    gas_used: str
    gas_limit: str
    base_fee_per_gas: str | None = None


class _Pending(Struct):
    """The pending block that a node would make now; its hash and other fields may be null."""

    number: str
    timestamp: str


class _Log(Struct, rename="camel"):
    address: str
    topics: list[str]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    removed: bool = False


class _Receipt(Struct, rename="camel"):
    transaction_hash: str
    status: str
    block_number: str
    block_hash: str
    transaction_index: str
    gas_used: str
    effective_gas_price: str
    logs: list[_Log]
    contract_address: str | None = None


class _FeeHistory(Struct, rename="camel"):
    base_fee_per_gas: list[str]
    reward: list[list[str]] | None = None


class _Transaction(Struct):
    hash: str


def _reader(kind: type[T]) -> Callable[[bytes], T]:
    return decoder(kind, bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)


_decode_text = _reader(str)
_decode_block: Callable[[bytes], _RpcBlock | None] = _reader(_RpcBlock | None)  # type: ignore[arg-type]
_decode_pending: Callable[[bytes], _Pending | None] = _reader(_Pending | None)  # type: ignore[arg-type]
_decode_logs = _reader(list[_Log])
_decode_receipt: Callable[[bytes], _Receipt | None] = _reader(_Receipt | None)  # type: ignore[arg-type]
_decode_fee_history = _reader(_FeeHistory)
_decode_transaction: Callable[[bytes], _Transaction | None] = _reader(_Transaction | None)  # type: ignore[arg-type]


def quantity(text: str, field: str, most: int = limits.UINT256_MAX) -> int:
    """Parse a JSON-RPC quantity: 0x and 1 to 64 hexadecimal digits.

    Args:
        field: name of the value in errors.
        most: greatest allowed number.

    Raises:
        InvalidInput: the text is no quantity, or the number is above `most`.
    """
    if not _QUANTITY.match(text):
        raise InvalidInput(field=field, expected="0x and 1 to 64 hexadecimal digits", got=text)
    number = int(text, 16)
    if number > most:
        raise InvalidInput(field=field, expected=f"at most {most}", got=text)
    return number


def read_quantity(raw: bytes) -> int:
    """Decode the JSON of a result that is a number from 0 to 2^256 - 1."""
    return quantity(_decode_text(raw), "result")


def read_bytes(raw: bytes) -> bytes:
    """Decode the JSON of a result that is bytes in hexadecimal."""
    return parse_hex(_decode_text(raw), "result")


def read_hash(raw: bytes) -> bytes:
    """Decode the JSON of a result that is 32 bytes in hexadecimal."""
    return _fixed(_decode_text(raw), "result", 32)


def read_block(raw: bytes) -> FullHeader | None:
    """Decode the JSON of a block; None if the node has no such block."""
    block = _decode_block(raw)
    if block is None:
        return None
    base_fee = block.base_fee_per_gas
    return FullHeader(
        Header(
            number=_height(block.number, "number"),
            hash=_fixed(block.hash, "hash", 32),
            parent_hash=_fixed(block.parent_hash, "parentHash", 32),
            time_s=quantity(block.timestamp, "timestamp", limits.CHAIN_TIME_S_MAX),
            base_fee_wei=0 if base_fee is None else quantity(base_fee, "baseFeePerGas"),
        ),
        _fixed(block.logs_bloom, "logsBloom", 256),
        _height(block.gas_used, "gasUsed"),
        _height(block.gas_limit, "gasLimit"),
    )


def read_pending_time(raw: bytes, head: Header) -> int | None:
    """Decode the timestamp of a node's pending block, Unix seconds; None if it cannot follow the head.

    An invalid answer gives None too: many healthy nodes have no pending block. A pending block that follows
    the head is above it, and has no earlier timestamp.
    """
    try:
        pending = _decode_pending(raw)
        if pending is None or _height(pending.number, "number") <= head.number:
            return None
        time_s = quantity(pending.timestamp, "timestamp", limits.CHAIN_TIME_S_MAX)
    except InvalidInput:
        return None
    return time_s if time_s >= head.time_s else None


def read_logs(raw: bytes) -> list[Log]:
    """Decode the JSON of a list of logs, and sort them by block and by index within the block.

    A log marked as removed raises InvalidInput, since it is not on the chain.
    """
    logs = [_log(log) for log in _decode_logs(raw)]
    logs.sort(key=lambda log: (log.block_number, log.log_index))
    for before, after in pairwise(logs):
        if (before.block_number, before.log_index) == (after.block_number, after.log_index):
            place = f"log {after.log_index} of block {after.block_number}"
            raise InvalidInput(f"{place} comes twice")
    return logs


def read_receipt(raw: bytes) -> Receipt | None:
    """Decode the JSON of a transaction's receipt; None if the node has no receipt.

    A log of another transaction or block in the receipt raises InvalidInput.
    """
    receipt = _decode_receipt(raw)
    if receipt is None:
        return None
    status = quantity(receipt.status, "status", 1)
    read = Receipt(
        tx_hash=_fixed(receipt.transaction_hash, "transactionHash", 32),
        succeeded=status == 1,
        block_number=_height(receipt.block_number, "blockNumber"),
        block_hash=_fixed(receipt.block_hash, "blockHash", 32),
        tx_index=_height(receipt.transaction_index, "transactionIndex"),
        gas_used=_height(receipt.gas_used, "gasUsed"),
        gas_price_wei=quantity(receipt.effective_gas_price, "effectiveGasPrice"),
        contract=None
        if receipt.contract_address is None
        else _fixed(receipt.contract_address, "contractAddress", 20),
        logs=tuple(_log(log) for log in receipt.logs),
    )
    for log in read.logs:
        if (log.tx_hash, log.block_hash) != (read.tx_hash, read.block_hash):
            raise InvalidInput("a receipt holds a log of another transaction or block")
    return read


def read_transaction_hash(raw: bytes) -> bytes | None:
    """Decode a waiting or mined transaction's hash from JSON; None if the node has no such transaction."""
    transaction = _decode_transaction(raw)
    return None if transaction is None else _fixed(transaction.hash, "hash", 32)


def read_fee_history(raw: bytes) -> FeeHistory:
    """Decode the JSON of an `eth_feeHistory` result that covers one block.

    The last base fee in the result is that of the block after the covered one.
    """
    history = _decode_fee_history(raw)
    if not history.base_fee_per_gas:
        raise InvalidInput("baseFeePerGas is empty")
    paid = history.reward[0][:1] if history.reward else []
    return FeeHistory(
        quantity(history.base_fee_per_gas[-1], "baseFeePerGas"),
        quantity(paid[0], "reward") if paid else None,
    )


def block_parameter(at: At) -> object:
    """Encode a block as the block parameter of JSON-RPC methods that read state (EIP-1898)."""
    if at is None:
        return "latest"
    if isinstance(at, int):
        return hex(at)
    return {"blockHash": to_hex(at), "requireCanonical": True}


def call_parameter(call: EthCall) -> dict[str, str]:
    """Encode a call as the call parameter of `eth_call` and `eth_estimateGas`."""
    parameter = {"data": to_hex(call.data)}
    if call.to:
        parameter["to"] = to_hex(call.to)
    if call.sender != ZERO_ADDRESS:
        parameter["from"] = to_hex(call.sender)
    if call.value_wei:
        parameter["value"] = hex(call.value_wei)
    if call.gas_max:
        parameter["gas"] = hex(call.gas_max)
    return parameter


def filter_parameter(wanted: LogFilter) -> dict[str, object]:
    """Encode a filter as the parameter of `eth_getLogs`; the caller adds the blocks to search."""
    parameter: dict[str, object] = {}
    if wanted.addresses:
        parameter["address"] = [to_hex(address) for address in wanted.addresses]
    if wanted.topics:
        parameter["topics"] = [[to_hex(topic) for topic in any_of] or None for any_of in wanted.topics]
    return parameter


def _log(log: _Log) -> Log:
    if log.removed:
        raise InvalidInput("a log is marked as removed")
    if len(log.topics) > _TOPICS_MAX:
        raise InvalidInput(field="topics", expected=f"at most {_TOPICS_MAX}", got=len(log.topics))
    return Log(
        address=_fixed(log.address, "address", 20),
        topics=tuple(_fixed(topic, "topics", 32) for topic in log.topics),
        data=parse_hex(log.data, "data"),
        block_number=_height(log.block_number, "blockNumber"),
        block_hash=_fixed(log.block_hash, "blockHash", 32),
        tx_hash=_fixed(log.transaction_hash, "transactionHash", 32),
        tx_index=_height(log.transaction_index, "transactionIndex"),
        log_index=_height(log.log_index, "logIndex"),
    )


def _height(text: str, field: str) -> int:
    """Parse a quantity of at most CHAIN_COUNT_MAX: a block height, an amount of gas, or an index."""
    return quantity(text, field, limits.CHAIN_COUNT_MAX)


def _fixed(text: str, field: str, size: int) -> bytes:
    value = parse_hex(text, field)
    if len(value) != size:
        raise InvalidInput(field=field, expected=f"{size} bytes", got=text)
    return value
