"""Deliveries on the destination, verified against the deposit or the burned message of the origin. Pure.

    Across   FilledRelay of the configured pool, whose relay data are the deposit's, member for member
    CCTP     MessageReceived of the configured transmitter with the attested nonce and the burned message's
             body, and the mint before it to the beneficiary

A log that fits only in part belongs to another transfer, or is a forgery: anybody may fill a deposit that
does not exist. The watch ignores such a log.

Source: Across `FilledRelay`, `_unwrapwrappedNativeTokenTo`; CCTP V2 `MessageReceived`, `MintAndWithdraw`.
Choice: A fill that pays less or to another account than the deposit says needs the owner's own signature at
    Across: it counts as delivered with the amount that came, and is alarmed.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.across import FilledRelay, RelayData, decode_across_log
from .....codecs.bridges.cctp import (
    MESSAGE_RECEIVED,
    CctpBurn,
    MessageReceived,
    MintAndWithdraw,
    decode_cctp_log,
    parse_burn,
)
from .....codecs.contracts.contract_events import Transfer, decode_event
from .....config.errors import InvalidInput
from ....chain.port import Log
from .origins import BurnedMessage


class Arrival(Struct, frozen=True):
    """A verified delivery of a transfer.

    Attributes:
        log: the log that shows the delivery.
        amount: raw units of the output token that arrived.
        oddity: difference from the deposit, which raises an alarm; empty without a difference.
        is_elsewhere: whether another account than the deposit's recipient got the tokens.
        receiver: account that got the tokens of a fill, 20 bytes; empty for a mint.
    """

    log: Log
    amount: int
    oddity: str = ""
    is_elsewhere: bool = False
    receiver: bytes = b""


def fill_of(log: Log, relay: RelayData, pool: bytes) -> Arrival | None:
    """Read a log of the destination as the delivery of an Across deposit; None for any other log.

    Args:
        pool: Across's contract on the destination.
    """
    if log.address != pool:
        return None
    try:
        event = decode_across_log(log.topics, log.data)
    except InvalidInput:
        return None
    if not isinstance(event, FilledRelay) or not event.is_of(relay):
        return None
    oddities = []
    if event.updated_output_amount < relay.output_amount:
        oddities.append(f"{event.updated_output_amount} came of {relay.output_amount}")
    is_elsewhere = event.updated_recipient != relay.recipient
    if is_elsewhere:
        oddities.append(f"it was paid to 0x{event.updated_recipient[12:].hex()}")
    receiver = event.updated_recipient[12:]
    return Arrival(log, event.updated_output_amount, "; ".join(oddities), is_elsewhere, receiver)


def is_unwrapped(fill: Arrival, receipt_logs: Sequence[Log], token: bytes) -> bool:
    """Whether a fill in the wrapped native token paid native tokens, which leave no log of a transfer.

    Args:
        receipt_logs: all logs of the fill's transaction.
        token: the destination's wrapped native token, 20 bytes.
    """
    events = [decode_event(log.topics, log.data) for log in receipt_logs if log.address == token]
    return not any(
        isinstance(event, Transfer) and event.receiver == fill.receiver and event.amount >= fill.amount
        for event in events
    )


def mint_of(
    log: Log,
    receipt_logs: Sequence[Log],
    burned: BurnedMessage,
    nonce: bytes,
    transmitter: bytes,
    token: bytes,
) -> Arrival | None:
    """Read a log of the destination as the delivery of a CCTP burn; None for any other log.

    Args:
        log: log of a MessageReceived event.
        receipt_logs: all logs of the log's transaction, in their sequence.
        nonce: nonce that the attester gave the message, 32 bytes.
        transmitter: CCTP's MessageTransmitter on the destination.
        token: output token, 20 bytes.
    """
    received = _event(log, transmitter)
    if not isinstance(received, MessageReceived):
        return None
    message = burned.message
    if (received.nonce, received.source_domain, received.sender) != (
        nonce,
        message.source_domain,
        message.sender,
    ):
        return None
    body = burn_as_attested(received.body, burned.burn)
    if body is None:
        return None
    minter, recipient = message.recipient[12:], burned.burn.mint_recipient[12:]
    expected = body.amount - body.fee_executed
    # Backwards: CCTP mints right before it logs the message, so that the nearest mint is the message's own.
    # If that mint differs, an earlier mint of the transaction must not stand in for it.
    for before in reversed([other for other in receipt_logs if other.log_index < log.log_index]):
        if before.address == transmitter and before.topics[:1] == (MESSAGE_RECEIVED.topic,):
            return None  # mints before this log belong to another message
        minted = _event(before, minter)
        if isinstance(minted, MintAndWithdraw):
            is_ours = (minted.mint_recipient, minted.mint_token) == (recipient, token)
            return Arrival(log, minted.amount) if is_ours and minted.amount == expected else None
    return None


def burn_as_attested(body: bytes, burn: CctpBurn) -> CctpBurn | None:
    """Parse a message's body as an attested form of a burn; None if it is another burn.

    The attester fills in fee and expiry, and changes no other member. The fee is at most the burn's maximum.
    """
    try:
        attested = parse_burn(body)
    except InvalidInput:
        return None
    as_sent = replace(attested, fee_executed=burn.fee_executed, expiration_block=burn.expiration_block)
    return attested if as_sent == burn and attested.fee_executed <= burn.max_fee else None


def _event(log: Log, address: bytes) -> object:
    if log.address != address:
        return None
    try:
        return decode_cctp_log(log.topics, log.data)
    except InvalidInput:
        return None
