"""The errors of cambist, in one tree; `errors.json` is generated from the request rows.

    CambistError
    ├── RequestError          the caller's fault; one subclass per row of the catalogue, with its HTTP status
    │   ├── InvalidInput      a field, parameter or document is malformed or out of range
    │   ├── InvalidSignature, NoRoute, OrderExpired, ...
    │   └── HttpFault         the bytes form no acceptable request: framing, size, method, path
    ├── AuthError             a request is not authenticated: header and reason; never the secret
    ├── MakerError            a remote market maker's fault
    │   └── AnswerOverLimit   its answer is larger than we accept
    ├── BridgeError           a bridge's API gives no usable answer
    ├── VenueError            a remote venue's fault, or its refusal: status, errorType, details, requestId
    │   └── UnsafeTransaction  a payload to sign differs from the request: the member at fault
    ├── ChainError            a node or a transaction failed
    │   ├── Reverted          a contract refused: its reason, decoded, and its data
    │   ├── TransactionRefused  a node did not take a transaction: the kind of reason
    │   ├── NotMined          a transaction was not mined in time, and may still be
    │   ├── NodeUnavailable   no node answers in time
    │   ├── BlockGone         the chain does not have a block of this hash (any more)
    │   ├── LogsRefused       a node refuses so wide a range of logs
    │   └── NodeContradiction   a node's answers contradict each other: the kind of fault
    ├── StoreError            a write or read of the store failed
    │   └── StoreUnavailable  the store is away, full or read-only: the write is not acknowledged; retry later
    │       └── StoreFull     the queue of writes is full: the write is not queued; retry later
    ├── WebSocketClosed       either side closed the socket: code and reason
    ├── OfferDeclined         a caller's function declined a trade's terms: nothing was signed
    ├── TradeFailed           a trade failed after something was signed: its verdict and hashes
    ├── PolicyError           a key was asked to sign what its policy forbids
    ├── TransitionError       a life cycle was asked for a step its table does not have: our bug
    └── ConfigError           the operator's settings, keys or files

A pure decoder raises `InvalidInput` for data of any origin; the driver that read the data from a maker or a
node turns this error into a MakerError or a ChainError.

Source: spec 1.25, 2.14, 3.12.
Choice: An error has a status and an `errorType` also where the specification shows none; an unauthenticated
    request is 401.
"""

from enum import Enum
from typing import Any, ClassVar

from .error_root import CambistError as CambistError  # noqa: PLC0414 - handed on
from .error_root import RequestError as RequestError  # noqa: PLC0414
from .error_text import shown
from .request_errors import *  # noqa: F403 - one tree, one name space


class AuthError(CambistError):
    """A request is not authenticated.

    The class is a row of the error catalogue, although it is no RequestError. The error text starts with the
    name of the header at fault.

    Attributes:
        header: the header at fault, e.g. `X-AUTH-TIMESTAMP`.
    """

    status: ClassVar[int] = 401
    error_type: ClassVar[str] = "Unauthorized"
    messages: ClassVar[tuple[str, ...]] = (
        "X-AUTH-DOMAIN",
        "X-AUTH-ACCESS-KEY",
        "X-AUTH-TIMESTAMP",
        "X-AUTH-SIGNATURE",
    )
    endpoint: ClassVar[str] = "market maker endpoints, agents"
    cause: ClassVar[str] = "a header is missing, unknown, stale, or does not fit the signed request"
    fix: ClassVar[str] = "sign method, path with query, and body exactly as sent; see docs/guides/tools.md"

    def __init__(self, header: str, reason: str) -> None:
        super().__init__(f"{header}: {reason}")
        self.header = header
        self.reason = reason


class MakerError(CambistError):
    """A remote market maker's fault: no answer, a late answer, or a breach of the interface (spec 3)."""


class AnswerOverLimit(MakerError):
    """The body of a remote server's answer is larger than the client accepts."""


class BridgeError(CambistError):
    """A bridge's API gave no answer, or an answer that cannot be used."""


