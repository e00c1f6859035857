"""Terms of a swap's ticket: bounds of tokens with taxes to the unit, and members that contradict a route."""

from typing import Any

import pytest
from msgspec import Raw

from cambist.codecs.contracts.abi import address_word
from cambist.codecs.messages.market_messages import TransactionBody
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import InvalidInput, RequestError
from cambist.config.sections.partners import ResolvedFee
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.proceeds import least_before_fee, most_before_fee
from cambist.engine.trade.market.ticket import Basis, Parties, SwapTicket, ticket_of
from cambist.engine.trade.routing.search.plan import Taxes
from support.venue.market_place import (
    CHAIN_ID,
    KEYED,
    NOW_MS,
    ONE,
    ROUTER,
    STRANGER,
    USDC,
    USER,
    WETH,
    a_shop,
)

BPS = 10_000
FEE_BPS = 37
PARTIES = Parties(user=USER, tx_origin=USER, receiver=bytes(20), permit=b"", deadline=0)
SELL = f"srcToken=WETH&destToken=USDC&network={CHAIN_ID}&amount={ONE}&version=6.2"
AMOUNTS = [1_000_003, 999_999, 123_456_789, 10**18 + 7]


def a_ticket(side: Side, src_amount: int, dest_amount: int, taxes: Taxes, fee_bps: int = 0) -> SwapTicket:
    """A ticket without slippage."""
    tokens = a_shop().place.tokens.by_address
    body = TransactionBody(
        price_route=Raw(b"{}"),  # not read
        src_token="WETH",
        dest_token="USDC",
        user_address=to_checksum(USER),
    )
    basis = Basis(
        side=side,
        src=tokens[WETH],
        dest=tokens[USDC],
        src_amount=src_amount,
        dest_amount=dest_amount,
        brought=dest_amount,
        taxes=taxes,
        fee=ResolvedFee("anon", "", fee_bps),
    )
    return ticket_of(body, PARTIES, basis)


def after(amount: int, *taxes_bps: int) -> int:
    """Amount that is left of a transfer after these taxes, which round against the owner."""
    for bps in taxes_bps:
        amount = amount * (BPS - bps) // BPS
    return amount


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize(
    "taxes", [Taxes(), Taxes(dest=100), Taxes(dest_dex=33), Taxes(dest=100, dest_dex=33)]
)
def test_a_sale_needs_the_least_that_leaves_its_output_after_taxes(amount: int, taxes: Taxes) -> None:
    ticket = a_ticket(Side.SELL, ONE, amount, taxes, FEE_BPS)
    needed = least_before_fee(ticket.dest_amount, FEE_BPS)
    assert after(ticket.limit, taxes.dest_dex, taxes.dest) >= needed
    assert after(ticket.limit - 1, taxes.dest_dex, taxes.dest) < needed
    arrives = after(amount, taxes.dest_dex)
    assert ticket.expected == arrives - arrives * FEE_BPS // BPS
    assert ticket.src_amount == ONE


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("taxes", [Taxes(), Taxes(src=100), Taxes(src_dex=33), Taxes(src=100, src_dex=33)])
def test_a_purchase_may_cost_what_arrives_at_makers_after_taxes(amount: int, taxes: Taxes) -> None:
    ticket = a_ticket(Side.BUY, amount, ONE, taxes, FEE_BPS)
    assert ticket.src_amount == ticket.expected == amount + amount * FEE_BPS // BPS
    assert ticket.limit == after(most_before_fee(ticket.src_amount, FEE_BPS), taxes.src, taxes.src_dex)
    assert ticket.dest_amount == ONE


PERMIT = to_hex(address_word(STRANGER) + address_word(ROUTER) + bytes(5 * 32))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"side": "BUY"}, "side: expected the route's, SELL"),
        ({"permit": PERMIT}, "permit: expected the owner"),
        ({"deadline": NOW_MS}, "deadline: expected"),
    ],
)
@pytest.mark.parametrize("query", ["", "ignoreChecks=true"])
async def test_what_contradicts_the_route_or_the_user_is_refused_without_checks_too(
    changed: dict[str, Any], told: str, query: str
) -> None:
    shop = a_shop()
    body = {"srcAmount": str(ONE), "slippage": 100, **changed}
    with pytest.raises(RequestError, match=told) as caught:
        await shop.build(shop.prices(SELL), body, query, asker=KEYED)
    assert isinstance(caught.value, InvalidInput)
    assert shop.firm.asked == []
