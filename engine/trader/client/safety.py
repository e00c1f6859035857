"""Checks of a venue's Market answers before the trader signs. Pure.

The venue is not trusted with money: the calldata is decoded, and every member that moves money must equal the
request. The Router takes at most `srcAmount`, and reverts if less than `destAmount` arrives: the agreed bound
is the worst outcome.

    answer     from, to, chainId, value
    calldata   function (SELL or BUY), srcToken, destToken, srcAmount, destAmount, receiver, deadline, fee,
               surplus, permit
    unchecked  the makers' orders: the Router compares the result with destAmount

An envelope with another deadline or permit than requested is refused.

Source: spec 1.9, 1.3.2; contracts/Router.sol.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TypeVar

from ....codecs.amounts import parse_amount
from ....codecs.contracts.abi import decode_uint
from ....codecs.contracts.contract_events import decode_event
from ....codecs.contracts.router_calldata import RouterSwap
from ....codecs.contracts.router_decoding import decode_swap
from ....codecs.messages.market_messages import PriceRoute, TransactionEnvelope
from ....codecs.messages.vocabulary import Side
from ....codecs.trading_token import parse_trading_token
from ....config import limits
from ....config.errors import ChainError, InvalidInput, RequestError, UnsafeTransaction
from ....crypto.addresses import ZERO_ADDRESS, parse_address, to_checksum
from ....crypto.hexadecimal import parse_hex
from ...chain.port import Receipt
from .terms import Terms, Wish, quoted_of

_FEE_MASK = 0xFF  # of partnerAndFee
_TAKES_SURPLUS = 1 << 8

Event = TypeVar("Event")
ComparedMember = tuple[str, object, object]  # member, expected, got


def check_route(route: PriceRoute, wish: Wish, router: bytes) -> None:
    """Check that a venue's Market route is for the requested swap.

    Args:
        router: the Router contract, 20 bytes.

    Raises:
        UnsafeTransaction: a member differs from the request; the error names it.
    """
    fixed = route.src_amount if wish.is_sale else route.dest_amount
    hold(
        [
            ("priceRoute.network", wish.chain_id, route.network),
            ("priceRoute.side", wish.side.value, route.side.value),
            ("priceRoute.srcToken", wish.src.text, token_spelling(route.src_token, "srcToken")),
            ("priceRoute.destToken", wish.dest.text, token_spelling(route.dest_token, "destToken")),
            ("priceRoute.srcDecimals", wish.src.decimals, route.src_decimals),
            ("priceRoute.destDecimals", wish.dest.decimals, route.dest_decimals),
            (f"priceRoute, the {wish.side.value} amount", str(wish.amount), fixed),
            ("priceRoute.contractAddress", to_checksum(router), one_spelling(route.contract_address)),
            ("priceRoute.tokenTransferProxy", to_checksum(router), one_spelling(route.token_transfer_proxy)),
        ]
    )
    for member, amount in (("srcAmount", route.src_amount), ("destAmount", route.dest_amount)):
        with unsafe_if_invalid():
            parse_amount(amount, f"priceRoute.{member}")
    if quoted_of(route, wish.side) == 0:
        raise UnsafeTransaction("priceRoute", "an amount above zero", 0)
    fee_bps_of(route)


def fee_bps_of(route: PriceRoute) -> int:
    """The partner's quoted fee in basis points.

    Raises:
        UnsafeTransaction: the fee is no whole number of basis points, or above PARTNER_FEE_BPS_MAX.
    """
    return bps_of_percent(route.partner_fee, "priceRoute.partnerFee")


def bps_of_percent(percent: Decimal, member: str) -> int:
    """A fee in percent, converted to basis points.

    Args:
        member: member that holds the fee, for errors.

    Raises:
        UnsafeTransaction: the fee is no whole number of basis points, or above PARTNER_FEE_BPS_MAX.
    """
    bps = percent * 100
    if bps != bps.to_integral_value() or not 0 <= bps <= limits.PARTNER_FEE_BPS_MAX:
        most = Decimal(limits.PARTNER_FEE_BPS_MAX) / 100
        raise UnsafeTransaction(member, f"0 to {most} percent", percent)
    return int(bps)


def check_envelope(envelope: TransactionEnvelope, terms: Terms) -> tuple[bytes, int]:
    """Check that a transaction is the agreed swap and does nothing else.

    Returns:
        (calldata, native tokens of the call in wei).

    Raises:
        UnsafeTransaction: a member differs from the agreed terms; the error names it.

    Guarantees: with this release's Router at `terms.router`, the user gives at most `src_amount_max`, and the
        receiver gets at least `dest_amount_min`, or the transaction reverts.
    """
    wish = terms.wish
    hold(
        [
            ("to", to_checksum(terms.router), one_spelling(envelope.to)),
            ("chainId", wish.chain_id, envelope.chain_id),
            ("from", to_checksum(wish.user), one_spelling(envelope.from_address)),
        ]
    )
    with unsafe_if_invalid("data", "calldata"):
        data = parse_hex(envelope.data, "data")
        side, swap = decode_swap(data)
        value_wei = parse_amount(envelope.value, "value")
    hold(_swap_checks(side, swap, terms))
    hold([("value", swap.src_amount if wish.src.is_native else 0, value_wei)])
    return data, value_wei


def _swap_checks(side: Side, swap: RouterSwap, terms: Terms) -> Iterable[ComparedMember]:
    wish = terms.wish
    yield "function", _FUNCTIONS[wish.side], _FUNCTIONS[side]
    yield "srcToken", to_checksum(wish.src.address), to_checksum(swap.src_token)
    yield "destToken", to_checksum(wish.dest.address), to_checksum(swap.dest_token)
    if wish.is_sale:
        yield "srcAmount", wish.amount, swap.src_amount
        if swap.dest_amount < terms.limit:
            yield "destAmount", f"at least {terms.limit}", swap.dest_amount
    else:
        yield "destAmount", wish.amount, swap.dest_amount
        if swap.src_amount > terms.limit:
            yield "srcAmount", f"at most {terms.limit}", swap.src_amount
    receiver = wish.user if swap.receiver == ZERO_ADDRESS else swap.receiver  # as the Router reads it
    yield "receiver", to_checksum(wish.receiver), to_checksum(receiver)
    yield "deadline", terms.deadline, swap.deadline
    yield "partner fee in basis points", terms.fee_bps, swap.partner_and_fee & _FEE_MASK
    yield "share of surplus for others", False, bool(swap.partner_and_fee & _TAKES_SURPLUS)
    yield "permit", f"0x{terms.permit.hex()}", f"0x{swap.permit.hex()}"


_FUNCTIONS = {Side.SELL: "swapExactIn", Side.BUY: "swapExactOut"}


def hold(checks: Iterable[ComparedMember]) -> None:
    """Check that the members of a venue's answer are as expected.

    Args:
        checks: (member's name, expected value, received value) of each.

    Raises:
        UnsafeTransaction: a member differs; the error names the first.
    """
    for member, expected, got in checks:
        if expected != got:
            raise UnsafeTransaction(member, expected, got)


@contextmanager
def unsafe_if_invalid(member: str = "", expected: str = "") -> Iterator[None]:
    """Context manager that refuses a venue's answer if a part of it cannot be decoded.

    Args:
        member, expected: name and expected form of the part, used if the decoder's error names none.

    Raises:
        UnsafeTransaction: the part is invalid.
    """
    try:
        yield
    except InvalidInput as fault:
        raise UnsafeTransaction(fault.field or member, fault.expected or expected, fault.got) from None


def contract_events(receipt: Receipt, contract: bytes, kind: type[Event]) -> Iterator[Event]:
    """Yield the events of one kind that a contract emitted in a transaction.

    The function skips events that cannot be decoded, and yields none if the transaction reverted.

    Args:
        contract: 20 bytes.
    """
    for log in receipt.logs if receipt.succeeded else ():
        if log.address == contract:
            with suppress(InvalidInput):
                event = decode_event(log.topics, log.data)
                if isinstance(event, kind):
                    yield event


def told_address(text: str, member: str) -> bytes:
    """Parse an address of a venue's answer to 20 bytes.

    Args:
        member: member that holds the address, for errors.

    Raises:
        UnsafeTransaction: `text` is no address.
    """
    with unsafe_if_invalid():
        return parse_address(text, member)


def told_number(answer: bytes | Exception, fault: str) -> int:
    """Decode the number that a contract returned.

    Args:
        answer: the contract's answer, or the failure of the call.
        fault: text of the error.

    Raises:
        ChainError: the answer is no number.
    """
    try:
        return decode_uint(b"" if isinstance(answer, Exception) else answer)
    except InvalidInput:
        raise ChainError(fault) from None


def one_spelling(address: str) -> str:
    """An address in its checksum spelling, for comparison; a text that is no address stays unchanged."""
    try:
        return to_checksum(parse_address(address, "address"))
    except InvalidInput:
        return address


def token_spelling(text: str, field: str) -> str:
    """The token parameter of a trading request in one spelling, for comparison; a text that is no token stays
    unchanged."""
    try:
        address = parse_trading_token(text, "srcToken" if field == "srcToken" else "destToken")
    except RequestError:
        return text
    return limits.NATIVE_PLACEHOLDER if text == limits.NATIVE_PLACEHOLDER else to_checksum(address)
