"""Rows of the store's tables, as written and read: a struct per table, fields in the order of the columns.

Hashes, addresses and ids are bytes. An amount is 32 bytes, big-endian, so that amounts compare as numbers in
both dialects. Times are Unix milliseconds (`_ms`) or seconds (`_s`). `version` counts the changes of a row.

Source: spec 1.10, 2.4; ARCHITECTURE.md, "Transitions".
"""

from enum import StrEnum
from typing import Annotated, TypeAlias

from msgspec import Struct

from ...codecs.messages.vocabulary import (
    DeliveryState,
    OnChainOrderType,
    OrderStatus,
    OrderType,
    OtcState,
    OtcType,
    Side,
)

NEVER_S = (1 << 63) - 1
"""`expires_s` of an order without expiry: it sorts last (choices.md#otc-orders)."""

Amount32: TypeAlias = Annotated[bytes, "an amount"]
"""Type of a column that holds an amount: 32 bytes, big-endian."""


def amount32(amount: int) -> bytes:
    """Encode an amount as the 32 bytes, big-endian, that the store keeps.

    Raises:
        OverflowError: the amount is not from 0 to 2^256 - 1.
    """
    return amount.to_bytes(32, "big")


def amount_of(kept32: bytes) -> int:
    """Decode an amount from the 32 bytes, big-endian, that the store keeps."""
    return int.from_bytes(kept32, "big")


class Row(Struct, frozen=True, array_like=True, gc=False):
    """Base class of the structs for rows of the store's tables; a row is encoded as an array of fields."""


class DeltaOrderRow(Row, frozen=True, array_like=True, gc=False):
    """Row of a Delta order: its current state, without the signed document.

    Attributes:
        order_hash: 32 bytes; the first byte is `shard`, and `order_id` computes the order's id from the hash.
        nonce: 32 bytes.
        spent, received: source and destination amounts of all fills together, 32 bytes each; `received` of a
            crosschain order counts verified deliveries on the destination chain.
        is_final: whether the order has ended and no reorganisation can undo the end.
        failures: number of failed settlements that count towards `failures_max`, at which the order fails
            (`engine/trade/delta/orders/life.py`).
    """

    order_hash: bytes
    shard: int
    chain_id: int
    owner: bytes
    nonce: bytes
    kind: OnChainOrderType
    type: OrderType
    side: Side
    partner: str
    created_ms: int
    expires_s: int
    version: int
    status: OrderStatus
    updated_ms: int
    spent: Amount32
    received: Amount32
    is_final: bool
    failures: int = 0


class OtcOrderRow(Row, frozen=True, array_like=True, gc=False):
    """Row of an OTC order: its current state, without the signed document.

    Attributes:
        order_hash: 32 bytes; the first byte is `shard`.
        taker_from_meta: the taker in the order's nonceAndMeta, 20 bytes.
        expires_s: expiry, Unix seconds; NEVER_S for an order without expiry.
        remaining: unfilled amount of the maker's asset; 32 bytes, as all amounts here.
        maker_balance: least of `remaining`, the maker's balance and its allowance.
        reserved: part of the maker's funds that is reserved for this order (choices.md#otc-orders).
        swappable: amount of the maker's asset that can be filled now.
        transaction_hash: hash of the latest transaction that filled or cancelled the order; None before.
    """

    order_hash: bytes
    shard: int
    chain_id: int
    maker: bytes
    taker: bytes
    taker_from_meta: bytes
    maker_asset: bytes
    taker_asset: bytes
    maker_amount: Amount32
    taker_amount: Amount32
    type: OtcType
    created_ms: int
    expires_s: int
    version: int
    status: OtcState
    updated_ms: int
    remaining: Amount32
    maker_balance: Amount32
    reserved: Amount32
    swappable: Amount32
    transaction_hash: bytes | None
    is_final: bool


class OrderDocument(Row, frozen=True, array_like=True, gc=False):
    """A signed order in full, Delta or OTC, which never changes; `body` is the order's struct as msgpack."""

    order_hash: bytes
    body: bytes


