"""Across V3: logs, relay hashes and calls of a SpokePool, in the form with 32 bytes for an account. Pure.

A deposit on the origin chain emits FundsDeposited. A relayer calls `fillRelay` on the destination: the call
pays the recipient from the relayer's own capital, and emits FilledRelay. The destination's pool takes each
relay hash once. If no relayer fills a deposit by its deadline, the origin's pool pays the deposit back to the
depositor, and emits ExecutedRelayerRefundRoot.

Accounts and tokens have 32 bytes, since addresses of other chains may be longer than 20; an EVM address
follows 12 zero bytes (`abi.address_word`). `deposit_v3` and refund leaves have addresses of 20 bytes. Times
are Unix seconds, amounts raw units.

Source: https://github.com/across-protocol/contracts, SpokePool and V3SpokePoolInterface.
"""

from collections.abc import Sequence
from functools import partial

import msgspec

from ...crypto.keccak import keccak256
from ..contracts.abi import (
    Dynamic,
    KnownLogs,
    LogLayout,
    address_word,
    bytes_tail,
    decode_known,
    encode,
    selector,
    uint_word,
    words_tail,
)

_RELAY = "(bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,bytes)"
_LEAF = "(uint256,uint256,uint256[],uint32,address,address[])"

DEPOSIT_V3 = selector(
    "depositV3(address,address,address,address,uint256,uint256,uint256,address,uint32,uint32,uint32,bytes)"
)
FILL_RELAY = selector(f"fillRelay({_RELAY},uint256,bytes32)")
FILL_STATUSES = selector("fillStatuses(bytes32)")
NUMBER_OF_DEPOSITS = selector("numberOfDeposits()")
EXECUTE_REFUND_LEAF = selector(f"executeRelayerRefundLeaf(uint32,{_LEAF},bytes32[])")

FILL_STATUS_FILLED = 2
"""State that `fillStatuses` returns for a filled relay; 0 is unfilled, 1 is a requested slow fill."""

FUNDS_DEPOSITED = LogLayout(
    "FundsDeposited(bytes32,bytes32,uint256,uint256,uint256 indexed,uint256 indexed,uint32,uint32,uint32,"
    "bytes32 indexed,bytes32,bytes32,bytes)"
)
FILLED_RELAY = LogLayout(
    "FilledRelay(bytes32,bytes32,uint256,uint256,uint256,uint256 indexed,uint256 indexed,uint32,uint32,"
    "bytes32,bytes32 indexed,bytes32,bytes32,bytes32,(bytes32,bytes32,uint256,uint8))"
)
EXECUTED_REFUND_ROOT = LogLayout(
    "ExecutedRelayerRefundRoot(uint256,uint256 indexed,uint256[],uint32 indexed,uint32 indexed,address,"
    "address[],bool,address)"
)


class RelayData(msgspec.Struct, frozen=True):
    """Terms of an Across deposit; the pool (SpokePool) on the destination knows the deposit by their hash.

    Attributes:
        exclusive_relayer: the only relayer that may fill until `exclusivity_deadline`; zero if any relayer
            may.
        message: data for the recipient's contract; empty for none.
    """

    depositor: bytes
    recipient: bytes
    exclusive_relayer: bytes
    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    origin_chain_id: int
    deposit_id: int
    fill_deadline: int
    exclusivity_deadline: int
    message: bytes = b""


class FundsDeposited(msgspec.Struct, frozen=True):
    """Event of the origin's pool: a deposit that waits for a relayer.

    Attributes:
        depositor: the account that gets the refund.
        recipient: the account that gets `output_amount` on the destination.
    """

    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    destination_chain_id: int
    deposit_id: int
    quote_timestamp: int
    fill_deadline: int
    exclusivity_deadline: int
    depositor: bytes
    recipient: bytes
    exclusive_relayer: bytes
    message: bytes

    def relay(self, origin_chain_id: int) -> RelayData:
        """Return the relay data of the deposit."""
        return RelayData(
            depositor=self.depositor,
            recipient=self.recipient,
            exclusive_relayer=self.exclusive_relayer,
            input_token=self.input_token,
            output_token=self.output_token,
            input_amount=self.input_amount,
            output_amount=self.output_amount,
            origin_chain_id=origin_chain_id,
            deposit_id=self.deposit_id,
            fill_deadline=self.fill_deadline,
            exclusivity_deadline=self.exclusivity_deadline,
            message=self.message,
        )


class FilledRelay(msgspec.Struct, frozen=True):
    """Event of the destination's pool: a relayer paid a deposit.

    Attributes:
        repayment_chain_id, relayer: chain on which the relayer is repaid, and account that is repaid.
        message_hash: hash of the deposit's message; zero for an empty one.
        updated_recipient, updated_message_hash, updated_output_amount: recipient, message and amount of the
            payment; different from the deposit's if the depositor agreed to less, or after a slow fill.
        fill_type: 0 for a fill by a relayer, 1 for a fill by a relayer after a slow fill was requested, 2 for
            a slow fill.
    """

    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    repayment_chain_id: int
    origin_chain_id: int
    deposit_id: int
    fill_deadline: int
    exclusivity_deadline: int
    exclusive_relayer: bytes
    relayer: bytes
    depositor: bytes
    recipient: bytes
    message_hash: bytes
    updated_recipient: bytes
    updated_message_hash: bytes
    updated_output_amount: int
    fill_type: int

    def is_of(self, relay: RelayData) -> bool:
        """Return whether the fill belongs to a deposit: whether all members of the relay data are equal."""
        return all(
            getattr(self, name) == getattr(relay, name)
            for name in RelayData.__struct_fields__
            if name != "message"
        ) and self.message_hash == (keccak256(relay.message) if relay.message else bytes(32))


