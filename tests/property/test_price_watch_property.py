"""Random books: each offered order is fillable then, and each fillable order is offered before long."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.rounding import mul_div_down, mul_div_up
from cambist.engine.chain.proceeds import of_purchase, of_sale
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import SwapRequest
from support.delta.limit_orders import DELTA_GAS, Watched, a_limit_order
from support.examples import examples
from support.makers.live_books import DAI, ONE, USDC, WETH, a_book, an_index

TOKENS = (WETH, USDC, DAI)
USUAL = {(WETH, USDC): 100, (WETH, DAI): 100, (DAI, USDC): 1}
GAS_PRICE_WEI = 10**9

BOOKS = st.tuples(
    st.sampled_from(["alpha", "beta"]),
    st.sampled_from(list(USUAL)),
    st.integers(-30, 30),  # per mille from the usual price
    st.integers(1, 40),  # tenths
    st.booleans(),
)
ORDERS = st.tuples(
    st.permutations(TOKENS),
    st.integers(-30, 30),
    st.integers(1, 60),
    st.booleans(),
    st.sampled_from([0, 50, 200]),
    st.booleans(),
)
STEPS = st.lists(st.tuples(BOOKS, st.lists(ORDERS, max_size=3), st.integers(0, 800)), min_size=1, max_size=12)


@settings(max_examples=examples(40), deadline=None)
@given(steps=STEPS, gas_price_wei=st.sampled_from([0, GAS_PRICE_WEI]))
def test_offers_are_what_the_books_fill(steps: list[tuple], gas_price_wei: int) -> None:  # type: ignore[type-arg]
    market = Watched(an_index())
    market.gas_price_wei = gas_price_wei
    resting: list[LiveOrder] = []
    everybody: list[LiveOrder] = []
    for book, orders, ms in steps:
        changes(market, *book)
        for order in orders:
            live = an_order(*order)
            resting.append(live)
            everybody.append(live)
            market.rest(live)
        market.pass_ms(ms)
        offers = market.look()
        assert [live for live in offers if not (is_fillable(market, live) or is_faced(live, everybody))] == []
        resting = [live for live in resting if live not in offers]
    market.watch.sweep()
    for _ in range(4):
        market.pass_ms(5_000)
        market.look()
    left = [live for live in resting if live not in market.auctions.offers]
    assert [live for live in left if is_fillable(market, live)] == []


def changes(
    market: Watched, maker: str, pair: tuple[bytes, bytes], mille: int, tenths: int, is_gone: bool
) -> None:
    """A maker's book of a pair becomes another, or goes."""
    if is_gone:
        market.index.drop(maker, *pair)
        return
    price = Fraction(USUAL[pair] * (1_000 + mille), 1_000)
    amount = Fraction(tenths * (1 if WETH in pair else 100), 10)
    bids = f"{decimal(price)} {decimal(amount / 2)} | {decimal(price * 99 / 100)} {decimal(amount)}"
    asks = f"{decimal(price * 1_002 / 1_000)} {decimal(amount)}"
    market.index.put(a_book(maker, *pair, bids=bids, asks=asks))


def decimal(value: Fraction) -> str:
    """Six decimals."""
    whole, fraction = divmod(int(value * 10**6), 10**6)
    return f"{whole}.{fraction:06}"


def an_order(
    tokens: list[bytes], mille: int, tenths: int, buys: bool, fee_bps: int, is_partial: bool
) -> LiveOrder:
    """About the usual price, as if a WETH were 100 dollars."""
    src, dest = tokens[:2]
    worth = {WETH: 100, USDC: 1, DAI: 1}
    dollars = Fraction(tenths * 10)
    src_amount = int(dollars / worth[src] * ONE[src])
    dest_amount = int(dollars * (1_000 + mille) / 1_000 / worth[dest] * ONE[dest])
    return a_limit_order(
        src, dest, src_amount, dest_amount, buys=buys, fee_bps=fee_bps, is_partial=is_partial
    )


def is_fillable(market: Watched, live: LiveOrder) -> bool:
    """By the rules of the contract, for all of it or the parts that are looked at."""
    order, terms = live.order, live.terms
    whole = terms.src_total if terms.side is Side.SELL else terms.dest_total
    least = -(-whole // 10)
    parts = [whole]
    if live.document.partially_fillable:
        parts += [whole >> halves for halves in range(1, 5) if whole >> halves > least] + [least]
    return any(fills(market, live, part) for part in parts) and order is not None


def fills(market: Watched, live: LiveOrder, part: int) -> bool:
    """Whether a part is filled by a plan for it, gas and fee paid."""
    terms = live.terms
    plan = Pathfinder(market.index, WETH).total(
        SwapRequest(
            terms.src_token, terms.dest_token, part, terms.side, gas_price_wei=market.gas_price_wei or 0
        )
    )
    if plan is None:
        return False
    wei = (plan.gas - (182_000 if terms.side is Side.SELL else 198_000) + DELTA_GAS) * (
        market.gas_price_wei or 0
    )
    gas = in_token(market, terms.dest_token if terms.side is Side.SELL else terms.src_token, wei)
    if terms.side is Side.SELL:
        least = mul_div_up(terms.dest_total, part, terms.src_total)
        received = plan.dest_amount - gas
        return received > 0 and received - of_sale(received, 0, least, terms.fee).total >= least
    most = mul_div_down(terms.src_total, part, terms.dest_total)
    return of_purchase(plan.src_amount + gas, 0, most, terms.fee) is not None


def in_token(market: Watched, token: bytes, wei: int) -> int:
    """Cost of gas in raw units of `token`, as quotes compute it; 0 without a book for it."""
    return market.prices.worth_of_gas(token, wei)


def is_faced(live: LiveOrder, others: list[LiveOrder]) -> bool:
    """Whether somebody is there to trade with."""
    ends = live.terms.dest_token, live.terms.src_token
    return any((one.terms.src_token, one.terms.dest_token) == ends for one in others)
