"""Reads attested CCTP messages from the attestation service's answers, and compares them with the burn. Pure.

    GET {url}/v2/messages/{domain}?transactionHash=0x...
        -> {"messages": [{"message": "0x...", "attestation": "0x...", "status": "complete"}]}
        -> {"messages": [{"status": "pending_confirmations", "delayReason": "insufficient_fee", ...}]}

A settlement may call contracts of anybody, which may send messages of CCTP V1 and messages without a burn. A
message in the answer that does not have the form of a burn is therefore skipped.

The service is not trusted: an attested message has to equal the burned message except for nonce, executed
finality, fee and expiry, and the destination's contract checks the signatures. A false answer can only delay
a delivery.

Source: developers.circle.com, "CCTP API", GET /v2/messages; CCTP V2 message format.
"""

import msgspec
from msgspec.structs import replace

from .....codecs.bridges.cctp import parse_message
from .....config.error_text import excerpt
from .....config.errors import InvalidInput
from .....config.limits import BRIDGE_MESSAGES_MAX
from .....crypto.hexadecimal import parse_hex
from .arrivals import burn_as_attested
from .origins import BurnedMessage

_COMPLETE = "complete"


class AttestedMessage(msgspec.Struct, frozen=True):
    """A message that the attester signed.

    Attributes:
        raw: bytes of the message, with nonce, fee and expiry.
        attestation: the attester's signatures.
        nonce: number by which the destination accepts the message only once, 32 bytes.
        expiration_block: height of the destination from which the message is refused; 0 for never.
    """

    raw: bytes
    attestation: bytes
    nonce: bytes
    expiration_block: int


class _MessageItem(msgspec.Struct, frozen=True, rename="camel"):
    message: str | None = None
    attestation: str | None = None
    status: str | None = None
    delay_reason: str | None = None


class _Messages(msgspec.Struct, frozen=True):
    messages: tuple[_MessageItem, ...] = ()


_decode = msgspec.json.Decoder(_Messages).decode


def messages_target(domain: int, tx_hash: bytes) -> str:
    """Return path and query that ask for the messages of a transaction of the origin.

    Args:
        domain: Circle's number of the origin.
    """
    return f"/v2/messages/{domain}?transactionHash=0x{tx_hash.hex()}"


def reattest_target(nonce: bytes) -> str:
    """Return the path of the POST that asks to attest an expired message anew."""
    return f"/v2/reattest/0x{nonce.hex()}"


def attested_in(answer: bytes, burned: BurnedMessage) -> AttestedMessage | str:
    """Find the attested form of a burned message in the service's answer.

    If the answer has equal messages of one transaction, the burned message's rank selects one of them, in the
    order of their nonces.

    Args:
        answer: body of the answer.

    Returns:
        The attested message; before the attestation the service's reasons why it takes longer than was asked
        for, such as a fee too low for the fast tier. The text is empty without a reason.

    Raises:
        InvalidInput: the answer has another form, or too many messages.
    """
    try:
        items = _decode(answer).messages
    except msgspec.MsgspecError as error:
        raise InvalidInput(field="messages", expected="an answer of /v2/messages", got=str(error)) from None
    if len(items) > BRIDGE_MESSAGES_MAX:
        raise InvalidInput(field="messages", expected=f"at most {BRIDGE_MESSAGES_MAX}", got=len(items))
    found = [message for item in items if (message := _attested(item, burned)) is not None]
    found.sort(key=lambda message: message.nonce)
    if burned.rank < len(found):
        return found[burned.rank]
    reasons = [excerpt(item.delay_reason) for item in items if item.delay_reason]
    return ", ".join(dict.fromkeys(reasons))


def _attested(item: _MessageItem, burned: BurnedMessage) -> AttestedMessage | None:
    if item.status != _COMPLETE:
        return None
    try:
        raw = parse_hex(item.message or "", "message")
        attestation = parse_hex(item.attestation or "", "attestation")
        message = parse_message(raw)
    except InvalidInput:
        return None
    body = burn_as_attested(message.body, burned.burn)
    if body is None or not any(message.nonce):
        return None
    sent = burned.message
    as_sent = replace(message, nonce=sent.nonce, finality_executed=sent.finality_executed, body=sent.body)
    if as_sent != sent:
        return None
    return AttestedMessage(raw, attestation, message.nonce, body.expiration_block)
