"""Complete a sent CCTP message as the attester does: nonce, finality, fee, expiry. Pure.

    finality requested      attestation
    FINALITY_CONFIRMED      after `fast_after_s` for a fee, if the sender agreed to the fee; otherwise as in
                            the next row
    a higher finality       after `final_after_s`, without a fee and without an expiry

A nonce follows from the transaction and the message's place among the messages of the transaction: neither a
restart of the attester nor a re-organisation gives a message a second nonce.

Finality on a development chain is an age in seconds, since its blocks come on demand.

Source: https://developers.circle.com/cctp/technical-guide.
"""

from math import inf

import msgspec
from msgspec import Struct

from ....codecs.bridges.cctp import (
    FINALITY_CONFIRMED,
    FINALITY_FINALIZED,
    CctpMessage,
    pack_burn,
    pack_message,
    parse_burn,
)
from ....codecs.contracts.abi import uint_word
from ....codecs.rounding import mul_div_up
from ....config.errors import InvalidInput
from ....config.limits import BPS_ONE
from ....crypto.keccak import keccak256

INSUFFICIENT_FEE = "insufficient_fee"
"""Reason for which a fast message waits for finality: its sender agreed to less than the fee."""


class AttesterOrders(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instructions that control how a dev attester behaves.

    Attributes:
        fast_after_s, final_after_s: seconds from the first sight of a message to its attestation, for the two
            finalities.
        is_silent: whether the attester attests nothing.
        signs_wrongly: whether the attester signs with a key that no transmitter knows.
        fast_fee_bps: fee of a fast message in basis points of the amount.
        expires_after_blocks: blocks of the destination after which a fast message expires.
    """

    fast_after_s: float = 1.0
    final_after_s: float = 5.0
    is_silent: bool = False
    signs_wrongly: bool = False
    fast_fee_bps: int = 1
    expires_after_blocks: int = 7_200

    def __post_init__(self) -> None:
        for name in ("fast_after_s", "final_after_s"):
            if not 0 <= getattr(self, name) <= 86_400:
                raise ValueError(f"{name} is 0 to 86400, got {getattr(self, name)}")
        if not 0 <= self.fast_fee_bps < BPS_ONE:
            raise ValueError(f"fast_fee_bps is 0 to {BPS_ONE - 1}, got {self.fast_fee_bps}")
        if not 0 < self.expires_after_blocks < 2**32:
            raise ValueError(f"expires_after_blocks is 1 to 2^32 - 1, got {self.expires_after_blocks}")


class Attestable(Struct, frozen=True):
    """A message on its way to an attestation.

    Attributes:
        raw: completed bytes to sign; empty while the attester waits.
        delay_reason: reason why the message waits longer than its sender asked for; empty for none.
        again_s: seconds until the message is due; infinite while the attester is silent.
    """

    raw: bytes = b""
    delay_reason: str = ""
    again_s: float = inf


def nonce_of(domain: int, tx_hash: bytes, place: int) -> bytes:
    """Compute the 32-byte nonce of a message.

    Args:
        place: number of the message among those of its transaction, from 0.
    """
    return keccak256(uint_word(domain) + tx_hash + uint_word(place))


def completed(
    message: CctpMessage, nonce: bytes, orders: AttesterOrders, waited_s: float, height: int
) -> Attestable:
    """Complete a sent message, if it has waited long enough.

    Args:
        waited_s: seconds since the first sight of the message.
        height: height of the destination's latest block.
    """
    is_fast, fee, reason = _terms(message, orders)
    due_s = (orders.fast_after_s if is_fast else orders.final_after_s) - waited_s
    if orders.is_silent or due_s > 0:
        return Attestable(b"", reason, inf if orders.is_silent else due_s)
    expiry = height + orders.expires_after_blocks if is_fast else 0
    return Attestable(_filled(message, nonce, is_fast=is_fast, fee=fee, expiry=expiry), reason)


def as_final(attested: CctpMessage) -> bytes:
    """Return the bytes that a re-attestation of an attested message signs: final, without an expiry."""
    fee = parse_burn(attested.body).fee_executed if _is_burn(attested) else 0
    return _filled(attested, attested.nonce, is_fast=False, fee=fee, expiry=0)


def _terms(message: CctpMessage, orders: AttesterOrders) -> tuple[bool, int, str]:
    """Decide the terms of a message's attestation.

    Returns:
        Three values: whether the message is attested before finality, the fee in raw units, and the reason
        why the attester refuses a requested attestation before finality (empty without a refusal).
    """
    if message.min_finality > FINALITY_CONFIRMED:
        return False, 0, ""
    if not _is_burn(message):
        return True, 0, ""
    burn = parse_burn(message.body)
    fee = mul_div_up(burn.amount, orders.fast_fee_bps, BPS_ONE)
    return (True, fee, "") if fee <= burn.max_fee else (False, 0, INSUFFICIENT_FEE)


def _filled(message: CctpMessage, nonce: bytes, *, is_fast: bool, fee: int, expiry: int) -> bytes:
    body = message.body
    if _is_burn(message):
        burn = msgspec.structs.replace(parse_burn(body), fee_executed=fee, expiration_block=expiry)
        body = pack_burn(burn)
    executed = FINALITY_CONFIRMED if is_fast else FINALITY_FINALIZED
    return pack_message(msgspec.structs.replace(message, nonce=nonce, finality_executed=executed, body=body))


def _is_burn(message: CctpMessage) -> bool:
    try:
        parse_burn(message.body)
    except InvalidInput:
        return False
    return True