class ExecutedRelayerRefundRoot(msgspec.Struct, frozen=True):
    """Event of a pool that paid out a leaf: repayments to relayers and refunds to depositors.

    A leaf is a list of payments in one token, and a part of a bundle, which Across approves as a whole. A
    leaf does not name deposits. Accounts and the token are addresses of 20 bytes.

    Attributes:
        amount_to_return: raw units that the pool sends back to Across's HubPool, which funds all pools.
        chain_id: the pool's chain.
        refund_amounts, refund_addresses: raw units of each payment, and its receiver, in the same sequence.
        has_deferred: whether the token refused at least one payment, which its receiver then has to claim.
        caller: the account that executed the leaf.
    """

    amount_to_return: int
    chain_id: int
    refund_amounts: tuple[int, ...]
    root_bundle_id: int
    leaf_id: int
    l2_token_address: bytes
    refund_addresses: tuple[bytes, ...]
    has_deferred: bool
    caller: bytes


AcrossEvent = FundsDeposited | FilledRelay | ExecutedRelayerRefundRoot

_EVENTS: KnownLogs[AcrossEvent] = {
    FUNDS_DEPOSITED.topic: (FUNDS_DEPOSITED, FundsDeposited),
    FILLED_RELAY.topic: (FILLED_RELAY, FilledRelay),
    EXECUTED_REFUND_ROOT.topic: (EXECUTED_REFUND_ROOT, ExecutedRelayerRefundRoot),
}


decode_across_log = partial(decode_known, _EVENTS)
"""Decode the topics and data of a log of a SpokePool, as `decode_known` does."""


def relay_hash(relay: RelayData, destination_chain_id: int) -> bytes:
    """Compute the 32-byte hash under which the destination's pool keeps the state of a deposit."""
    return keccak256(encode(_relay_tail(relay), uint_word(destination_chain_id)))


def deposit_v3(
    *,
    depositor: bytes,
    recipient: bytes,
    input_token: bytes,
    output_token: bytes,
    input_amount: int,
    output_amount: int,
    destination_chain_id: int,
    exclusive_relayer: bytes = bytes(20),
    quote_timestamp: int,
    fill_deadline: int,
    exclusivity: int = 0,
    message: bytes = b"",
) -> bytes:
    """Encode a deposit of the caller's tokens. Accounts and tokens are addresses of 20 bytes.

    Args:
        exclusivity: seconds after the deposit, or Unix time, until which only the exclusive relayer may fill;
            0 if any relayer may fill at once.
    """
    return DEPOSIT_V3 + encode(
        address_word(depositor),
        address_word(recipient),
        address_word(input_token),
        address_word(output_token),
        uint_word(input_amount),
        uint_word(output_amount),
        uint_word(destination_chain_id),
        address_word(exclusive_relayer),
        uint_word(quote_timestamp),
        uint_word(fill_deadline),
        uint_word(exclusivity),
        bytes_tail(message),
    )


def fill_relay(relay: RelayData, repayment_chain_id: int, repayment_address: bytes) -> bytes:
    """Encode a fill of a deposit with the caller's tokens.

    Args:
        repayment_address: account that is repaid on the chain `repayment_chain_id`, 32 bytes.
    """
    return FILL_RELAY + encode(_relay_tail(relay), uint_word(repayment_chain_id), repayment_address)


def fill_status(relay_hash32: bytes) -> bytes:
    """Encode a read of the state of a relay hash, which is 0, 1 or `FILL_STATUS_FILLED`."""
    return FILL_STATUSES + relay_hash32


def execute_refund_leaf(
    bundle_id: int, chain_id: int, token: bytes, refunds: Sequence[tuple[bytes, int]]
) -> bytes:
    """Encode the call that pays refunds to the receivers of one list (`executeRelayerRefundLeaf`).

    Across pays refunds in bundles, whose leaves are such lists; a Merkle proof shows that a leaf is of a
    bundle. This call has the bundle's leaf 0 and no proof: only the pool of a devnet accepts the call
    (contracts/dev/DevSpokePool.sol).

    Args:
        bundle_id: number of the bundle.
        chain_id: chain on which the pool pays the refunds.
        token: address of 20 bytes.
        refunds: address and raw units of each receiver.
    """
    leaf = encode(
        uint_word(0),
        uint_word(chain_id),
        words_tail([uint_word(amount) for _, amount in refunds]),
        uint_word(0),
        address_word(token),
        words_tail([address_word(receiver) for receiver, _ in refunds]),
    )
    return EXECUTE_REFUND_LEAF + encode(uint_word(bundle_id), Dynamic(leaf), words_tail(()))


def _relay_tail(relay: RelayData) -> Dynamic:
    *members, message = msgspec.structs.astuple(relay)
    words = (member if isinstance(member, bytes) else uint_word(member) for member in members)
    return Dynamic(encode(*words, bytes_tail(message)))
