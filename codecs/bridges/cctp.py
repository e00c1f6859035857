"""CCTP V2: logs, message bytes and calls of MessageTransmitterV2 and TokenMessengerV2. Pure.

A burn on the origin chain emits DepositForBurn and MessageSent: a message without a nonce. Circle's attester
gives the message a nonce, fills in the finality it waited for, the fee and the expiry, and signs the result.
`receiveMessage` on the destination takes a message with its signatures once for each nonce, mints the tokens,
and emits MintAndWithdraw and MessageReceived.

    message:  version 4 | sourceDomain 4 | destinationDomain 4 | nonce 32 | sender 32 | recipient 32
              | destinationCaller 32 | minFinalityThreshold 4 | finalityThresholdExecuted 4 | body
    body:     version 4 | burnToken 32 | mintRecipient 32 | amount 32 | messageSender 32 | maxFee 32
              | feeExecuted 32 | expirationBlock 32 | hookData

Accounts and tokens of messages have 32 bytes; an EVM address follows 12 zero bytes (`abi.address_word`).
Integers are big-endian, amounts are raw units of the burned token.

Source: https://github.com/circlefin/evm-cctp-contracts, MessageTransmitterV2, TokenMessengerV2, MessageV2 and
BurnMessageV2.
"""

import struct
from functools import partial
from typing import Any

import msgspec

from ...config.errors import InvalidInput
from ...config.limits import CCTP_BODY_BYTES_MAX
from ..contracts.abi import (
    KnownLogs,
    LogLayout,
    address_word,
    bytes_tail,
    decode_known,
    encode,
    selector,
    uint_word,
)

DEPOSIT_FOR_BURN_CALL = selector("depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)")
RECEIVE_MESSAGE = selector("receiveMessage(bytes,bytes)")
USED_NONCES = selector("usedNonces(bytes32)")

FINALITY_CONFIRMED = 1_000
"""Threshold of a fast transfer: the burn is confirmed, and the attester takes the risk for a fee."""
FINALITY_FINALIZED = 2_000
"""Threshold of a standard transfer: the burn is final."""

DEPOSIT_FOR_BURN = LogLayout(
    "DepositForBurn(address indexed,uint256,address indexed,bytes32,uint32,bytes32,bytes32,uint256,"
    "uint32 indexed,bytes)"
)
MESSAGE_SENT = LogLayout("MessageSent(bytes)")
MESSAGE_RECEIVED = LogLayout(
    "MessageReceived(address indexed,uint32,bytes32 indexed,bytes32,uint32 indexed,bytes)"
)
MINT_AND_WITHDRAW = LogLayout("MintAndWithdraw(address indexed,uint256,address indexed,uint256)")

_VERSION = 1
_HEAD = struct.Struct(">III32s32s32s32sII")
_BODY = struct.Struct(">I32s32s32s32s32s32s32s")
_uint = int.from_bytes


class CctpMessage(msgspec.Struct, frozen=True):
    """A message of CCTP V2.

    Attributes:
        nonce: 32 bytes that the attester chooses; zero in a message that is not attested yet.
        sender, recipient: for a burn, the TokenMessengers of both chains.
        destination_caller: the only account that may deliver the message; zero if any account may.
        min_finality: finality that the sender asks for, `FINALITY_CONFIRMED` or `FINALITY_FINALIZED`.
        finality_executed: finality that the attester waited for; 0 in a message that is not attested yet.
    """

    source_domain: int
    destination_domain: int
    nonce: bytes
    sender: bytes
    recipient: bytes
    destination_caller: bytes
    min_finality: int
    finality_executed: int
    body: bytes


class CctpBurn(msgspec.Struct, frozen=True):
    """Body of a message about burned tokens.

    Attributes:
        burn_token: token on the origin.
        amount: raw units that were burned; the recipient gets `amount - fee_executed`.
        message_sender: the account that called depositForBurn.
        max_fee: largest fee that `message_sender` agreed to.
        fee_executed, expiration_block: fee that the attester takes, and block of the destination at which the
            message expires; a block of 0 means never. The attester fills in both members.
        hook_data: data for the recipient's contract.
    """

    burn_token: bytes
    mint_recipient: bytes
    amount: int
    message_sender: bytes
    max_fee: int
    fee_executed: int = 0
    expiration_block: int = 0
    hook_data: bytes = b""


class DepositForBurn(msgspec.Struct, frozen=True):
    """Event of the origin's TokenMessenger. `burn_token` and `depositor` are addresses of 20 bytes."""

    burn_token: bytes
    amount: int
    depositor: bytes
    mint_recipient: bytes
    destination_domain: int
    destination_token_messenger: bytes
    destination_caller: bytes
    max_fee: int
    min_finality: int
    hook_data: bytes


