"""Inputs of a relayer's plan: its policy, the state of the chain, its memory, its rows by nonce. Pure.

`RelayMemory` holds state that is not stored: times of broadcasts, and refusals. Losing that state costs time
alone.

Source: ARCHITECTURE.md, "Relayer".
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ....codecs import rlp
from ....config.errors import RefusalKind
from ....config.sections.relayer import RelayerSettings
from ...store.rows import ChainIntent, ChainTx, IntentCause, TxStatus, amount_of
from ..port import GasFees, Header, Receipt
from .fee_policy import FeePolicy, GasPrice
from .relay_lifecycles import RELAY_INTENT_LIFECYCLE

ENDED = RELAY_INTENT_LIFECYCLE.terminal()
FILLER_GAS = 21_000


class RelayPolicy(Struct, frozen=True):
    """Limits of one relayer, from its settings and the settings of its chain.

    Attributes:
        confirmations: blocks, the transaction's own included, after which a transaction is final.
        stuck_ms: milliseconds until an unmined transaction is replaced, or until a call that nodes refuse is
            given up.
        in_flight_max: most nonces with a transaction waiting to be mined.
        gas_floor_wei: balance of the account below which no new intent is signed.
    """

    fees: FeePolicy
    confirmations: int
    stuck_ms: int
    in_flight_max: int
    gas_floor_wei: int


def relay_policy(settings: RelayerSettings, confirmations: int) -> RelayPolicy:
    """Build a relayer's limits from its settings and the confirmations that make its chain's blocks final."""
    fees = FeePolicy(settings.fee_cap_wei, settings.tip_min_wei, settings.tip_max_wei, settings.bump_bps)
    stuck_ms = round(settings.stuck_s * 1_000)
    return RelayPolicy(fees, confirmations, stuck_ms, settings.in_flight_max, settings.gas_floor_wei)


class Facts(Struct, frozen=True):
    """State of the chain and of the relayer's account and transactions, as of one block, `head`.

    The fees and the balance may be of a later block.

    Attributes:
        nonce: number of the account's mined transactions, i.e. the nonce of its next one.
        receipts: transaction hash -> receipt, for transactions of the relayer that are newly found in a block
            of this chain.
        on_chain: hashes of blocks that are still part of this chain; the candidates are the blocks of
            transactions stored as mined, and the blocks of `TakenNonce`.
        is_one_branch: whether the head was still the chain's after all else was read.
    """

    head: Header
    nonce: int
    balance_wei: int
    fees: GasFees
    receipts: Mapping[bytes, Receipt]
    on_chain: frozenset[bytes]
    is_one_branch: bool = True


class TakenNonce(Struct, frozen=True):
    """First observation that a transaction of another program used a nonce of the relayer's account.

    Attributes:
        block: the chain's head at the observation.
        since_ms: time of the observation, Unix milliseconds.
    """

    block: Header
    since_ms: int


class Refusal(Struct, frozen=True):
    """A node's refusal of a transaction.

    Attributes:
        detail: the node's text.
        since_ms: time of the first refusal of this kind in a row, Unix milliseconds.
    """

    kind: RefusalKind
    detail: str
    since_ms: int


class Reason(Struct, frozen=True):
    """Cause for which an intent (a call to get mined) failed or is given up, as a code and as text.

    Attributes:
        words: description of the cause as text, for people.
        error4: selector of the error that the contract returned, 4 bytes; None if there is none.
    """

    cause: IntentCause
    words: str
    error4: bytes | None = None


TOO_LATE = Reason(IntentCause.DEADLINE, "its deadline passed before it was mined")
GIVEN_UP = Reason(IntentCause.GIVEN_UP, "it was given up before it was mined")
OUT_OF_GAS = Reason(IntentCause.OUT_OF_GAS, "out of gas")
UNEXPLAINED = Reason(IntentCause.UNEXPLAINED, "reverted; the block before it would have taken it")
"""Reason for a call that reverted when mined, though it succeeds when executed on the block before."""


class Front(Struct, frozen=True):
    """Transaction that is next to be mined, and the time (Unix ms) and height at which it became next."""

    tx_hash: bytes
    since_ms: int
    since_block: int


class RelayMemory(Struct):
    """State of a relayer that is kept in memory alone; a restart begins with an empty one.

    Attributes:
        front: the transaction to be mined next; None if the account's next nonce has no transaction.
        handed_ms: transaction hash -> time of its last broadcast, Unix milliseconds.
        refused: transaction hash -> nodes' refusal of its last broadcast.
        taken: nonce -> first observation that a foreign transaction used it.
    """

    front: Front | None = None
    handed_ms: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, Refusal] = field(default_factory=dict)
    taken: dict[int, TakenNonce] = field(default_factory=dict)


class NonceSlot(Struct, frozen=True):
    """A nonce of the relayer's account, and the transactions signed for that nonce; the last is `best`.

    Attributes:
        intent: the intent (call to get mined) that the nonce is for; None if all transactions are fillers,
            which have no call and only use up the nonce.
    """

    nonce: int
    transactions: tuple[ChainTx, ...]
    intent: ChainIntent | None

    @property
    def best(self) -> ChainTx:
        """Transaction to get mined: the highest-fee filler, or the highest-fee call if there is no filler."""
        return self.transactions[-1]

    @property
    def mined(self) -> ChainTx | None:
        """Transaction of the nonce that is stored as mined but not yet final; None if none is."""
        return next((tx for tx in self.transactions if tx.status is TxStatus.MINED), None)

    @property
    def is_settled(self) -> bool:
        """Whether a transaction of the nonce is stored as final; only a re-organisation reopens it."""
        return any(tx.status in (TxStatus.FINAL, TxStatus.FAILED) for tx in self.transactions)


def slots_of(transactions: Sequence[ChainTx], intents: Sequence[ChainIntent]) -> dict[int, NonceSlot]:
    """Group a relayer's transactions by nonce: nonce -> slot, in ascending order of nonces."""
    by_key = {intent.effect_key: intent for intent in intents}
    by_nonce: dict[int, list[ChainTx]] = {}
    for tx in sorted(transactions, key=_place):
        by_nonce.setdefault(tx.nonce, []).append(tx)
    return {
        nonce: NonceSlot(
            nonce, tuple(some), next((by_key[tx.effect_key] for tx in some if tx.effect_key in by_key), None)
        )
        for nonce, some in by_nonce.items()
    }


def _place(tx: ChainTx) -> tuple[int, bool, bytes, int]:
    return tx.nonce, not tx.effect_key, tx.fee_max_wei, tx.created_ms


def is_late(intent: ChainIntent, now_ms: int) -> bool:
    """Whether an intent's deadline has passed."""
    return intent.deadline_s <= now_ms // 1_000


def price_of(tx: ChainTx) -> GasPrice:
    """Gas price that a signed transaction offers, decoded from its raw bytes."""
    members = _members(tx)
    return GasPrice(rlp.as_uint(members[3], "maxFeePerGas"), rlp.as_uint(members[2], "maxPriorityFeePerGas"))


def cost_of(tx: ChainTx) -> int:
    """Most that a signed transaction can cost, in wei: gas limit times maximum fee, and the value sent."""
    members = _members(tx)
    gas, value_wei = rlp.as_uint(members[4], "gas"), rlp.as_uint(members[6], "value")
    return gas * amount_of(tx.fee_max_wei) + value_wei


def _members(tx: ChainTx) -> list[rlp.Item]:
    return rlp.as_list(rlp.decode(tx.raw[1:]), "transaction", 12)
