"""Transfers of an order across chains, verified by the logs of the transactions that a venue names.

    settlement  OrderBridged of the Delta contract: the signed bridge got all that the settlement received
    delivery    a log of the bridge on the destination answers a log of the settlement: FilledRelay answers
                FundsDeposited, MessageReceived with MintAndWithdraw answers MessageSent; the receiver was
                paid in the output token, or in native tokens that a pool unwrapped
    refund      the pool of the deposit paid the order's owner: ExecutedRelayerRefundRoot, and the token's
                Transfer

The trader does not know the bridge's contract on the destination. A log of a false contract proves nothing
alone: in the same transaction the output token, which the trader signed, has to pay the receiver.

Not verified: whether only one order names a refund. Two orders of one owner may name the same refund, since
Across adds up refunds of an account into one payment.

Source: Across V3 SpokePool; CCTP V2; contracts/lib/Settling.sol, OrderBridged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct, structs

from .....codecs.amounts import parse_amount
from .....codecs.bridges.across import (
    ExecutedRelayerRefundRoot,
    FilledRelay,
    FundsDeposited,
    decode_across_log,
)
from .....codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from .....codecs.bridges.cctp import (
    CctpBurn,
    CctpMessage,
    MessageReceived,
    MessageSent,
    MintAndWithdraw,
    decode_cctp_log,
    parse_burn,
    parse_message,
)
from .....codecs.contracts.abi import address_word, uint_word
from .....codecs.contracts.contract_events import OrderBridged, Transfer
from .....codecs.eip712_orders.delta import AnyDeltaOrder, DeltaBridge
from .....codecs.messages.delta_messages import Refund
from .....codecs.trading_token import NATIVE_TOKEN
from .....config.errors import InvalidInput
from .....crypto.addresses import ZERO_ADDRESS
from .....crypto.hexadecimal import parse_hex, to_hex
from ....chain.index.watch import UNWRAPPED
from ....chain.port import Chain, Receipt
from ..following import balance_remarks, receipt_of
from ..safety import contract_events, one_spelling

LogEvent = TypeVar("LogEvent")


class HandedTransfer(Struct, frozen=True):
    """An amount that a settlement handed to the order's bridge, and the settlement's receipt."""

    event: OrderBridged
    receipt: Receipt


class ProvenAmount(Struct, frozen=True):
    """Raw units that a chain confirms.

    Attributes:
        fault: text of a contradiction between the chain and the venue's record; empty for none.
    """

    amount: int = 0
    fault: str = ""


class TransferProof(Struct, frozen=True):
    """Verifies, by logs of both chains, where the bridged tokens of an order went: delivered or refunded.

    Attributes:
        chain_id: the origin chain.
        receiver: account that the bridge pays on the destination, 20 bytes.
    """

    order: AnyDeltaOrder
    bridge: DeltaBridge
    chain_id: int
    receiver: bytes

    def is_signed(self, event: OrderBridged) -> bool:
        """Whether a transfer has the protocol, destination chain and output token of the signed bridge."""
        bridge = self.bridge
        return (event.protocol_selector, event.destination_chain_id, event.output_token) == (
            bridge.protocol_selector,
            bridge.destination_chain_id,
            bridge.output_token,
        )

    async def deliveries(self, there: Chain, named: Iterable[tuple[HandedTransfer, str]]) -> ProvenAmount:
        """Verify deliveries on the destination chain.

        Args:
            named: each delivered transfer, with the delivery's transaction hash in the venue's record.

        Returns:
            Raw units of the output token that arrived.

        Raises:
            ChainError: the destination chain does not answer.
        """
        arrived: dict[Receipt, int] = {}
        for handed, text in named:
            try:
                receipt = await receipt_of(there, parse_hex(text, "destinationTx"))
            except InvalidInput as fault:
                return ProvenAmount(fault=fault.detail)
            if receipt is None:
                return ProvenAmount(fault=f"chain {there.chain_id} does not know the transaction {text}")
            amount = self._delivered(handed, receipt)
            if amount < handed.event.output:
                promised = f"the bridge promised {handed.event.output}"
                return ProvenAmount(fault=f"the transaction {text} delivers {amount} raw units, {promised}")
            arrived[receipt] = arrived.get(receipt, 0) + amount
        # A payment is compared with the sum of its transaction's deliveries: it proves no two of them.
        for receipt, amount in arrived.items():
            token, name = self.bridge.output_token, to_hex(receipt.tx_hash)
            if _paid(receipt, token, self.receiver) >= amount:
                continue
            if not _unwraps(receipt, token, amount):
                return ProvenAmount(
                    fault=f"the transaction {name} does not pay the receiver {amount} raw units"
                )
            # A pool that unwraps pays native tokens, which leave no log: the receiver's balance has to show
            # the payment, and the first remark is a fault here.
            block = {receipt.block_number: amount}
            for remark in await balance_remarks(there, NATIVE_TOKEN, self.receiver, block):
                return ProvenAmount(fault=remark)
        return ProvenAmount(sum(arrived.values()))

    async def refunds(
        self, chain: Chain, failed: Sequence[HandedTransfer], refunds: Sequence[Refund]
    ) -> ProvenAmount:
        """Verify refunds on the origin chain.

        Args:
            failed: transfers without a delivery.
            refunds: refunds according to the venue's record.

        Returns:
            Raw units of the order's destination token on the origin that came back to the owner.

        Raises:
            ChainError: the origin chain does not answer.
        """
        token = one_spelling(to_hex(self.order.dest_token))
        said: dict[bytes, int] = {}
        for refund in refunds:
            if (refund.chain_id, one_spelling(refund.token)) != (self.chain_id, token):
                named = one_spelling(refund.token)
                return ProvenAmount(
                    fault=f"a refund of {named} on chain {refund.chain_id} is not the order's"
                )
            try:
                tx_hash, amount = parse_hex(refund.tx, "refunds.tx"), parse_amount(refund.amount)
            except InvalidInput as fault:
                return ProvenAmount(fault=fault.detail)
            said[tx_hash] = said.get(tx_hash, 0) + amount
        pools = {found[0] for handed in failed if (found := self._deposit(handed)) is not None}
        # The sum of a transaction's entries is compared with its payment: a record that names one payment in
        # two entries claims more than the transaction paid.
        for tx_hash, amount in said.items():
            receipt = await receipt_of(chain, tx_hash)
            if receipt is None or self._refunded(receipt, pools) < amount:
                unpaid = f"does not refund {amount} raw units to the owner"
                return ProvenAmount(fault=f"the transaction {to_hex(tx_hash)} {unpaid}")
        total, owed = sum(said.values()), sum(handed.event.amount for handed in failed)
        missed = "" if total == owed else f"{total} raw units came back, and {owed} entered the bridge"
        return ProvenAmount(total, missed)

    # --- Across -----------------------------------------------------------------------------------

    def _deposit(self, handed: HandedTransfer) -> tuple[bytes, FundsDeposited] | None:
        """The pool and the event of a transfer's deposit; None if the settlement did not make the deposit."""
        event, order = handed.event, self.order
        ends = tuple(map(address_word, (order.owner, self.receiver, order.dest_token, event.output_token)))
        for pool, deposit in _events(handed.receipt, decode_across_log, FundsDeposited):
            paid = (deposit.depositor, deposit.recipient, deposit.input_token, deposit.output_token)
            amounts = (deposit.deposit_id, deposit.input_amount, deposit.output_amount)
            if paid == ends and amounts == (event.id, event.amount, event.output):
                return pool, deposit
        return None

    def _refunded(self, receipt: Receipt, pools: set[bytes]) -> int:
        """Raw units that the pools of deposits paid back to the owner in a transaction."""
        owner, token = self.order.owner, self.order.dest_token
        leaves = sum(
            amount
            for pool, leaf in _events(receipt, decode_across_log, ExecutedRelayerRefundRoot)
            if pool in pools and leaf.l2_token_address == token
            for receiver, amount in zip(leaf.refund_addresses, leaf.refund_amounts, strict=False)
            if receiver == owner
        )
        return min(leaves, _paid(receipt, token, owner))

    def _delivered(self, handed: HandedTransfer, receipt: Receipt) -> int:
        """Raw units of a transfer that a transaction on the destination delivered."""
        if handed.event.protocol_selector == SELECTORS[BridgeKind.CCTP]:
            return self._minted(handed, receipt)
        found = self._deposit(handed)
        if found is None:
            return 0
        relay, receiver = found[1].relay(self.chain_id), address_word(self.receiver)
        return sum(
            fill.updated_output_amount
            for _, fill in _events(receipt, decode_across_log, FilledRelay)
            if fill.is_of(relay) and fill.updated_recipient == receiver
        )

    # --- CCTP -------------------------------------------------------------------------------------

    def _minted(self, handed: HandedTransfer, receipt: Receipt) -> int:
        """Raw units that a transaction on the destination minted for the message of a transfer."""
        sent = self._message(handed)
        if sent is None:
            return 0
        message, burn = sent
        for _, event in _events(receipt, decode_cctp_log, MessageReceived):
            if (event.source_domain, event.sender) != (message.source_domain, message.sender):
                continue
            with suppress(InvalidInput):
                attested = parse_burn(event.body)
                if structs.replace(attested, fee_executed=0, expiration_block=0) == burn:
                    minted = (self.receiver, handed.event.output_token, burn.amount - attested.fee_executed)
                    mints = _events(receipt, decode_cctp_log, MintAndWithdraw)
                    if any((m.mint_recipient, m.mint_token, m.amount) == minted for _, m in mints):
                        return minted[2]
        return 0

    def _message(self, handed: HandedTransfer) -> tuple[CctpMessage, CctpBurn] | None:
        """The message of a transfer's burn; None if the settlement did not send the message."""
        ends = tuple(map(address_word, (self.order.dest_token, self.receiver)))
        for _, sent in _events(handed.receipt, decode_cctp_log, MessageSent):
            with suppress(InvalidInput):
                message = parse_message(sent.message)
                burn = parse_burn(message.body)
                if (burn.burn_token, burn.mint_recipient, burn.amount) == (*ends, handed.event.amount):
                    return message, burn
        return None


