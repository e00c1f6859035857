"""Classify the errors of nodes by the text of their messages, since nodes use one code for many meanings.

Each kind of error has a table of phrases, which are searched in the message in lower case. For a refused
transaction, the first matching row of the table decides. The text of a contract's revert is not searched,
since the contract wrote it. The tables hold the phrases of geth, erigon, nethermind, besu, reth and anvil,
of the chains' own forks of geth, and of the large providers.

    fault                       consequence for the call
    over the rate limit         next node; cool-down of this node
    the call is refused         Reverted, TransactionRefused, LogsRefused: no other node is asked
    no such block               BlockGone, once all nodes agree: a lagging node lacks the block
    internal error (-32603)     next node; cool-down of this node
    another error               next node

Source: EIP-1474 (codes); the nodes' own sources.
"""

from collections.abc import Callable

import msgspec

from ....codecs.messages.wire import decoder
from ....config import limits
from ....config.errors import InvalidInput, RefusalKind, Reverted
from ....crypto.hexadecimal import parse_hex

DETAIL_CHARS_MAX = 200


class RpcError(msgspec.Struct, frozen=True):
    """A JSON-RPC error in a node's answer to a call.

    Attributes:
        code: a code of JSON-RPC, of EIP-1474, or the node's own.
        message: the node's error text.
        data: JSON, such as the return data of a revert; may be empty.
    """

    code: int
    message: str = ""
    data: msgspec.Raw = msgspec.Raw()

    def __str__(self) -> str:
        return f"{self.code} {self.message[:DETAIL_CHARS_MAX]}"


_INTERNAL = -32603
_PARAMETERS = -32602

_RATE_CODES = frozenset((429, -32005, -32016, -32029, -32097))
_RATE_WORDS = (
    "rate limit", "too many requests", "request limit", "compute units", "capacity", "throttle", "quota",
)  # fmt: skip

_LARGE_WORDS = ("response too large", "response size", "response is too big")

_BATCH_WORDS = (
    "batch too large", "batch size", "batch limit", "batch request", "batch is not", "batching",
    "batches are not", "batch not", "batch call", "too many requests in batch", "requests in a batch",
)  # fmt: skip

_LOGS_WORDS = (
    "query returned more than", "block range", "range is too", "range too", "range limit", "ranges over",
    "limited to", "too many blocks", "too many logs", "too many results", "timed out", "timeout",
    "deadline exceeded", "max results", "exceed maximum", "reduce the",
)  # fmt: skip

_GONE_WORDS = (
    "unknown block", "block not found", "header not found", "header for hash not found",
    "resource not found", "not canonical", "not currently canonical", "could not be found",
)  # fmt: skip

_AHEAD_WORDS = (
    "blockoutofrange", "after last accepted block", "invalid block range", "beyond current head",
)  # fmt: skip

_REVERT_CODE = 3
_REVERT_WORDS = (
    "execution reverted", "reverted", "revert", "vm execution error", "vm exception", "evm error",
    "invalid opcode", "invalidfeopcode", "out of gas", "outofgas", "gas required exceeds", "invalid jump",
    "stack underflow", "stack overflow", "stack limit", "bad instruction", "opcode 0xfe", "halted",
    "intrinsic gas", "insufficient funds", "insufficient balance", "exceeds allowance",
    "execution error", "call depth", "write protection", "max code size", "invalid code",
)  # fmt: skip

_QUOTING = (
    "execution reverted",
    "reverted",
    "revert",
    "vm exception",
    "error: vm exception",
    "vm execution error",
)

_KNOWN_WORDS = (
    "already known", "alreadyknown", "already imported", "already exists", "known transaction",
    "with same hash",
)  # fmt: skip

_REFUSALS: tuple[tuple[str, RefusalKind], ...] = (
    ("replacement", RefusalKind.UNDERPRICED),
    ("replace existing", RefusalKind.UNDERPRICED),
    ("nonce too low", RefusalKind.NONCE_TOO_LOW),
    ("oldnonce", RefusalKind.NONCE_TOO_LOW),
    ("nonce is too low", RefusalKind.NONCE_TOO_LOW),
    ("nonce too high", RefusalKind.NONCE_TOO_HIGH),
    ("noncegap", RefusalKind.NONCE_TOO_HIGH),
    ("too distant from current sender nonce", RefusalKind.NONCE_TOO_HIGH),
    ("insufficient funds", RefusalKind.FUNDS),
    ("insufficientfunds", RefusalKind.FUNDS),
    ("insufficient balance", RefusalKind.FUNDS),
    ("upfront cost exceeds", RefusalKind.FUNDS),
    ("sender doesn't have enough funds", RefusalKind.FUNDS),
    ("less than block base fee", RefusalKind.FEE_TOO_LOW),
    ("fee too low", RefusalKind.FEE_TOO_LOW),
    ("feetoolow", RefusalKind.FEE_TOO_LOW),
    ("gas price too low", RefusalKind.FEE_TOO_LOW),
    ("gas price below", RefusalKind.FEE_TOO_LOW),
    ("gas price is less than basefee", RefusalKind.FEE_TOO_LOW),
    ("underpriced", RefusalKind.FEE_TOO_LOW),
    ("intrinsic gas", RefusalKind.GAS),
    ("intrinsicgas", RefusalKind.GAS),
    ("gas limit", RefusalKind.GAS),
    ("gaslimit", RefusalKind.GAS),
    ("floor data gas", RefusalKind.GAS),
    ("gas uint64 overflow", RefusalKind.GAS),
    ("gasuintoverflow", RefusalKind.GAS),
    ("exceeds the configured cap", RefusalKind.INVALID),
    ("fee cap exceeded", RefusalKind.INVALID),
    ("max priority fee per gas higher than max fee", RefusalKind.INVALID),
    ("max priority fee per gas exceeds max fee", RefusalKind.INVALID),
    ("invalid sender", RefusalKind.INVALID),
    ("invalid signature", RefusalKind.INVALID),
    ("signed for another chain", RefusalKind.INVALID),
    ("chain id", RefusalKind.INVALID),
    ("chainid", RefusalKind.INVALID),
    ("invalid transaction", RefusalKind.INVALID),
    ("transaction type", RefusalKind.INVALID),
    ("typed transaction", RefusalKind.INVALID),
    ("oversized", RefusalKind.INVALID),
    ("initcode", RefusalKind.INVALID),
    ("rlp", RefusalKind.INVALID),
    ("decode", RefusalKind.INVALID),
    ("negative value", RefusalKind.INVALID),
    ("sender not an eoa", RefusalKind.INVALID),
    ("replay-protected", RefusalKind.INVALID),
)  # fmt: skip

