"""The order that a trader expects equals the order that the venue builds, to the unit, for every wish."""

import itertools

import pytest
from msgspec import Raw, convert, structs

from cambist.codecs.eip712_orders.delta import DeltaOrder, TwapBuyOrder, TwapOrder
from cambist.codecs.messages.delta_messages import BuildResponse, DeltaBlock, decode_build_body
from cambist.codecs.messages.vocabulary import OrderType, Side
from cambist.codecs.messages.wire import encode
from cambist.config.chains import ChainSettings
from cambist.config.errors import UnsafeTransaction
from cambist.config.sections.partners import RegisteredPartner
from cambist.config.tokens import TokenSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.delta.building.build import BuildTerms, built, delta_domain_of
from cambist.engine.trade.delta.orders.terms import next_part
from cambist.engine.trade.delta.orders.terms import terms_of as venue_terms_of
from cambist.engine.trade.quote.ask import FeeRules
from cambist.engine.trade.routing.tokens import ListedToken
from cambist.engine.trader.client.order.order_safety import check_build, check_price
from cambist.engine.trader.client.order_terms import (
    OrderWish,
    SignableTerms,
    SigningInputs,
    build_body,
    terms_of,
)
from cambist.engine.trader.client.schedule import Schedule
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trusted_contract import SigningContract

DELTA, OWNER, OTHER = b"\xde" * 20, b"\x0a" * 20, b"\x0b" * 20
SRC, DEST = TradedToken(b"\x51" * 20, "SRC", 18), TradedToken(b"\xd5" * 20, "DEST", 6)
CHAIN_ID, NOW_S = 31_337, 1_700_000_000
DOMAIN = delta_domain_of(CHAIN_ID, DELTA, ChainSettings(name="test"))
NO_PARTNERS = FeeRules({}, {})
CONTRACT = SigningContract(CHAIN_ID, DELTA, DOMAIN.separator)


def a_wish(side: Side, **changed: object) -> OrderWish:
    told = {
        "chain_id": CHAIN_ID,
        "src": SRC,
        "dest": DEST,
        "side": side,
        "amount": 1_000_003 if side is Side.SELL else 777_777_777,
        "slippage_bps": 37,
        "limit_amount": None,
        "type": OrderType.MARKET,
        "owner": OWNER,
        "beneficiary": OWNER,
        "partner": "",
        "life_s": 600,
    }
    return OrderWish(**(told | changed))  # type: ignore[arg-type]


def a_block(wish: OrderWish, fee_percent: float = 0.01) -> DeltaBlock:
    fixed = wish.priced_amount
    src, dest = (fixed, 2_345_678_901) if wish.side is Side.SELL else (987_654_321, fixed)
    source = {"chainId": CHAIN_ID, "address": wish.src.text}
    destination = {"chainId": CHAIN_ID, "address": wish.dest.text}
    leg = {
        "input": {"token": source, "amount": str(src), "amountUSD": "1"},
        "output": {"token": destination, "amount": str(dest), "amountUSD": "1"},
    }
    gas = {"token": destination, "amount": "1", "amountUSD": "0"}
    told = {
        "id": "1",
        "side": wish.side.value,
        "inputToken": source,
        "outputToken": destination,
        "route": {"origin": leg, "destination": leg, "bridge": None, "fees": {"gas": gas, "bridge": []}},
        "partner": {"name": "anon", "feePercent": str(fee_percent)},
        "spender": to_checksum(DELTA),
    }
    return convert(told, DeltaBlock, strict=False)


def the_venues_word(
    wish: OrderWish, signing: SigningInputs, fees: FeeRules
) -> tuple[SignableTerms, BuildResponse]:
    """Terms at a price, and what our own venue builds for them."""
    block = a_block(wish)
    terms = terms_of(wish, block, DELTA, check_price(block, wish, DELTA))
    body = decode_build_body(encode(build_body(terms, signing, Raw(encode(block.route)))))
    src, dest = [
        ListedToken(
            token.address,
            token.address,
            token.symbol,
            token.decimals,
            token.text,
            TokenSettings(
                chain_id=CHAIN_ID, address=token.text, symbol=token.symbol, decimals=token.decimals
            ),
        )
        for token in (wish.src, wish.dest)
    ]
    return terms, built(body, block.route, BuildTerms(DOMAIN, src, dest, block.side, fees, NOW_S, 1))


BENEFICIARIES, LIMITS = (OWNER, OTHER), (None, 123_456_789)


