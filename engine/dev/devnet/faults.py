"""JSON-RPC errors of a devnet: the codes of JSON-RPC 2.0, with geth's texts, which clients look for.

    -32700 -32600 -32601 -32602 -32603    defined by JSON-RPC
    3          a contract reverted; `data` holds the revert data
    4, 5       a sent transaction is in no block yet, or waits for a lower nonce; `data` is its hash
    -32000     any other refusal of the chain
    -32003     the answer would be too large
    -32005     more logs match than one answer may have
    4902       a wallet does not know the chain (EIP-3326)

Source: JSON-RPC 2.0, section 5.1; EIP-1474; EIP-7966 (4 and 5); go-ethereum
    (core/error.go, core/txpool/errors.go).
"""

from ....codecs.transactions import decode_transaction
from ....config import limits
from ....config.errors import BlockGone, ChainError, InvalidInput, RefusalKind, Reverted, TransactionRefused
from ....crypto.hexadecimal import to_hex

PARSE_ERROR, INVALID_REQUEST, METHOD_UNKNOWN, INVALID_PARAMS, INTERNAL = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
REVERTED, REFUSED, TOO_LARGE, LOGS_TOO_MANY = 3, -32000, -32003, -32005
NOT_MINED, NOT_EXECUTABLE = 4, 5
UNKNOWN_CHAIN = 4902

_WORDS = {
    RefusalKind.NONCE_TOO_LOW: "nonce too low",
    RefusalKind.NONCE_TOO_HIGH: "nonce too high",
    RefusalKind.UNDERPRICED: "replacement transaction underpriced",
    RefusalKind.FEE_TOO_LOW: "max fee per gas less than block base fee",
    RefusalKind.FUNDS: "insufficient funds for gas * price + value",
    RefusalKind.INVALID: "invalid transaction",
}


class RpcFault(Exception):
    """Error of a JSON-RPC call, which the node returns to the client.

    Attributes:
        code: JSON-RPC error code, e.g. -32602 for invalid parameters.
        message: text for people, and for clients that search it for known words.
        data: JSON value with details, e.g. revert data; None for an error without details.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def fault_of(error: ChainError) -> RpcFault:
    """Convert an error of the embedded chain to a JSON-RPC error with geth's code and text."""
    if isinstance(error, Reverted):
        if error.reason and not error.data:  # the EVM halted; no contract returned revert data
            is_gas = error.reason == "out of gas"
            return RpcFault(REFUSED, error.reason if is_gas else f"EVM error: {error.reason}")
        words = f"execution reverted: {error.reason}" if error.reason else "execution reverted"
        return RpcFault(REVERTED, words, to_hex(error.data))
    if isinstance(error, TransactionRefused):
        words = _WORDS.get(error.kind, error.kind.value)
        return RpcFault(REFUSED, f"{words}: {error.said}" if error.said else words)
    if isinstance(error, BlockGone):
        return RpcFault(REFUSED, f"header for hash not found: {error.detail}")
    return RpcFault(REFUSED, error.detail)


def refusal_of(raw: bytes, error: TransactionRefused) -> RpcFault:
    """Convert the embedded chain's refusal of a signed transaction to a JSON-RPC error with geth's text.

    Args:
        raw: the refused transaction, signed and encoded.
    """
    if error.kind is RefusalKind.GAS:
        gas = decode_transaction(raw).transaction.gas
        is_much = gas > limits.EMBEDDED_BLOCK_GAS
        words = "exceeds block gas limit" if is_much else "intrinsic gas too low"
        return RpcFault(REFUSED, f"{words}: {error.said}")
    return fault_of(error)


def known_already() -> RpcFault:
    """Create the JSON-RPC error for a sent transaction that already waits for a block."""
    return RpcFault(REFUSED, "already known")


def unreadable(error: InvalidInput) -> RpcFault:
    """Create the JSON-RPC error for a request body that is not valid JSON."""
    return RpcFault(PARSE_ERROR, f"parse error: {error.detail}")