class DeltaFill(Row, frozen=True, array_like=True, gc=False):
    """A settlement of a Delta order, identified by the chain's log of the settlement.

    Attributes:
        destination_tx: always None, not used any more: `BridgeEnd` has a crosschain order's deliveries.
        spent, received: source and destination amounts of this fill, 32 bytes each; for a crosschain order
            `received` entered the bridge.
        filled: amount settled so far, this fill included, of the token whose amount the order fixes (SELL:
            source, BUY: destination), 32 bytes; for a TWAP order, the number of settled slices.
        is_closed: whether no further part of the order can be settled.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    order_hash: bytes
    destination_tx: bytes | None
    spent: Amount32
    received: Amount32
    at_ms: int
    filled: Amount32
    is_closed: bool


class BridgeTransfer(Row, frozen=True, array_like=True, gc=False):
    """A settlement's amount that was handed to a bridge, identified by the origin chain's log.

    Attributes:
        selector4: `protocolSelector` of the bridge in the signed order, 4 bytes.
        destination_chain_id: at most NEVER_S: a larger number in the contract's log is stored as NEVER_S.
        output_token: token that arrives, 20 bytes.
        amount: raw units of the origin's token that entered the bridge; 32 bytes, as all amounts here.
        output: least raw units of `output_token` that the bridge promised.
        bridge_id: the bridge's number of the transfer (Across: deposit id); 0 for a bridge without numbers.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    order_hash: bytes
    selector4: bytes
    destination_chain_id: int
    output_token: bytes
    amount: Amount32
    output: Amount32
    bridge_id: bytes
    at_ms: int


class BridgeEndState(StrEnum):
    """End of a bridge transfer at its destination.

    Attributes:
        DELIVERED: the destination's verified log shows that the beneficiary got tokens.
        UNWRAPPED: likewise, and the tokens were native ones: the bridge unwrapped the output token.
        ARRIVED: tokens came to the account from which a swap on the destination takes them.
        SWAPPED: after ARRIVED, a swap on the destination paid the wanted token to the beneficiary.
        PAID_OUT: after ARRIVED, the beneficiary got the token that the bridge had brought, without a swap.
        FAILED: no log of the destination delivers the transfer, and none can any more: a refund is due.
    """

    DELIVERED = "DELIVERED"
    UNWRAPPED = "UNWRAPPED"
    FAILED = "FAILED"
    ARRIVED = "ARRIVED"
    SWAPPED = "SWAPPED"
    PAID_OUT = "PAID_OUT"


class BridgeEnd(Row, frozen=True, array_like=True, gc=False):
    """End of a bridge transfer as the destination chain shows it.

    The first four columns are those of the `BridgeTransfer` that ended.

    Attributes:
        end_block, end_number: hash and height of the destination's block that shows the end.
        end_tx, end_log: transaction hash and log index of the delivery; None for a failure.
        amount: raw units that the beneficiary got: after a swap, of the wanted token; else of the output
            token; 0 for a failure.
        at_ms: time of the destination's block, Unix milliseconds.
        is_final: whether no re-organisation of the destination can undo the end.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    order_hash: bytes
    destination_chain_id: int
    version: int
    state: BridgeEndState
    end_block: bytes
    end_number: int
    end_tx: bytes | None
    end_log: int | None
    amount: Amount32
    at_ms: int
    is_final: bool


class DeltaRefund(Row, frozen=True, array_like=True, gc=False):
    """A verified refund, or part of one, of a failed bridge transfer on the origin chain.

    A bridge may pay the refunds of several transfers by a single entry of a log (spec 1.10.25 to 1.10.27).

    Attributes:
        tx_hash, log_index, entry: the refund's log, and the entry of the log that paid the owner.
        taken: raw units of the entry that earlier refunds take up; this refund's `amount` follows them. Both
            are 32 bytes.
        transfer_block, transfer_tx, transfer_log: block, transaction and log index of the transfer.
        is_final: whether no re-organisation of the origin can undo the refund.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    entry: int
    taken: Amount32
    version: int
    block_number: int
    order_hash: bytes
    transfer_block: bytes
    transfer_tx: bytes
    transfer_log: int
    token: bytes
    amount: Amount32
    at_ms: int
    is_final: bool


class AuctionRound(Row, frozen=True, array_like=True, gc=False):
    """Result of one Delta order in a closed round of its auction.

    Attributes:
        auction_id: id of the round, which several orders may share.
        winner: name of the agent whose offer the venue tries to settle first; None if no offer wins.
        record: the round's request to agents and the agents' offers, in the JSON form that GET
            /v2/delta/auctions/{id} answers.
    """

    auction_id: int
    order_hash: bytes
    chain_id: int
    opened_ms: int
    closed_ms: int
    winner: str | None
    record: bytes


