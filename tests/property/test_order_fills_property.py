"""Computed fills of signed orders equal the RFQ contract's: random orders against its rules.

The other side is a batch of contracts/Rfq.sol, statement by statement: each order changes a copy of the
state, kept if the fill succeeds.
"""

from collections.abc import Sequence
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import RequestError
from cambist.config.limits import UINT256_MAX
from cambist.config.sections.partners import ResolvedFee
from cambist.engine.trade.market.order_fills import FillableOrder, Filled, FillFunds, Looked, filled
from cambist.engine.trade.market.signed_orders import OrderSwap, SignedOrder
from cambist.engine.trade.market.ticket import Parties
from cambist.engine.trade.served.signed_by import read_signature
from support.examples import examples
from support.venue.market_place import USDC, USER, WETH, a_shop

MAKERS = (b"\x71" * 20, b"\x72" * 20)
PARTIES = Parties(user=USER, tx_origin=USER, receiver=bytes(20), permit=b"", deadline=0)
TOKENS = a_shop().place.tokens.by_address


class RefusedError(Exception):
    """A call of the contract is undone."""


class Ledger(Struct):
    """State of the contract and the token.

    Attributes:
        remaining: by order hash, as the contract has it.
        balance, allowance: by maker.
        permitted: allowance set by an order's permit, by order hash; `shown`: makers whose permit was used.
    """

    remaining: dict[bytes, int]
    balance: dict[bytes, int]
    allowance: dict[bytes, int]
    permitted: dict[bytes, int]
    shown: set[bytes]


def try_fill(state: Ledger, one: SignedOrder, taker_most: int, maker_most: int) -> tuple[int, int]:
    """Rfq.tryFill."""
    order, taker_fill = one.order, one.taker_most
    kept = state.remaining.get(one.digest32, 0)
    left = kept - 1 if kept else order.maker_amount
    if maker_most == UINT256_MAX:
        taker_left = order.taker_amount
        if left != order.maker_amount:
            taker_left = left * order.taker_amount // order.maker_amount
        taker_fill = min(taker_fill, taker_most, taker_left)
        maker_fill = taker_fill * order.maker_amount // order.taker_amount
    else:
        maker_fill = min(taker_fill * order.maker_amount // order.taker_amount, maker_most, left)
        taker_fill = (maker_fill * order.taker_amount + order.maker_amount - 1) // order.maker_amount
    if maker_fill == 0 or maker_fill > left:
        raise RefusedError
    state.remaining[one.digest32] = left - maker_fill + 1
    if one.digest32 in state.permitted and order.maker not in state.shown:
        state.shown.add(order.maker)
        state.allowance[order.maker] = state.permitted[one.digest32]
    for funds in (state.balance, state.allowance):
        if funds[order.maker] < maker_fill:
            raise RefusedError
        funds[order.maker] -= maker_fill
    return taker_fill, maker_fill


def batch(state: Ledger, side: Side, orders: Sequence[SignedOrder], amount: int) -> tuple[int, int] | None:
    """Rfq.tryBatchFillOrderTakerAmount or -MakerAmount: amounts taken and given, or None."""
    left, taken, brought = amount, 0, 0
    for one in orders:
        if not left:
            break
        after = deepcopy(state)
        most = (left, UINT256_MAX) if side is Side.SELL else (UINT256_MAX, left)
        try:
            taker_fill, maker_fill = try_fill(after, one, *most)
        except RefusedError:
            continue
        state = after
        taken, brought = taken + taker_fill, brought + maker_fill
        left -= taker_fill if side is Side.SELL else maker_fill
    return None if left else (taken, brought)


SIZES = st.one_of(st.integers(1, 12), st.integers(1, 10**20), st.integers(1, 1 << 120))


@st.composite
def swaps(draw: st.DrawFn) -> tuple[OrderSwap, Looked, Ledger]:
    """A swap, and the same world for either side."""
    found: list[FillableOrder] = []
    state = Ledger({}, {}, {}, {}, set())
    for number in range(draw(st.integers(1, 5))):
        maker_amount, taker_amount = draw(SIZES), draw(SIZES)
        order = RfqOrder(
            number, 0, USDC, WETH, draw(st.sampled_from(MAKERS)), bytes(20), maker_amount, taker_amount
        )
        digest32 = number.to_bytes(32, "big")
        taker_most = draw(st.one_of(st.just(taker_amount), st.integers(1, taker_amount)))
        signed = SignedOrder(
            f"orders[{number}]",
            order,
            digest32,
            read_signature("0x", digest32, order.maker),
            taker_most,
            b"x",
        )
        left = draw(st.one_of(st.just(maker_amount), st.integers(1, maker_amount)))
        if left != maker_amount:
            state.remaining[digest32] = left + 1
        permitted = draw(st.one_of(st.none(), st.integers(0, 2 * maker_amount)))
        if permitted is not None:
            state.permitted[digest32] = permitted
        found.append(FillableOrder(signed, left, permitted))
    sizes = [one.signed.order.maker_amount for one in found]
    most = sum(sizes)
    for maker in MAKERS:
        for funds in (state.balance, state.allowance):
            funds[maker] = draw(
                st.one_of(st.just(2 * most), st.integers(0, most), st.sampled_from([*sizes, most - 1]))
            )
    side = draw(st.sampled_from(Side))
    ends = [one.signed.order.taker_amount if side is Side.SELL else one.maker_left for one in found]
    amount = draw(st.one_of(st.integers(1, sum(ends)), st.sampled_from([*ends, sum(ends)])))
    funds_of = {maker: FillFunds(state.balance[maker], state.allowance[maker]) for maker in MAKERS}
    orders = tuple(one.signed for one in found)
    fee = ResolvedFee("anon", "", 1)
    swap = OrderSwap(side, amount, TOKENS[WETH], TOKENS[USDC], PARTIES, fee, orders)
    return swap, Looked(tuple(found), (), funds_of), state


def outcome(swap: OrderSwap, looked: Looked) -> Filled | None:
    try:
        return filled(swap, looked)
    except RequestError:
        return None


@settings(max_examples=examples(100))
@given(swaps())
def test_orders_come_to_what_the_contract_makes_of_them(found: tuple[OrderSwap, Looked, Ledger]) -> None:
    swap, looked, state = found
    expected = batch(state, swap.side, swap.orders, swap.amount)
    done = outcome(swap, looked)
    assert (None if done is None else (done.basis.src_amount, done.basis.dest_amount)) == expected


@given(swaps())
def test_what_is_filled_is_the_whole_amount_or_nothing(found: tuple[OrderSwap, Looked, Ledger]) -> None:
    swap, looked, _ = found
    done = outcome(swap, looked)
    if done is not None:
        fixed = done.basis.src_amount if swap.side is Side.SELL else done.basis.dest_amount
        assert fixed == swap.amount
        assert done.basis.brought == done.basis.dest_amount > 0
        assert [info.order for info in done.hop.orders] == [one.order for one in swap.orders]
