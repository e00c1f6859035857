"""Quotes, terms and results print on two lines, in whole tokens."""

from typing import Any

from cambist.client import (
    DeltaOrderState,
    OfferedTrade,
    OtcOrderState,
    Quote,
    TokenAmount,
    TradeResult,
    TradeVerdict,
)
from cambist.codecs.messages.vocabulary import Mode, OrderStatus, OtcState, Side
from cambist.engine.trader.client.terms import TradedToken

SELL = TokenAmount(1_500_000_000_000_000_000, TradedToken(b"\x01" * 20, "WETH", 18))
BUY = TokenAmount(4_500_000_000, TradedToken(b"\x02" * 20, "USDC", 6))
HASH = "0x" + "12" * 32
UNUSED: Any = None


def test_a_quote() -> None:
    assert (
        str(Quote(mode=Mode.DELTA, sell=SELL, buy=BUY))
        == "1.5 WETH for 4500 USDC\n3000 USDC for 1 WETH, DELTA"
    )


def test_terms_name_the_bound_that_is_signed() -> None:
    bound = TokenAmount(4_477_500_000, BUY.token)
    sale = OfferedTrade(sell=SELL, buy=BUY, side=Side.SELL, bound=bound, detail=UNUSED)
    assert str(sale) == "1.5 WETH for 4500 USDC\nat least 4477.5 USDC"
    purchase = OfferedTrade(sell=SELL, buy=BUY, side=Side.BUY, bound=SELL, detail=UNUSED)
    assert str(purchase) == "1.5 WETH for 4500 USDC\nat most 1.5 WETH"


def result(verdict: TradeVerdict, tx_hash: str) -> TradeResult:
    return TradeResult(
        verdict=verdict,
        spent=SELL,
        received=BUY,
        tx_hash=tx_hash,
        block_number=7,
        gas_wei=1,
        offer=UNUSED,
        outcome=UNUSED,
    )


def test_a_swap_and_its_rehearsal() -> None:
    assert str(result(TradeVerdict.SWAPPED, HASH)) == (
        f"swapped: 1.5 WETH for 4500 USDC\ntransaction {HASH} in block 7"
    )
    assert str(result(TradeVerdict.REHEARSED, "")) == "rehearsed: 1.5 WETH for 4500 USDC"


def order(verdict: TradeVerdict, **more: Any) -> DeltaOrderState:
    members: dict[str, Any] = {"id": "d-1", "order_hash": HASH, "status": OrderStatus.COMPLETED, "reason": ""}
    members |= dict.fromkeys(("spent", "received", "tokens", "offer", "outcome"))
    return DeltaOrderState(verdict=verdict, **(members | more))


def test_a_delta_order() -> None:
    assert str(order(TradeVerdict.SETTLED, spent=SELL, received=BUY)) == (
        "settled: 1.5 WETH for 4500 USDC\norder d-1 COMPLETED"
    )
    unknown = order(TradeVerdict.UNKNOWN, status=OrderStatus.ACTIVE, reason="the node\nis away")
    assert str(unknown).splitlines() == ["unknown: the node\\nis away", "order d-1 ACTIVE"]
    assert str(order(TradeVerdict.REHEARSED, status=None)) == "rehearsed"


def test_an_otc_order() -> None:
    posted = OtcOrderState(
        verdict=TradeVerdict.POSTED,
        order_hash=HASH,
        state=OtcState.PENDING,
        signed="",
        reason="",
        offer=UNUSED,
        outcome=UNUSED,
    )
    assert str(posted) == f"posted\norder {HASH} PENDING"
