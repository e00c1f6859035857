"""Check a maker's firm quote against the request, and name the ways in which a request can fail. Pure.

    asked --> the answer's texts are read --> terms --> digest --> signature: the maker's own key,
                                                                   or for its contract to verify (EIP-1271)

The request fixes one of the two amounts, to the unit; the maker sets the other, above zero. The caller that
knows the user's limit decides whether the price is good enough. `is_drifted` compares the price with the
maker's own book, because a maker that shows one price and signs another is scored for it.

A raw unit of rounding is no drift.

Source: spec 3.9, 3.5; interop.md sections 1 and 4; ARCHITECTURE.md, "Firm quotes".
Choice: A firm quote's expiry may fall short of two minutes by MAKER_FIRM_EXPIRY_GRACE_S, for clocks and
    transit.
Choice: A quote that the user requests for the maker's own account is not used and is no fault of the maker.
Choice: A firm quote's expiry more than a day ahead is refused, as it is probably in milliseconds.
"""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from ...codecs.amounts import parse_amount
from ...codecs.eip712_orders.nonce_and_meta import firm_user
from ...codecs.eip712_orders.rfq import RfqOrder
from ...codecs.messages.maker_messages import FirmOrder
from ...codecs.messages.vocabulary import Side
from ...config import limits
from ...config.errors import InvalidInput, InvalidSignature, MakerError
from ...crypto.addresses import ZERO_ADDRESS, parse_address
from ...crypto.hexadecimal import parse_hex
from ...crypto.signatures import signer
from ..books.fill import base_paid, base_received, quote_paid, quote_received
from ..books.pair_index import LiveBook


class FirmFault(StrEnum):
    """Ways in which a firm quote request ends without a usable quote."""

    REFUSED = "refused"  # an error answer of any status (choices.md#firm-quotes)
    LATE = "late"
    UNAVAILABLE = "unavailable"  # no connection, or no whole HTTP answer on it
    INVALID = "invalid"  # no body of spec 3.7.4, or a quote that differs from the request
    UNFUNDED = "unfunded"  # signed for more than the maker has, or has approved
    DRIFTED = "drifted"  # much worse than the maker's own book
    BLACKLISTED = "blacklisted"  # a success without `order`: the maker does not serve the user
    TOO_STRICT = "too strict"  # a fair price that is nevertheless beyond the user's limit
    OUT_OF_TIME = "out of time"  # the request began when too little time was left
    OVERDRAWN = "overdrawn"  # the maker could pay for each of its quotes of the swap, not for all of them
    SELF_DEALT = "self-dealt"  # the user is the maker's own account
    NO_SHARE = "no share left"  # not asked: the caller may reserve no more of the maker's stock


AGAINST_MAKER = frozenset(
    (
        FirmFault.LATE,
        FirmFault.UNAVAILABLE,
        FirmFault.INVALID,
        FirmFault.UNFUNDED,
        FirmFault.DRIFTED,
    )
)
"""Faults that lower a maker's score. A refusal only bounds the size of later requests to the maker; other
outcomes are caused by the user or the venue.
"""


class FirmFailure(MakerError):
    """Error: a firm-quote request ended without a usable quote.

    Attributes:
        fault: kind of failure.
    """

    def __init__(self, fault: FirmFault, detail: str = "") -> None:
        super().__init__(f"{fault.value}: {detail}" if detail else fault.value)
        self.fault = fault


class FirmAsked(Struct, frozen=True):
    """A firm quote request to a maker. Addresses have 20 bytes.

    Attributes:
        src_token, dest_token: tokens that the user gives and gets: the order's takerAsset and makerAsset.
        side: SELL fixes the amount of `src_token`, BUY that of `dest_token`.
        amount: the fixed amount, raw units.
        user: the user of the swap.
        taker: the contract that will fill the order.
    """

    src_token: bytes
    dest_token: bytes
    side: Side
    amount: int
    user: bytes
    taker: bytes


class CheckedQuote(Struct, frozen=True):
    """A maker's firm quote that was checked and matches the request.

    Attributes:
        digest32: the EIP-712 digest that the maker signed.
        is_proven: whether the signature is by the key of the order's maker; if False, the maker is taken to
            be a contract, which verifies the signature on the chain (EIP-1271).
    """

    order: RfqOrder
    signature: bytes
    digest32: bytes
    is_proven: bool


