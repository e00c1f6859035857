"""Logs of bridges as their contracts write them, for chains made by hand.

deposited(relay, 10)          FundsDeposited of a deposit to chain 10
filled(relay)                 FilledRelay that pays a deposit as it says; members may differ
refunded(usdc, [(alice, 5)])  ExecutedRelayerRefundRoot

A transfer by each bridge: what the origin's logs show of it, to be compared with others.
"""

from collections.abc import Sequence

from cambist.codecs.bridges import across, cctp
from cambist.codecs.bridges.across import RelayData
from cambist.codecs.bridges.cctp import CctpBurn, CctpMessage, pack_burn
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, uint_word, words_tail
from cambist.crypto.keccak import keccak256
from cambist.engine.store.rows import amount32, amount_of
from cambist.engine.trade.delta.bridging.origins import TransferParties
from support.chain.log_emitter import Record
from support.store.stores import ALICE, BOB, USDC, a_delta_order, a_transfer


def deposited(relay: across.RelayData, destination: int) -> Record:
    """The log of a deposit at an origin's pool."""
    data = encode(
        relay.input_token,
        relay.output_token,
        uint_word(relay.input_amount),
        uint_word(relay.output_amount),
        uint_word(0),
        uint_word(relay.fill_deadline),
        uint_word(relay.exclusivity_deadline),
        relay.recipient,
        relay.exclusive_relayer,
        bytes_tail(relay.message),
    )
    indexed = uint_word(destination), uint_word(relay.deposit_id), relay.depositor
    return (across.FUNDS_DEPOSITED.topic, *indexed), data


def filled(relay: across.RelayData, *, output: int | None = None, recipient: bytes | None = None) -> Record:
    """The log of a fill at a destination's pool.

    Args:
        output, recipient: what was paid to whom, if it differs from the deposit.
    """
    data = encode(
        relay.input_token,
        relay.output_token,
        uint_word(relay.input_amount),
        uint_word(relay.output_amount),
        uint_word(1),
        uint_word(relay.fill_deadline),
        uint_word(relay.exclusivity_deadline),
        relay.exclusive_relayer,
        relay.depositor,
        relay.recipient,
        keccak256(relay.message) if relay.message else bytes(32),
        relay.recipient if recipient is None else recipient,
        bytes(32),
        uint_word(relay.output_amount if output is None else output),
        uint_word(0),
    )
    relayer = address_word(b"\x44" * 20)
    indexed = uint_word(relay.origin_chain_id), uint_word(relay.deposit_id), relayer
    return (across.FILLED_RELAY.topic, *indexed), data


def refunded(token: bytes, refunds: Sequence[tuple[bytes, int]], *, bundle: int = 1) -> Record:
    """The log of a leaf of refunds at an origin's pool: (account, amount) each."""
    data = encode(
        uint_word(0),
        words_tail([uint_word(amount) for _, amount in refunds]),
        address_word(token),
        words_tail([address_word(account) for account, _ in refunds]),
        uint_word(0),
        address_word(b"\x55" * 20),
    )
    return (across.EXECUTED_REFUND_ROOT.topic, uint_word(1), uint_word(bundle), uint_word(0)), data


def message_sent(message: cctp.CctpMessage) -> Record:
    """The log of a message at an origin's transmitter."""
    return (cctp.MESSAGE_SENT.topic,), encode(bytes_tail(cctp.pack_message(message)))


def message_received(message: cctp.CctpMessage) -> Record:
    """The log of a message that a destination's transmitter took."""
    data = encode(uint_word(message.source_domain), message.sender, bytes_tail(message.body))
    indexed = address_word(b"\x66" * 20), message.nonce, uint_word(message.finality_executed)
    return (cctp.MESSAGE_RECEIVED.topic, *indexed), data


def minted(recipient: bytes, token: bytes, amount: int, fee: int = 0) -> Record:
    """The log of a mint at a destination's messenger."""
    topics = cctp.MINT_AND_WITHDRAW.topic, address_word(recipient), address_word(token)
    return topics, uint_word(amount) + uint_word(fee)


POOL, TRANSMITTER = b"\x0a" * 20, b"\x0b" * 20
OUTPUT = b"\x0d" * 20
PARTIES = TransferParties(ALICE, BOB, USDC)
SENT = a_transfer(a_delta_order(), log=9, output_token=OUTPUT, bridge_id=amount32(3))
DOMAINS = 7, 9
RELAY = RelayData(
    address_word(ALICE), address_word(BOB), bytes(32), address_word(USDC), address_word(OUTPUT),
    amount_of(SENT.amount), amount_of(SENT.output), SENT.chain_id, 3, 500, 0,
)  # fmt: skip
BURN = CctpBurn(
    address_word(USDC), address_word(BOB), amount_of(SENT.amount), address_word(b"\x0e" * 20), 10 * 10**6
)
MESSAGE = CctpMessage(
    7,
    9,
    bytes(32),
    address_word(b"\x0f" * 20),
    address_word(b"\x1f" * 20),
    bytes(32),
    2_000,
    0,
    pack_burn(BURN),
)
