"""Checks the signed RFQ orders that POST /transactions takes in place of a route. Pure.

    read_order_swap    body -> OrderSwap: the fixed amount, the fee, and each order in the Router's form

The Router's executor fills the orders and is their taker on the chain. An order may name no taker (zero), or
the executor as its taker and this user in the lower 160 bits of `nonceAndMeta`, as in a firm quote. An order
for another taker or user is refused.

The list may hold an order only once; takerTokenFillAmount bounds how much of it is filled. An order is
refused if the RFQ contract's products of its amounts would exceed 256 bits.

Source: choices.md#market-swaps; spec 2.3; interop.md 1; contracts/Router.sol, contracts/RfqExecutor.sol.
Choice: A swap of signed orders without `side` is a purchase if destAmount alone is sent, else a sale.
Choice: Signed orders are of one pair, the swap's source and destination, with a native end as its wrapped
    form. Unlisted tokens are traded at the RFQ contract itself.
Choice: A swap of signed orders without a partner has its API key's default partner, and pays the fee of any
    Market swap.
Choice: Signed orders fix the price: if a request has neither `slippage` nor the amount that is not fixed, the
    bound is the orders' present total after the fee.
Choice: POST /transactions takes `orders`, `[{...order, signature, takerTokenFillAmount?}]`, in place of
    `priceRoute`. The Router fills them in turn; each order must let the Router's executor be its taker.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from ....codecs.amounts import parse_positive_amount
from ....codecs.contracts.permit import RFQ_FORMS, permit_form
from ....codecs.eip712_orders.nonce_and_meta import firm_user
from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.eip712_orders.signing_names import NamedDomain
from ....codecs.messages.market_messages import SwapOrder, TransactionBody
from ....codecs.messages.vocabulary import Side
from ....config.errors import InvalidInput, InvalidSignature, UnsupportedChain
from ....config.limits import RFQ_DOMAIN_VERSION, UINT256_MAX
from ....config.sections.partners import ResolvedFee
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import parse_hex
from ..otc.terms import IdentifiedOtc, identify, otc_domain
from ..quote.ask import FeeRules, ends_of
from ..routing.tokens import ListedToken
from ..served.signed_by import OwnerSignature, read_signature
from ..served.token_permits import check_named
from .ticket import Parties, fee_asked, fixed_amount, read_parties

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain


class SignedOrder(Struct, frozen=True):
    """A signed RFQ order from a request.

    Attributes:
        field: path of the order in the request, such as `orders[2]`.
        digest32: EIP-712 hash of the order that the maker signs.
        taker_most: most raw units of the source token that the swap may pay to this order
            (`takerTokenFillAmount`).
        permit: the maker's permit, which lets the RFQ contract take the maker's token; empty without a
            permit.
    """

    field: str
    order: RfqOrder
    digest32: bytes
    signature: OwnerSignature
    taker_most: int
    permit: bytes


class OrderSwap(Struct, frozen=True):
    """A swap through signed orders, checked without reads of the chain.

    Attributes:
        amount: fixed amount: raw units of the source token for a sale, of the destination token for a
            purchase.
        orders: orders in the sequence in which the contract tries them.
    """

    side: Side
    amount: int
    src: ListedToken
    dest: ListedToken
    parties: Parties
    fee: ResolvedFee
    orders: tuple[SignedOrder, ...]


def read_order_swap(served: "ServedChain", body: TransactionBody, fees: FeeRules, now_ms: int) -> OrderSwap:
    """Check and parse a POST /transactions body with signed orders.

    The costly checks of signatures come last.

    Raises:
        UnsupportedChain: the venue does not fill RFQ orders on the chain.
        InvalidInput: a field is invalid; the error names the field and the order.
        InvalidSignature: a signature cannot be by the order's maker.
        InvalidToken, TokenNotSupported, NoRoute: a token, or its decimals, are wrong.
        OrderExpired: the deadline has passed.
        PartnerNotAllowed: the partner's tier forbids the fee or the surplus flags.
    """
    if not (served.settings.rfq and served.rfq and served.executor):
        raise UnsupportedChain(field="chainId", expected="a chain with `rfq`", got=served.chain_id)
    src, dest = ends_of(
        served.tokens, body.src_token, body.dest_token, (body.src_decimals, body.dest_decimals)
    )
    parties = read_parties(served, body, src, now_ms)
    side = body.side or (Side.BUY if body.src_amount is None and body.dest_amount else Side.SELL)
    amount = fixed_amount(body, side)
    fee = fee_asked(body.partner, body, fees)
    name = served.settings.rfq_domain_name
    domain = otc_domain(NamedDomain(name, RFQ_DOMAIN_VERSION, served.chain_id, served.rfq))
    unverified: dict[bytes, tuple[SwapOrder, str, IdentifiedOtc, int, bytes]] = {}
    for at, sent in enumerate(body.orders or ()):
        field = f"orders[{at}]"
        found = identify(sent, domain, f"{field}.")
        order, digest32 = found.order, found.order_hash
        _check_amounts(order, field)
        _check_assets(order, src, dest, field)
        _check_taker(served, order, parties.user, field)
        if digest32 in unverified:
            raise InvalidInput("the order stands twice in the list", field=field)
        most, permit = _taker_most(sent, order, field), _permit(sent, order, served.rfq, field)
        unverified[digest32] = sent, field, found, most, permit
    orders = [
        SignedOrder(
            field=field,
            order=found.order,
            digest32=digest32,
            signature=_signature(sent.signature, found, field),
            taker_most=most,
            permit=permit,
        )
        for digest32, (sent, field, found, most, permit) in unverified.items()
    ]
    return OrderSwap(
        side=side, amount=amount, src=src, dest=dest, parties=parties, fee=fee, orders=tuple(orders)
    )


def _check_amounts(order: RfqOrder, field: str) -> None:
    for name, amount in (("makerAmount", order.maker_amount), ("takerAmount", order.taker_amount)):
        if not amount:
            raise InvalidInput(field=f"{field}.{name}", expected="an amount above 0", got="0")
    if (order.taker_amount + 1) * order.maker_amount > UINT256_MAX:
        raise InvalidInput("the RFQ contract cannot multiply its amounts", field=field)


def _check_assets(order: RfqOrder, src: ListedToken, dest: ListedToken, field: str) -> None:
    for name, got, end, token in (
        ("takerAsset", order.taker_asset, "srcToken", src),
        ("makerAsset", order.maker_asset, "destToken", dest),
    ):
        if got != token.routed:
            expected = f"{to_checksum(token.routed)}, as {end} says"
            raise InvalidInput(field=f"{field}.{name}", expected=expected, got=to_checksum(got))


def _check_taker(served: "ServedChain", order: RfqOrder, user: bytes, field: str) -> None:
    if order.taker == ZERO_ADDRESS:
        return
    if order.taker != served.executor:
        raise InvalidInput(
            f"an order for one taker is filled by that account itself, at the RFQ contract "
            f"{to_checksum(served.rfq)}",
            field=f"{field}.taker",
            expected=f"zero, or the Router's executor {to_checksum(served.executor)}",
            got=to_checksum(order.taker),
        )
    if firm_user(order.nonce_and_meta) != user:
        raise InvalidInput(
            "the order is for another user",
            field=f"{field}.nonceAndMeta",
            expected=f"userAddress {to_checksum(user)} in its lower 160 bits",
            got=to_checksum(firm_user(order.nonce_and_meta)),
        )


def _signature(text: str, found: IdentifiedOtc, field: str) -> OwnerSignature:
    try:
        return read_signature(text, found.order_hash, found.order.maker, signing=found.signing)
    except InvalidSignature as error:
        detail = error.detail.removeprefix(f"{error.message}: ")
        raise InvalidSignature(f"{field}.{detail}") from None


def _taker_most(sent: SwapOrder, order: RfqOrder, field: str) -> int:
    if sent.taker_token_fill_amount is None:
        return order.taker_amount
    most = parse_positive_amount(sent.taker_token_fill_amount, f"{field}.takerTokenFillAmount")
    if most > order.taker_amount:
        raise InvalidInput(
            field=f"{field}.takerTokenFillAmount",
            expected=f"at most its takerAmount, {order.taker_amount}",
            got=most,
        )
    return most


def _permit(sent: SwapOrder, order: RfqOrder, rfq: bytes, field: str) -> bytes:
    """Parse the maker's token permit of an order; empty without a permit.

    Raises:
        InvalidInput: the RFQ contract does not support the permit's form, or the permit names other parties.
    """
    field = f"{field}.permitMakerAsset"
    raw = b"" if sent.permit_maker_asset is None else parse_hex(sent.permit_maker_asset, field)
    if not raw:
        return raw
    if permit_form(raw, field) not in RFQ_FORMS:
        raise InvalidInput(field=field, expected="0, 224 or 256 bytes", got=f"{len(raw)} bytes")
    check_named(raw, order.maker, rfq, "maker", field)
    return raw