class VenueError(CambistError):
    """A remote venue refused a request, gave no answer, or gave an unusable answer.

    Attributes:
        status: HTTP status of the answer; 0 without an answer.
        error_type, details, request_id: members of the answer's body; empty where it has none.
    """

    def __init__(
        self, detail: str, *, status: int = 0, error_type: str = "", details: str = "", request_id: str = ""
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.error_type = error_type
        self.details = details
        self.request_id = request_id


class UnsafeTransaction(VenueError):
    """A price, transaction or order of a venue differs from the request, and is not signed.

    Attributes:
        member: name of the member at fault, in the answer or the calldata.
    """

    def __init__(self, member: str, expected: object, got: object) -> None:
        super().__init__(f"not signed: {member}: expected {expected}, got {shown(got)}")
        self.member = member
        self.expected = expected
        self.got = got


class WebSocketClosed(CambistError):
    """A WebSocket is closed or closing.

    Attributes:
        code: close code of the first close frame; 1006 if the connection ended without a close frame.
        reason: text of the close frame, or the cause of the connection's end.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the WebSocket is closed: {code}{' ' if reason else ''}{reason}")
        self.code = code
        self.reason = reason


class ChainError(CambistError):
    """A node or a transaction failed; subclasses name the kind of failure."""


class Reverted(ChainError):
    """A contract refused a call.

    Attributes:
        reason: text of `Error(string)`, `Panic(17)`, a custom error with its arguments, or empty.
        data: raw bytes that the contract returned.
    """

    def __init__(self, reason: str, data: bytes = b"") -> None:
        super().__init__(f"reverted: {reason}" if reason else "reverted without a reason")
        self.reason = reason
        self.data = data


class RefusalKind(Enum):
    """Kinds of reasons for which a node refuses a transaction."""

    NONCE_TOO_LOW = "nonce too low"
    NONCE_TOO_HIGH = "nonce too high"
    UNDERPRICED = "replacement transaction underpriced"
    FEE_TOO_LOW = "max fee per gas less than block base fee"
    FUNDS = "insufficient funds"
    GAS = "gas limit out of bounds"
    INVALID = "invalid transaction"


class TransactionRefused(ChainError):
    """A node refused to take a transaction.

    Attributes:
        kind: kind of reason, e.g. a fee that is too low.
        said: the node's text of the reason; may be empty.
    """

    def __init__(self, kind: RefusalKind, detail: str = "") -> None:
        super().__init__(f"{kind.value}: {detail}" if detail else kind.value)
        self.kind = kind
        self.said = detail


class NotMined(ChainError):
    """A signed transaction was not mined in time; it may still be mined later.

    Attributes:
        said: why the node did not take the transaction at the last attempt; empty if the node took it.
    """

    def __init__(self, tx_hash: bytes, within_s: float, said: str) -> None:
        ended = f"0x{tx_hash.hex()} was not mined in {within_s:.0f} s; it may still be"
        super().__init__(f"{ended}: {said}" if said else ended)
        self.said = said


class NodeUnavailable(ChainError):
    """No node answers in time: each is unreachable, late, failing (5xx), rate-limited or cooling down."""


class BlockGone(ChainError):
    """The chain has no block of this hash; a re-organisation may have removed it."""


class LogsRefused(ChainError):
    """A node refuses to list the logs of so many blocks at once; a query of fewer blocks may succeed."""


class NodeFault(Enum):
    """Kinds of contradictions between answers of chain nodes."""

    LAGGING = "lagging"
    NO_BLOCK = "no block"
    WRONG_BLOCK = "wrong block"
    WRONG_PARENT = "wrong parent"
    FOREIGN_LOG = "foreign log"
    LOGS_DIFFER = "logs differ"
    LOGS_MISSING = "logs missing"
    NO_RECEIPT = "no receipt"


class NodeContradiction(ChainError):
    """Answers of chain nodes contradict each other. A repeated query may give answers that agree.

    Attributes:
        fault: kind of contradiction.
    """

    def __init__(self, fault: NodeFault, detail: str) -> None:
        super().__init__(f"{fault.value}: {detail}")
        self.fault = fault


class StoreError(CambistError):
    """A read or write of the store failed: our bug or a damaged store; subclasses have other causes."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, is read-only or its disk is full. The write is not acknowledged.

    Attributes:
        retry_after_s: seconds to wait before a retry.
    """

    def __init__(self, detail: str, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class StoreFull(StoreUnavailable):
    """The store's queue of writes is full. The refused write has no effect; retry later."""


class OfferDeclined(CambistError):
    """The function that a trader passed in to judge a trade declined its terms; nothing was signed."""


class TradeFailed(CambistError):
    """A trade did not succeed after something was signed: it reverted, or its end is not known.

    Attributes:
        verdict: a TradeVerdict (`engine.trader.client.outcome`). REVERTED: the transaction was mined without
            effect. UNKNOWN: the transaction or the order may still take effect, so a trader looks at it
            before another trade.
        tx_hash: hash of the transaction in hexadecimal; empty if the trade has none.
        order_hash: hash of the order in hexadecimal; empty if no order was signed.
        outcome, offer: all that the trader knows of the trade's end and of its terms; the members of both
            objects may change between versions.
    """

    def __init__(
        self, detail: str, *, verdict: Any, tx_hash: str, order_hash: str, outcome: Any, offer: Any
    ) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.tx_hash = tx_hash
        self.order_hash = order_hash
        self.outcome = outcome
        self.offer = offer


class PolicyError(CambistError):
    """A signing key was asked to sign a payload that the key's policy forbids. No signature is made."""


class TransitionError(CambistError):
    """A state machine was asked for a transition that its table of transitions lacks: our bug."""


class ConfigError(CambistError):
    """The operator's settings, keys or files are not usable.

    Attributes:
        key: dotted settings key, or the file's path.
    """

    def __init__(self, key: str, detail: str) -> None:
        super().__init__(f"{key}: {detail}")
        self.key = key


def catalogue_rows() -> list[type[RequestError] | type[AuthError]]:
    """List every error class that is a row of the error catalogue (errors.json), in the order of the code."""
    rows: list[type[RequestError | AuthError]] = []
    todo: list[type[RequestError]] = RequestError.__subclasses__()
    while todo:
        row = todo.pop(0)
        rows.append(row)
        todo = row.__subclasses__() + todo
    return [*rows, AuthError]