_decode_data = decoder(object, bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)


def is_over_rate(fault: RpcError) -> bool:
    """Whether the error says that the node's rate limit is exceeded.

    Code -32005 is ambiguous: nodes also use the code to refuse log queries and batches, and besu uses it to
    refuse transactions. Errors whose texts tell of such a refusal therefore do not count.
    """
    if is_logs_refusal(fault) or is_batch_refusal(fault) or refusal_kind(fault) is not None:
        return False
    return fault.code in _RATE_CODES or _node_says(fault, _RATE_WORDS)


def is_batch_refusal(fault: RpcError) -> bool:
    """Whether the error refuses batches of calls, or the size of this batch."""
    return _node_says(fault, _BATCH_WORDS)


def is_too_large(fault: RpcError) -> bool:
    """Whether the error says that the answer is larger than the node's limit."""
    return _node_says(fault, _LARGE_WORDS)


def is_logs_refusal(fault: RpcError) -> bool:
    """Whether the error says that the range of a log query, or its result, is too large for the node."""
    return _node_says(fault, _LOGS_WORDS + _LARGE_WORDS) and not _node_says(fault, _AHEAD_WORDS)


def is_block_unknown(fault: RpcError) -> bool:
    """Whether the error says that the node does not have the requested block on its chain."""
    return _node_says(fault, _GONE_WORDS) or _node_says(fault, _AHEAD_WORDS)


def is_internal(fault: RpcError) -> bool:
    """Whether the error is the node's own internal error (code -32603)."""
    return fault.code == _INTERNAL


def is_parameter_refusal(outcome: object) -> bool:
    """Whether an outcome is an error about the call's parameters, such as a parameter unknown to the node."""
    if not isinstance(outcome, RpcError) or is_block_unknown(outcome):
        return False
    return outcome.code == _PARAMETERS or _node_says(outcome, ("too many arguments",))


def is_known_already(fault: RpcError) -> bool:
    """Whether the error says that the node already has the transaction sent to it."""
    return _says(fault, _KNOWN_WORDS) and not _says(fault, ("unknown",))


def refusal_kind(fault: RpcError) -> RefusalKind | None:
    """Kind of the node's refusal of a transaction; None if the error's text has none of the known phrases."""
    said = fault.message.lower()
    return next((kind for words, kind in _REFUSALS if words in said), None)


def revert_data(fault: RpcError) -> bytes | None:
    """Extract the return data of a contract's revert from an error; None if the error is no revert.

    Nodes put the data into `data`, into `data.data`, behind a word in `data` ("Reverted 0x..."), or leave it
    out, which gives empty bytes.
    """
    said = _decoded(fault.data)
    if isinstance(said, dict):
        said = said.get("data", said.get("result"))
    text = said.split(" ")[-1] if isinstance(said, str) else ""
    is_revert = fault.code == _REVERT_CODE or _says(fault, _REVERT_WORDS)
    if not is_revert and not (isinstance(said, str) and said.lower().startswith("revert")):
        return None
    try:
        return parse_hex(text, "data")
    except InvalidInput:
        return b""


def as_revert(fault: RpcError, decode: Callable[[bytes], str]) -> Reverted | None:
    """Convert a node's error to the revert of a contract; None if the error is no revert.

    Args:
        decode: return data of the revert -> its reason as text; empty without a reason.
    """
    data = revert_data(fault)
    if data is None:
        return None
    reason = decode(data) if data else _after_colon(fault.message)
    return Reverted(reason, data)


def _after_colon(message: str) -> str:
    """Extract the reason of a revert from a message: "too late" of "execution reverted: too late".

    A message without "revert", such as "out of gas", is its own reason.
    """
    head, _, tail = message.partition("revert")
    if not tail and head == message:
        return message[:DETAIL_CHARS_MAX]
    return tail.removeprefix("ed").lstrip(": ").strip()[:DETAIL_CHARS_MAX]


def _decoded(data: msgspec.Raw) -> object:
    try:
        return _decode_data(bytes(data)) if bytes(data) else None
    except InvalidInput:
        return None


def _node_says(fault: RpcError, words: tuple[str, ...]) -> bool:
    """Whether the message has any of the phrases; False for a revert, whose text is the contract's."""
    quotes = fault.code == _REVERT_CODE or fault.message.lower().startswith(_QUOTING)
    return not quotes and _says(fault, words)


def _says(fault: RpcError, words: tuple[str, ...]) -> bool:
    said = fault.message.lower()
    return any(word in said for word in words)
