"""Finds the deposit or burned message of a transfer in the receipt of its settlement on the origin. Pure.

The receipt's logs at the configured contracts are compared with the indexed transfer and the signed order.
The destination's logs are compared with the deposit or message that this module finds.

Source: Across `FundsDeposited`; CCTP V2 `MessageSent`.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from .....codecs.bridges.across import FundsDeposited, RelayData, decode_across_log
from .....codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from .....codecs.bridges.cctp import (
    CctpBurn,
    CctpMessage,
    MessageSent,
    decode_cctp_log,
    parse_burn,
    parse_message,
)
from .....codecs.contracts.abi import address_word
from .....codecs.contracts.contract_events import ORDER_BRIDGED
from .....config.errors import InvalidInput
from ....chain.port import Log
from ....store.rows import BridgeTransfer, amount_of

_KINDS = {selector4: kind for kind, selector4 in SELECTORS.items()}


class TransferParties(Struct, frozen=True):
    """Accounts and token of an order's transfers, 20 bytes each.

    Attributes:
        token: the bridge's token on the origin.
    """

    owner: bytes
    beneficiary: bytes
    token: bytes


class BurnedMessage(Struct, frozen=True):
    """The CCTP message of a transfer, which burned the transfer's tokens on the origin.

    The message is in the form that the origin sent: without nonce, fee and attestation.

    Attributes:
        rank: number of equal messages of the same transaction before this one.
    """

    message: CctpMessage
    burn: CctpBurn
    rank: int


def kind_of_transfer(sent: BridgeTransfer) -> BridgeKind | None:
    """Return the protocol of a transfer; None for a selector of no known protocol."""
    return _KINDS.get(sent.selector4)


def deposit_in(
    logs: Iterable[Log], sent: BridgeTransfer, parties: TransferParties, pool: bytes | None
) -> RelayData | None:
    """Find the Across deposit of a transfer in its settlement's receipt; None if no deposit fits.

    Args:
        pool: Across's contract on the origin; None, which has no logs, without Across.
    """
    for log in logs:
        event = _read(decode_across_log, log) if log.address == pool else None
        if isinstance(event, FundsDeposited) and _is_deposit(event, sent, parties):
            return event.relay(sent.chain_id)
    return None


def burn_in(
    logs: Sequence[Log],
    sent: BridgeTransfer,
    parties: TransferParties,
    transmitter: bytes | None,
    domains: tuple[int | None, int | None],
) -> BurnedMessage | None:
    """Find the CCTP message of a transfer in its settlement's receipt; None if no message fits.

    The contract's CCTP module burns tokens right before the contract logs the transfer: the transfer's
    message is the last message before that log, and comes after the logs of earlier transfers.

    Args:
        transmitter: CCTP's MessageTransmitter on the origin; None, which has no logs, without CCTP.
        domains: Circle's numbers of the origin and the destination; None, which no message names, for a
            chain without CCTP.
    """
    found: list[bytes] = []  # of all transfers of the transaction, in which `rank` counts equal messages
    last: bytes | None = None  # since the log of the transfer before
    for log in sorted(logs, key=lambda log: log.log_index):
        if log.log_index >= sent.log_index:
            break
        if log.topics[:1] == (ORDER_BRIDGED,):
            last = None
        elif log.address == transmitter:
            event = _read(decode_cctp_log, log)
            if isinstance(event, MessageSent):
                last = event.message
                found.append(last)
    if last is None:
        return None
    try:
        message = parse_message(last)
        burn = parse_burn(message.body)
    except InvalidInput:
        return None
    if not _is_burn(message, burn, sent, parties, domains):
        return None
    return BurnedMessage(message, burn, found.count(last) - 1)


def _is_deposit(event: FundsDeposited, sent: BridgeTransfer, parties: TransferParties) -> bool:
    return (
        event.deposit_id == amount_of(sent.bridge_id)
        and event.destination_chain_id == sent.destination_chain_id
        and event.input_amount == amount_of(sent.amount)
        and event.output_amount == amount_of(sent.output)
        and event.input_token == address_word(parties.token)
        and event.output_token == address_word(sent.output_token)
        and event.depositor == address_word(parties.owner)
        and event.recipient == address_word(parties.beneficiary)
    )


def _is_burn(
    message: CctpMessage,
    burn: CctpBurn,
    sent: BridgeTransfer,
    parties: TransferParties,
    domains: tuple[int | None, int | None],
) -> bool:
    return (
        (message.source_domain, message.destination_domain) == domains
        and message.destination_caller == bytes(32)
        and burn.amount == amount_of(sent.amount)
        and burn.amount - burn.max_fee >= amount_of(sent.output)
        and burn.burn_token == address_word(parties.token)
        and burn.mint_recipient == address_word(parties.beneficiary)
    )


def _read(decode: Callable[[Sequence[bytes], bytes], object], log: Log) -> object:
    try:
        return decode(log.topics, log.data)
    except InvalidInput:
        return None