class MessageSent(msgspec.Struct, frozen=True):
    """Event of the origin's MessageTransmitter. `message` holds the bytes that `parse_message` reads."""

    message: bytes


class MessageReceived(msgspec.Struct, frozen=True):
    """Event of the destination's MessageTransmitter. `caller` is an address of 20 bytes."""

    caller: bytes
    source_domain: int
    nonce: bytes
    sender: bytes
    finality_executed: int
    body: bytes


class MintAndWithdraw(msgspec.Struct, frozen=True):
    """Event of the destination's TokenMessenger. `mint_recipient` and `mint_token` are addresses of 20 bytes.

    Attributes:
        amount: raw units that the recipient got, without the fee.
    """

    mint_recipient: bytes
    amount: int
    mint_token: bytes
    fee_collected: int


CctpEvent = DepositForBurn | MessageSent | MessageReceived | MintAndWithdraw

_EVENTS: KnownLogs[CctpEvent] = {
    DEPOSIT_FOR_BURN.topic: (DEPOSIT_FOR_BURN, DepositForBurn),
    MESSAGE_SENT.topic: (MESSAGE_SENT, MessageSent),
    MESSAGE_RECEIVED.topic: (MESSAGE_RECEIVED, MessageReceived),
    MINT_AND_WITHDRAW.topic: (MINT_AND_WITHDRAW, MintAndWithdraw),
}


decode_cctp_log = partial(decode_known, _EVENTS)
"""Decode the topics and data of a log of a MessageTransmitter or TokenMessenger, as `decode_known` does."""


def parse_message(raw: bytes) -> CctpMessage:
    """Parse the bytes of a message.

    Raises:
        InvalidInput: the message is too short, too long, or of another version than CCTP V2.
    """
    return CctpMessage(*_members(raw, _HEAD, _HEAD.size + CCTP_BODY_BYTES_MAX, "CCTP message"))


def pack_message(message: CctpMessage) -> bytes:
    """Return the bytes of a message, whose hash the attester signs.

    Raises:
        struct.error: an integer exceeds its field.
    """
    *members, body = msgspec.structs.astuple(message)
    return _HEAD.pack(_VERSION, *members) + bytes(body)


def parse_burn(body: bytes) -> CctpBurn:
    """Parse the body of a message about burned tokens.

    Raises:
        InvalidInput: the body is too short, too long, or of another version than CCTP V2.
    """
    token, recipient, amount, sender, *fees, hook_data = _members(
        body, _BODY, CCTP_BODY_BYTES_MAX, "CCTP burn"
    )
    max_fee, fee, expiration = map(_uint, fees)
    return CctpBurn(
        burn_token=token,
        mint_recipient=recipient,
        amount=_uint(amount),
        message_sender=sender,
        max_fee=max_fee,
        fee_executed=fee,
        expiration_block=expiration,
        hook_data=hook_data,
    )


def pack_burn(burn: CctpBurn) -> bytes:
    """Return the bytes of the body of a message about burned tokens.

    Raises:
        OverflowError: a number is below 0 or above 2^256 - 1.
    """
    *members, hook_data = msgspec.structs.astuple(burn)
    words = (member if isinstance(member, bytes) else uint_word(member) for member in members)
    return _BODY.pack(_VERSION, *words) + bytes(hook_data)


def deposit_for_burn(
    amount: int,
    destination_domain: int,
    mint_recipient: bytes,
    burn_token: bytes,
    max_fee: int,
    min_finality: int,
) -> bytes:
    """Encode a burn of the caller's tokens; any account may deliver its message on the destination.

    Args:
        mint_recipient: 32 bytes.
        burn_token: address of 20 bytes.
    """
    return (
        DEPOSIT_FOR_BURN_CALL
        + uint_word(amount)
        + uint_word(destination_domain)
        + mint_recipient
        + address_word(burn_token)
        + bytes(32)
        + uint_word(max_fee)
        + uint_word(min_finality)
    )


def receive_message(message: bytes, attestation: bytes) -> bytes:
    """Encode the delivery of a message with its attestation: joined signatures of 65 bytes each."""
    return RECEIVE_MESSAGE + encode(bytes_tail(message), bytes_tail(attestation))


def used_nonce(nonce: bytes) -> bytes:
    """Encode a read of whether a nonce of 32 bytes was used; the answer is 1 or 0."""
    return USED_NONCES + nonce


def _members(raw: bytes, layout: struct.Struct, longest: int, field: str) -> list[Any]:
    if not layout.size <= len(raw) <= longest:
        expected = f"{layout.size} to {longest} bytes"
        raise InvalidInput(field=field, expected=expected, got=f"{len(raw)} bytes")
    version, *members = layout.unpack_from(raw)
    if version != _VERSION:
        raise InvalidInput(field=field, expected=f"version {_VERSION}", got=version)
    return [*members, raw[layout.size :]]