class OrderEvent(Row, frozen=True, array_like=True, gc=False):
    """A change of an order, as an entry of the event log; event streams and webhooks read the log.

    Attributes:
        surface: kind of the order: `delta` or `otc`.
        owner: owner of the Delta order, or maker of the OTC order; 20 bytes.
        version: version of the order after the change.
        body: further fields of the event as JSON (`EventBody`, `OtcEventBody`); may be empty.
        partner: name of the integrator named in a Delta order; else empty.
    """

    surface: str
    order_hash: bytes
    shard: int
    chain_id: int
    owner: bytes
    version: int
    status: str
    at_ms: int
    body: bytes
    partner: str = ""


class EffectState(StrEnum):
    """State of a side effect: an action outside the store that follows from an order's change of state."""

    INTENDED = "INTENDED"
    DONE = "DONE"
    FAILED = "FAILED"


class Effect(Row, frozen=True, array_like=True, gc=False):
    """A side effect: an action outside the store that follows from an order's change of state.

    The venue attempts the action until it succeeds or fails for good.

    Attributes:
        key: `order hash:version:kind` (`effect_key`).
        due_ms: earliest time of the next attempt, Unix milliseconds.
    """

    key: str
    order_hash: bytes
    shard: int
    kind: str
    payload: bytes
    created_ms: int
    version: int
    state: EffectState
    attempts: int
    due_ms: int
    updated_ms: int


class TxStatus(StrEnum):
    """State of a relayer's signed transaction; `RELAY_TRANSACTION_LIFECYCLE` has the allowed transitions."""

    SIGNED = "SIGNED"
    MINED = "MINED"
    FINAL = "FINAL"
    FAILED = "FAILED"
    REPLACED = "REPLACED"


class IntentState(StrEnum):
    """State of an intent, a call that a relayer is to get mined; `RELAY_INTENT_LIFECYCLE` has the allowed
    transitions.
    """

    WAITING = "WAITING"
    PENDING = "PENDING"
    MINED = "MINED"
    REVERTED = "REVERTED"
    FINAL = "FINAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class IntentCause(StrEnum):
    """Cause of the failure, revert or cancellation of an intent, a call that a relayer is to get mined.

    Attributes:
        DEADLINE: the intent's deadline passed before a transaction was mined.
        GIVEN_UP: another transaction used the intent's nonce, and no other cause is known.
        REFUSED: nodes do not accept the intent's transaction.
        FORBIDDEN: the policy of the relayer's key does not allow the transaction.
        REVERTED: the contract refused the call; `error4` says with which error.
        OUT_OF_GAS: the call used all its gas.
        UNEXPLAINED: the mined call reverted, though the same call succeeds in the state of the block before.
        UNKNOWN: the call reverted, and no node could say why.
    """

    DEADLINE = "DEADLINE"
    GIVEN_UP = "GIVEN_UP"
    REFUSED = "REFUSED"
    FORBIDDEN = "FORBIDDEN"
    REVERTED = "REVERTED"
    OUT_OF_GAS = "OUT_OF_GAS"
    UNEXPLAINED = "UNEXPLAINED"
    UNKNOWN = "UNKNOWN"


class ChainTx(Row, frozen=True, array_like=True, gc=False):
    """A relayer's signed transaction, stored before it is broadcast.

    Attributes:
        raw: the signed transaction's bytes, as broadcast.
        fee_max_wei: maximum fee per unit of gas, wei, as 32 bytes.
        effect_key: key of the intent that the transaction carries out; empty if the transaction only uses up
            a nonce that later transactions wait for.
        replaces: hash of the earlier transaction with the same nonce that this one replaces; None if none.
        block_number, block_hash: block that includes the transaction; None before any block does.
    """

    tx_hash: bytes
    chain_id: int
    sender: bytes
    nonce: int
    raw: bytes
    fee_max_wei: Amount32
    effect_key: str
    replaces: bytes | None
    created_ms: int
    version: int
    status: TxStatus
    updated_ms: int
    block_number: int | None
    block_hash: bytes | None


