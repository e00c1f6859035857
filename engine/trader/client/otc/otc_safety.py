"""Checks of OTC orders from a venue or a counterparty before the trader signs or trusts them. Pure.

    posted    the venue's answer is the signed order: every member, hash, signature, permit
    found     an order requested by its hash has that hash, computed here in the domain that the contract
              returns; a file's order is on this chain and has the file's hash
    open      by the chain: the order's time is not over, a rest is left, and the taker may fill
    listed    a listed order belongs to the requested account and chain
    filled    a receipt holds the RFQ contract's event of this order
    cancelled a receipt holds the RFQ contract's events of cancelled orders

A taker is bound only by the members that the hash covers: a venue's states and balances decide nothing.

Source: spec 2.11; interop.md 1; contracts/Rfq.sol.
"""

from msgspec import UNSET, Struct

from .....codecs.contracts.contract_events import OrderCancelled, OrderFilled
from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.otc_messages import StoredOrder
from .....codecs.trading_token import NATIVE_TOKEN
from .....config.errors import ChainError, InvalidInput, UnsafeTransaction, VenueError
from .....crypto.addresses import ZERO_ADDRESS, to_checksum
from .....crypto.hexadecimal import to_hex
from ....chain.port import Receipt
from ..safety import contract_events
from ..terms import TradedToken, amount_text
from ..trusted_contract import SigningContract
from .otc_terms import OtcHandOver, OtcPart, SignedOtc, party, rest_of, signed_of

CLOSED = 1
"""Number by which the RFQ contract records that an order is completely filled or cancelled:
contracts/Rfq.sol, `remaining`."""


class OtcOnChain(Struct, frozen=True):
    """On-chain state of an OTC order at one block.

    Attributes:
        time_s: the block's time, Unix seconds.
        kept: the RFQ contract's record: 0 if never filled or cancelled, 1 if closed, else the unfilled raw
            units plus 1.
        balance, allowance: the maker's, raw units of the token that the maker sells.
    """

    time_s: int
    kept: int
    balance: int
    allowance: int

    @property
    def is_closed(self) -> bool:
        """Whether the order is completely filled or cancelled."""
        return self.kept == CLOSED

    def left(self, order: RfqOrder) -> int:
        """Unfilled raw units of the order's maker amount. The order must not be closed."""
        return self.kept - 1 if self.kept else order.maker_amount

    def is_past(self, order: RfqOrder) -> bool:
        """Whether the order has expired: its expiry is set, and is before the block's time."""
        return bool(order.expiry) and self.time_s > order.expiry


def check_stored(stored: StoredOrder, signed: SignedOtc, contract: SigningContract) -> None:
    """Check that the venue's record of a posted OTC order is the signed order.

    Raises:
        VenueError: a member differs from the signed order; the error names it.
    """
    kept = _signed_of_venue(stored, contract)
    for member in RfqOrder.__struct_fields__:
        _same(member, getattr(signed.order, member), getattr(kept.order, member))
    _same("orderHash", to_hex(signed.order_hash), stored.order_hash.lower())
    _same("chainId", contract.chain_id, stored.chain_id)
    _same("signature", signed.signature, kept.signature)
    _same("permitMakerAsset", signed.permit, kept.permit)


def check_asked(stored: StoredOrder, order_hash: bytes, contract: SigningContract) -> SignedOtc:
    """Check that a venue's answer is the OTC order requested by its hash, and return the order.

    Raises:
        VenueError: the answer is invalid, or on another chain.
        UnsafeTransaction: the answer has another hash.
    """
    signed = _signed_of_venue(stored, contract)
    if stored.chain_id != contract.chain_id:
        raise VenueError(
            f"order {to_hex(order_hash)} is on chain {stored.chain_id}, not on {contract.chain_id}"
        )
    if signed.order_hash != order_hash:
        raise UnsafeTransaction(
            "orderHash of the venue's order", to_hex(order_hash), to_hex(signed.order_hash)
        )
    return signed


def check_handed_over(body: OtcHandOver, contract: SigningContract, name: str) -> SignedOtc:
    """Check the signed OTC order in a file that a maker handed over, and return the order.

    Args:
        name: name of the file, for errors.

    Raises:
        ChainError: the order is invalid, on another chain, or has another hash than the file says.
    """
    try:
        signed = signed_of(body, contract)
    except InvalidInput as fault:
        raise ChainError(f"{name}: {fault.detail}") from None
    if body.chain_id is not UNSET and body.chain_id != contract.chain_id:
        raise ChainError(f"{name}: the order is on chain {body.chain_id}, not on {contract.chain_id}")
    if body.order_hash is not UNSET and body.order_hash.lower() != to_hex(signed.order_hash):
        raise ChainError(
            f"{name}: its orderHash is {body.order_hash}, and that of such an order is "
            f"{to_hex(signed.order_hash)} at the RFQ contract {to_checksum(contract.address)}: "
            "it was changed, or is of another contract"
        )
    return signed