@pytest.mark.parametrize(
    ("side", "beneficiary", "limit_amount"), list(itertools.product(Side, BENEFICIARIES, LIMITS))
)
def test_our_own_venue_builds_what_is_expected(
    side: Side, beneficiary: bytes, limit_amount: int | None
) -> None:
    wish = a_wish(side, beneficiary=beneficiary, limit_amount=limit_amount)
    signing = SigningInputs(NOW_S + 600, 2**256 - 5)
    terms, response = the_venues_word(wish, signing, NO_PARTNERS)
    checked = check_build(response, terms, signing, CONTRACT)
    assert isinstance(checked.order, DeltaOrder)
    assert checked.order.nonce == 2**256 - 5
    assert checked.order.beneficiary == beneficiary
    fixed, bound = checked.order.src_amount, checked.order.dest_amount
    if side is Side.BUY:
        fixed, bound = bound, fixed
    assert fixed == wish.amount
    quoted = 2_345_678_901 * 9_963 // 10_000 if side is Side.SELL else 987_654_321 * 10_037 // 10_000
    assert bound == (limit_amount or quoted)


@pytest.mark.parametrize(
    ("side", "beneficiary", "limit_amount"), list(itertools.product(Side, BENEFICIARIES, LIMITS))
)
def test_our_own_venue_builds_the_twap_that_is_expected(
    side: Side, beneficiary: bytes, limit_amount: int | None
) -> None:
    schedule = Schedule(7, 60)
    wish = a_wish(side, beneficiary=beneficiary, limit_amount=limit_amount, schedule=schedule)
    signing = SigningInputs(NOW_S + 600, 2**256 - 5)
    terms, response = the_venues_word(wish, signing, NO_PARTNERS)
    order = check_build(response, terms, signing, CONTRACT).order
    assert isinstance(order, TwapOrder if side is Side.SELL else TwapBuyOrder)
    assert (order.num_slices, order.interval, order.beneficiary) == (7, 60, beneficiary)
    held_to = venue_terms_of(order)
    assert held_to.src_total == terms.src_amount_max
    assert held_to.dest_total == terms.dest_amount_min
    first = next_part(order, 0)
    assert first is not None
    assert first.src_amount == terms.src_amount_first
    assert terms.slice_limit == (first.dest_amount if side is Side.SELL else first.src_amount)
    if limit_amount is not None:
        assert terms.limit >= limit_amount if side is Side.SELL else terms.limit == limit_amount
    elif side is Side.SELL:
        assert first.dest_amount == 2_345_678_901 * 9_963 // 10_000
    else:
        assert 0 <= 987_654_321 * 10_037 // 10_000 - first.src_amount <= 1


def test_a_schedule_that_is_not_the_one_that_was_agreed_to_is_refused() -> None:
    wish = a_wish(Side.SELL, schedule=Schedule(7, 60))
    signing = SigningInputs(NOW_S + 600, 1)
    terms, _ = the_venues_word(wish, signing, NO_PARTNERS)
    for schedule, member in ((Schedule(7, 61), "interval"), (Schedule(8, 60), "numSlices")):
        other = structs.replace(wish, schedule=schedule, amount=schedule.slices * wish.priced_amount)
        _, response = the_venues_word(other, signing, NO_PARTNERS)
        with pytest.raises(UnsafeTransaction, match=rf"toSign\.value\.{member}"):
            check_build(response, terms, signing, CONTRACT)
    _, whole = the_venues_word(a_wish(Side.SELL), signing, NO_PARTNERS)
    with pytest.raises(UnsafeTransaction, match=r"names of toSign\.types"):
        check_build(whole, terms, signing, CONTRACT)


def test_a_partner_whose_fee_is_above_the_one_that_was_quoted_is_refused() -> None:
    wish = a_wish(Side.SELL, partner="wallet")
    fees = FeeRules({"wallet": RegisteredPartner(address=to_checksum(OTHER), fee_bps=50)}, {})
    signing = SigningInputs(NOW_S + 600, 1)
    terms, response = the_venues_word(wish, signing, fees)
    with pytest.raises(UnsafeTransaction, match="partner fee in basis points: expected at most 1, got 50"):
        check_build(response, terms, signing, CONTRACT)


def test_a_sale_gives_its_amount_at_most_and_a_purchase_its_bound() -> None:
    sale, purchase = a_wish(Side.SELL), a_wish(Side.BUY)
    selling = terms_of(sale, a_block(sale), DELTA, 1)
    buying = terms_of(purchase, a_block(purchase), DELTA, 1)
    assert (selling.src_amount_max, selling.dest_amount_min) == (sale.amount, selling.limit)
    assert (buying.src_amount_max, buying.dest_amount_min) == (buying.limit, purchase.amount)
    assert (selling.expected, buying.expected) == (2_345_678_901, 987_654_321)
