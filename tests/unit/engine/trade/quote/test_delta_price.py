"""The Delta price: gas and fee, on the side that is not fixed; costs that exceed the trade are left out."""

from collections.abc import Mapping
from decimal import Decimal

import pytest

from cambist.codecs.canonical_json import canonical
from cambist.codecs.messages.delta_messages import Route
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.messages.wire import encode
from cambist.config.errors import GasCostExceedsTradeAmount, PricingError
from cambist.config.sections.partners import ResolvedFee
from cambist.config.tokens import TokenSettings
from cambist.engine.trade.quote.delta_price import (
    DeltaAsk,
    canonical_route,
    delta_block,
    gas_in_token,
    priced,
)
from cambist.engine.trade.routing.search.plan import HopPlan, MakerShare, PathPlan, RoutePlan
from cambist.engine.trade.routing.tokens import ListedToken
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from cambist.feeds.books.usd_prices import UsdPrices

WETH, USDC, ODD = b"\xe0" * 20, b"\x5d" * 20, b"\x0d" * 20
ONE, USD = 10**18, 10**6
GWEI = 10**9


def token(address: bytes, decimals: int) -> ListedToken:
    text = f"0x{address.hex()}"
    listed = TokenSettings(chain_id=1, address=text, symbol=text[2:6], decimals=decimals)
    return ListedToken(address, address, listed.symbol, decimals, text, listed)


TOKENS = {WETH: token(WETH, 18), USDC: token(USDC, 6), ODD: token(ODD, 0)}


def prices(usd_of_weth: str = "2500") -> UsdPrices:
    """WETH against USDC, at one price; the odd token has none."""
    index = PairIndex()
    grid = PriceGrid(bids=((usd_of_weth, "1"),), asks=((str(Decimal(usd_of_weth) + Decimal("0.0001")), "1"),))
    index.put(LiveBook("m", WETH, USDC, build_book(grid, 18, 6), Decimal()))
    decimals: Mapping[bytes, int] = {WETH: 18, USDC: 6, ODD: 0}
    return UsdPrices(index, decimals, frozenset({USDC}))


def a_plan(side: Side, src: bytes, src_amount: int, dest: bytes, dest_amount: int) -> RoutePlan:
    hop = HopPlan(src, dest, src_amount, dest_amount, (MakerShare("m", src_amount, dest_amount),))
    return RoutePlan(side, src_amount, dest_amount, 200_000, (PathPlan(src_amount, dest_amount, (hop,)),))


def an_ask(side: Side, src: bytes, dest: bytes, *, gas_wei: int, fee_bps: int = 1) -> DeltaAsk:
    fee = ResolvedFee("anon", "", fee_bps)
    return DeltaAsk(1, side, TOKENS[src], TOKENS[dest], WETH, gas_wei, fee, "0xdelta")


@pytest.mark.parametrize(
    ("side", "src_amount", "dest_amount", "gas", "fee_bps", "expected"),
    [
        (Side.SELL, 100, 10_000, 0, 0, (100, 10_000)),
        (Side.SELL, 100, 10_000, 0, 1, (100, 9_999)),
        (Side.SELL, 100, 10_000, 1, 1, (100, 9_999)),  # the fee of 9,999 is 0.9999: nothing
        (Side.SELL, 100, 10_000, 5_000, 200, (100, 4_900)),
        (Side.SELL, 100, 10_000, 9_999, 200, (100, 1)),
        (Side.BUY, 10_000, 100, 0, 0, (10_000, 100)),
        (Side.BUY, 10_000, 100, 0, 1, (10_001, 100)),
        (Side.BUY, 9_998, 100, 1, 1, (9_999, 100)),
        (Side.BUY, 10_000, 100, 9_999, 200, (20_398, 100)),
    ],
)
def test_gas_first_and_then_the_fee_of_what_is_left(
    side: Side, src_amount: int, dest_amount: int, gas: int, fee_bps: int, expected: tuple[int, int]
) -> None:
    plan = a_plan(side, WETH, src_amount, USDC, dest_amount)
    assert priced(side, plan, gas, fee_bps) == expected


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("gas", [1_000, 1_001, 10**30])
def test_gas_that_eats_the_trade_is_refused(side: Side, gas: int) -> None:
    with pytest.raises(GasCostExceedsTradeAmount, match=f"^Gas cost exceeds trade amount: .*{gas}"):
        priced(side, a_plan(side, WETH, 1_000, USDC, 1_000), gas, 0)


def test_a_sale_pays_gas_in_what_it_receives() -> None:
    plan = a_plan(Side.SELL, WETH, ONE, USDC, 2_500 * USD)
    block = delta_block(an_ask(Side.SELL, WETH, USDC, gas_wei=ONE // 1_000), plan, prices(), "an id")
    gas = block.route.fees.gas
    assert gas.token == block.output_token
    assert gas.amount == "2500001"  # 2.50000005 dollars, rounded up
    left = 2_500 * USD - 2_500_001
    assert block.route.destination.output.amount == str(left - left // 10_000)
    assert block.route.destination.output.amount_usd == f"{Decimal(left - left // 10_000).scaleb(-6):.10f}"
    assert block.route.origin.input.amount == str(ONE)
    assert block.partner.fee_percent == Decimal("0.01")


def test_a_purchase_pays_gas_in_what_it_gives() -> None:
    plan = a_plan(Side.BUY, USDC, 2_500 * USD, WETH, ONE)
    block = delta_block(an_ask(Side.BUY, USDC, WETH, gas_wei=ONE // 1_000), plan, prices(), "an id")
    assert block.route.fees.gas.token == block.input_token
    spent = 2_500 * USD + 2_500_001
    assert block.route.origin.input.amount == str(spent + spent // 10_000)
    assert block.route.origin.output.amount == str(ONE)


def test_gas_in_the_native_token_needs_no_price() -> None:
    empty = UsdPrices(PairIndex(), {}, frozenset())
    assert gas_in_token(TOKENS[WETH], 123 * GWEI, WETH, empty) == 123 * GWEI
    plan = a_plan(Side.SELL, ODD, 7, WETH, ONE)
    block = delta_block(an_ask(Side.SELL, ODD, WETH, gas_wei=GWEI), plan, empty, "an id")
    assert block.route.origin.input.amount_usd == "0"


def test_gas_that_cannot_be_valued_is_a_reason() -> None:
    with pytest.raises(PricingError, match=r"^Price not available: "):
        gas_in_token(TOKENS[ODD], GWEI, WETH, prices())


def test_gas_rounds_up_in_a_token_without_decimals() -> None:
    index = PairIndex()
    book = build_book(PriceGrid(bids=(("2", "1"),), asks=(("2.0001", "1"),)), 0, 6)
    index.put(LiveBook("m", ODD, USDC, book, Decimal()))
    weth = build_book(PriceGrid(bids=(("2500", "1"),), asks=(("2500.0001", "1"),)), 18, 6)
    index.put(LiveBook("m", WETH, USDC, weth, Decimal()))
    usd = UsdPrices(index, {ODD: 0, USDC: 6, WETH: 18}, frozenset({USDC}))
    assert gas_in_token(TOKENS[ODD], ONE // 1_000, WETH, usd) == 2  # 2.50 dollars of 2.00005 each


def test_the_bytes_that_are_kept_are_the_canonical_ones() -> None:
    plan = a_plan(Side.SELL, WETH, ONE, USDC, 2_500 * USD)
    route = delta_block(an_ask(Side.SELL, WETH, USDC, gas_wei=GWEI), plan, prices(), "an id").route
    assert isinstance(route, Route)
    assert canonical_route(route) == canonical(encode(route))