def check_fillable(order: RfqOrder, standing: OtcOnChain, taker: bytes, closed: str = "") -> None:
    """Check that a taker may fill an order by the RFQ contract's rules.

    Args:
        closed: text about how a closed order ended, for the error; empty if not known.

    Raises:
        ChainError: the taker may not fill the order; the error has the reason.
    """
    if order.taker not in (ZERO_ADDRESS, taker):
        raise ChainError(
            f"the order names {to_checksum(order.taker)} as its taker, and the key is of "
            f"{to_checksum(taker)}: the contract refuses any other taker"
        )
    if standing.is_closed:
        raise ChainError(f"the order has no unfilled amount: {closed or 'it was filled or cancelled'}")
    if standing.is_past(order):
        raise ChainError(f"the order expired at {order.expiry}, and the chain's time is {standing.time_s}")
    if not order.maker_amount or not order.taker_amount:
        raise ChainError("the order has an amount of 0: it cannot be filled")
    if NATIVE_TOKEN in (order.maker_asset, order.taker_asset):
        raise ChainError("the order is of the native token, which the RFQ contract cannot move")


def check_funded(
    order: RfqOrder, standing: OtcOnChain, part: OtcPart, permitted: int, gets: TradedToken
) -> bool:
    """Check that the maker's balance, and allowance or permit, cover the maker's amount of a fill.

    Args:
        permitted: raw units that the order's permit would let the contract take.
        gets: the token that the maker gives and the taker gets, for errors.

    Returns:
        Whether the fill needs the permit.

    Raises:
        ChainError: the balance or the allowance is too low; the error has this amount, and the most that can
            be filled.
    """
    needed, allows = part.maker_amount, max(standing.allowance, permitted)
    if min(standing.balance, allows) < needed:
        verb, amount = ("has", standing.balance) if standing.balance < needed else ("allows", allows)
        most = _most(order, min(standing.balance, allows, standing.left(order)))
        raise ChainError(
            f"the maker {to_checksum(order.maker)} {verb} {amount_text(amount, gets)}, and "
            f"{amount_text(needed, gets)} would be taken: {amount_text(most, gets)} at most can be had now"
        )
    return standing.allowance < needed


def check_listed(stored: StoredOrder, chain_id: int, role: str, account: bytes) -> None:
    """Check that an order of a listing is of the requested account, in the requested role, and chain.

    Raises:
        VenueError: the order is of another account or chain.
    """
    named = (stored.maker,) if role == "maker" else (stored.taker, stored.taker_from_meta)
    if stored.chain_id != chain_id or account not in [party(text) for text in named]:
        raise VenueError(
            f"asked for orders of the {role} {to_checksum(account)} on chain {chain_id}, "
            f"the venue answers with {stored.order_hash}, which is none"
        )


def fill_in(
    receipt: Receipt, contract: SigningContract, order_hash: bytes, taker: bytes | None = None
) -> OrderFilled | None:
    """The OrderFilled event of an OTC order in a transaction; None if the transaction did not fill the order.

    Args:
        taker: 20 bytes; None for any taker.
    """
    for event in contract_events(receipt, contract.address, OrderFilled):
        if event.order_hash == order_hash and taker in (None, event.taker):
            return event
    return None


def cancelled_in(receipt: Receipt, contract: SigningContract, maker: bytes) -> frozenset[bytes]:
    """Hashes of a maker's orders that a transaction cancelled."""
    return frozenset(
        event.order_hash
        for event in contract_events(receipt, contract.address, OrderCancelled)
        if event.maker == maker
    )


def _most(order: RfqOrder, backed: int) -> int:
    """Most raw units of the maker's token that a fill can give if the maker can give at most `backed`; 0 if
    none."""
    try:
        return rest_of(order, backed).maker_amount
    except ChainError:
        return 0


def _signed_of_venue(stored: StoredOrder, contract: SigningContract) -> SignedOtc:
    try:
        return signed_of(stored, contract)
    except InvalidInput as fault:
        raise VenueError(f"the venue's order is malformed: {fault.detail}") from None


def _same(member: str, expected: object, got: object) -> None:
    if expected != got:
        raise VenueError(f"the venue's order differs: {member} is {_text(got)}, not {_text(expected)}")


def _text(value: object) -> str:
    return to_hex(value) if isinstance(value, bytes) else str(value)