class ChainIntent(Row, frozen=True, array_like=True, gc=False):
    """An intent: a contract call that a relayer is to get mined exactly once.

    The relayer's transactions for the intent have the intent's `effect_key`.

    Attributes:
        sender: the relayer's address.
        target: the contract that is called.
        value_wei: native tokens that the call sends, wei, as 32 bytes.
        deadline_s: Unix seconds after which an unmined intent is no longer wanted; NEVER_S for no deadline.
        reason: text that explains `cause` to people; empty without a cause.
        mined_hash: hash of the intent's mined transaction; None before one is mined.
        block_number, block_hash: block of the mined transaction; None before.
        cause: cause of a failure, revert or cancellation; else None.
        error4: selector of the error that the contract returned, 4 bytes; None without one.
    """

    effect_key: str
    chain_id: int
    sender: bytes
    target: bytes
    data: bytes
    value_wei: Amount32
    gas: int
    deadline_s: int
    created_ms: int
    version: int
    state: IntentState
    reason: str
    mined_hash: bytes | None
    block_number: int | None
    block_hash: bytes | None
    updated_ms: int
    cause: IntentCause | None
    error4: bytes | None


class ChainCursor(Row, frozen=True, array_like=True, gc=False):
    """Last block of a chain up to which the indexer has read logs.

    Attributes:
        ring: msgpack of the (number, hash) pairs of the last blocks, to detect a reorganisation.
    """

    chain_id: int
    version: int
    block_number: int
    block_hash: bytes
    ring: bytes
    updated_ms: int


class UsedNonce(Row, frozen=True, array_like=True, gc=False):
    """A nonce of Delta orders that a settlement used up, or that the nonce's owner invalidated, on the chain.

    The venue accepts no new Delta order of the owner with this nonce.

    Attributes:
        order_hash: hash of the order whose settlement used the nonce; None after an invalidation.
    """

    chain_id: int
    owner: bytes
    nonce: bytes
    tx_hash: bytes
    block_number: int
    order_hash: bytes | None


class OtcFill(Row, frozen=True, array_like=True, gc=False):
    """A fill of an OTC order or firm quote, whole or in part.

    Attributes:
        taker: account that received the maker's asset.
        maker_amount, taker_amount: amounts of the two assets in this fill, 32 bytes each.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    order_hash: bytes
    maker: bytes
    taker: bytes
    maker_asset: bytes
    taker_asset: bytes
    maker_amount: Amount32
    taker_amount: Amount32
    at_ms: int


class OtcCancel(Row, frozen=True, array_like=True, gc=False):
    """A cancellation of an OTC order on chain.

    The contract lets any account cancel any hash; the row counts only if `maker` is the order's maker.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    order_hash: bytes
    maker: bytes
    at_ms: int


class OtcCancelUntil(Row, frozen=True, array_like=True, gc=False):
    """A maker's cancellation on chain of all its OTC orders that expire at `until_s` or before, or never
    expire.

    Attributes:
        until_s: Unix seconds, at most NEVER_S: a later time in the contract's log is stored as NEVER_S.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    maker: bytes
    until_s: int
    at_ms: int


class PreSignature(Row, frozen=True, array_like=True, gc=False):
    """An owner's on-chain call that signs an order (`is_signed` True) or withdraws that signature (False).

    If several rows have the same owner and order, only the latest row counts.
    """

    chain_id: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    order_hash: bytes
    owner: bytes
    is_signed: bool
    at_ms: int


class IssuedRoute(Row, frozen=True, array_like=True, gc=False):
    """Hash and expiry of a Delta route that the venue issued to a client (choices.md#delta-orders)."""

    digest: bytes
    chain_id: int
    expires_ms: int


class Webhook(Row, frozen=True, array_like=True, gc=False):
    """Progress of a webhook through the event log.

    Attributes:
        token: resume token of the newest event up to which all deliveries of the webhook are stored.
    """

    name: str
    created_ms: int
    version: int
    token: str
    updated_ms: int


class Delivery(Row, frozen=True, array_like=True, gc=False):
    """An event not yet delivered to a webhook.

    Attributes:
        token: resume token of the event.
        body: body of the POST: the event's message as JSON.
        created_ms: time of the event, or of a replay of the event, Unix ms; start of the delivery's age.
        due_ms: earliest time of the next POST, Unix ms.
        reason: failure of the last POST; empty before the first.
    """

    webhook: str
    token: str
    order_hash: bytes
    body: bytes
    created_ms: int
    version: int
    state: DeliveryState
    tries: int
    due_ms: int
    reason: str
    updated_ms: int


class PartnerRow(Row, frozen=True, array_like=True, gc=False):
    """A partner, an integrator who earns a fee on users' swaps, registered in the store rather than in the
    settings.
    """

    name: str
    created_ms: int
    version: int
    address: bytes
    fee_bps: int
    tier: str
    updated_ms: int