def _events(
    receipt: Receipt, decode: Callable[[Sequence[bytes], bytes], object], kind: type[LogEvent]
) -> Iterator[tuple[bytes, LogEvent]]:
    """Yield (emitting contract, event) for each event of one kind, unless the transaction reverted."""
    for log in receipt.logs if receipt.succeeded else ():
        with suppress(InvalidInput):
            event = decode(log.topics, log.data)
            if isinstance(event, kind):
                yield log.address, event


def _paid(receipt: Receipt, token: bytes, receiver: bytes) -> int:
    """Raw units of a token that a transaction transferred to an account."""
    transfers = contract_events(receipt, token, Transfer)
    return sum(transfer.amount for transfer in transfers if transfer.receiver == receiver)


def _unwraps(receipt: Receipt, token: bytes, amount: int) -> bool:
    """Whether a transaction unwrapped this amount of a wrapped native token.

    Source: WETH9, Withdrawal; aeWETH of Arbitrum, which burns and logs a transfer to the zero address.
    """
    burned = [one.amount for one in contract_events(receipt, token, Transfer) if one.receiver == ZERO_ADDRESS]
    return amount in burned or any(
        log.address == token and log.topics[:1] == (UNWRAPPED,) and log.data == uint_word(amount)
        for log in receipt.logs
        if receipt.succeeded
    )