def check_firm(
    answer: FirmOrder, request: FirmAsked, digest_of: Callable[[RfqOrder], bytes], now_s: int
) -> CheckedQuote:
    """Check a maker's firm quote against the request.

    Args:
        digest_of: order -> digest32, in the domain of the chain's RFQ contract.
        now_s: Unix seconds.

    Returns:
        The quote; its signature is proven, or left for the chain to verify.

    Raises:
        FirmFailure: INVALID, with the field and its expected value, and the received value if the field is
            well-formed; or SELF_DEALT: the user is the maker's own account.

    Not guaranteed: that the maker has the tokens, nor that the order is unfilled.
    """
    try:
        order, signature = _read(answer)
    except InvalidInput as error:
        raise FirmFailure(FirmFault.INVALID, f"{error.field}: expected {error.expected}") from None
    _check_terms(order, request)
    earliest_s = now_s + limits.FIRM_EXPIRY_MIN_S - limits.MAKER_FIRM_EXPIRY_GRACE_S
    if not earliest_s <= order.expiry <= now_s + limits.MAKER_FIRM_EXPIRY_MAX_S:
        raise _wrong(
            "expiry",
            f"{limits.FIRM_EXPIRY_MIN_S} to {limits.MAKER_FIRM_EXPIRY_MAX_S} s ahead",
            f"{order.expiry - now_s}" if order.expiry else "none at all",
        )
    digest32 = digest_of(order)
    return CheckedQuote(order, signature, digest32, _signed_by_key(order.maker, digest32, signature))


def book_amount(live: LiveBook, request: FirmAsked) -> int | None:
    """Compute the amount that the request does not fix, at the prices of the maker's book.

    Returns:
        Raw units that the user would get (SELL) or pay (BUY); None if the book is too shallow.
    """
    book, amount = live.book, request.amount
    if request.side is Side.SELL:
        if request.src_token == live.base:
            return quote_received(book.bids, amount)
        return base_received(book.asks, amount)
    if request.src_token == live.base:
        return base_paid(book.bids, amount)
    return quote_paid(book.asks, amount)


def is_drifted(order: RfqOrder, side: Side, shown: int | None, drift_bps: int) -> bool:
    """Whether a firm quote is worse for the user than the maker's own book, beyond a tolerance.

    Args:
        side: SELL compares the order's maker amount, BUY its taker amount.
        shown: amount that `side` does not fix, in raw units, at the book's prices when the quote was
            requested (`book_amount`); None (a book too shallow) never counts as drift.
        drift_bps: tolerance in basis points of `shown`; one raw unit for rounding is tolerated on top.
    """
    if shown is None:
        return False
    if side is Side.SELL:
        return (order.maker_amount + 1) * limits.BPS_ONE < shown * (limits.BPS_ONE - drift_bps)
    return (order.taker_amount - 1) * limits.BPS_ONE > shown * (limits.BPS_ONE + drift_bps)


def _read(answer: FirmOrder) -> tuple[RfqOrder, bytes]:
    order = RfqOrder(
        nonce_and_meta=parse_amount(answer.nonce_and_meta, "nonceAndMeta"),
        expiry=answer.expiry,
        maker_asset=parse_address(answer.maker_asset, "makerAsset"),
        taker_asset=parse_address(answer.taker_asset, "takerAsset"),
        maker=parse_address(answer.maker, "maker"),
        taker=parse_address(answer.taker, "taker"),
        maker_amount=parse_amount(answer.maker_amount, "makerAmount"),
        taker_amount=parse_amount(answer.taker_amount, "takerAmount"),
    )
    signature = parse_hex(answer.signature, "signature")
    if len(signature) > limits.MAKER_SIGNATURE_BYTES_MAX:
        most = limits.MAKER_SIGNATURE_BYTES_MAX
        raise InvalidInput(field="signature", expected=f"at most {most} bytes")
    return order, signature


def _check_terms(order: RfqOrder, request: FirmAsked) -> None:
    echoes = (
        ("makerAsset", order.maker_asset, request.dest_token),
        ("takerAsset", order.taker_asset, request.src_token),
        ("taker", order.taker, request.taker),
        ("user in nonceAndMeta", firm_user(order.nonce_and_meta), request.user),
    )
    for name, got, wanted in echoes:
        if got != wanted:
            raise _wrong(name, f"0x{wanted.hex()}", f"0x{got.hex()}")
    if order.maker == request.user:
        raise FirmFailure(FirmFault.SELF_DEALT)
    if order.maker in (ZERO_ADDRESS, request.taker):
        raise _wrong("maker", "an account of the maker's", f"0x{order.maker.hex()}")
    sells = request.side is Side.SELL
    fixed, other = ("takerAmount", "makerAmount") if sells else ("makerAmount", "takerAmount")
    amounts = {"takerAmount": order.taker_amount, "makerAmount": order.maker_amount}
    if amounts[fixed] != request.amount:
        raise _wrong(fixed, str(request.amount), str(amounts[fixed]))
    if not amounts[other]:
        raise _wrong(other, "above 0", "0")
    if (order.taker_amount + 1) * order.maker_amount > limits.UINT256_MAX:
        raise _wrong(
            other, "a product with the other amount within the RFQ contract's arithmetic", str(amounts[other])
        )


def _signed_by_key(maker: bytes, digest32: bytes, signature: bytes) -> bool:
    try:
        return signer(digest32, signature) == maker
    except InvalidSignature:
        return False


def _wrong(name: str, expected: str, got: str) -> FirmFailure:
    return FirmFailure(FirmFault.INVALID, f"{name}: expected {expected}, got {got}")
