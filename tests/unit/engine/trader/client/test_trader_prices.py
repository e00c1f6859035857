"""A price as a trader is shown it: exact as far as it goes, never zero for what is not."""

import pytest

from cambist.engine.trader.client.terms import TradedToken, price_text

USDC, WETH, WBTC = (
    TradedToken(b"\x01" * 20, "USDC", 6),
    TradedToken(b"\x02" * 20, "WETH", 18),
    TradedToken(b"\x03" * 20, "WBTC", 8),
)
MEME = TradedToken(b"\x04" * 20, "MEME", 0)


@pytest.mark.parametrize(
    ("src", "dest", "src_amount", "dest_amount", "said"),
    [
        (WETH, USDC, 2 * 10**18, 5_000 * 10**6, "1 WETH = 2500 USDC"),
        (WETH, USDC, 3 * 10**18, 10**6, "1 WETH = 0.33333333 USDC"),
        (USDC, WETH, 2_500 * 10**6, 10**18, "1 USDC = 0.0004 WETH"),
        (USDC, WBTC, 95_000 * 10**6, 10**8, "1 USDC = 0.000010526315 WBTC"),
        (MEME, WETH, 10**9, 3 * 10**18, "1 MEME = 0.000000003 WETH"),
        (MEME, WETH, 2**256 - 1, 1, "1 MEME = 0 WETH"),
        (WETH, MEME, 1, 2**256 - 1, f"1 WETH = {(2**256 - 1) * 10**18} MEME"),
        (WETH, MEME, 10**18, 0, "1 WETH = 0 MEME"),
    ],
)
def test_a_price_has_eight_digits_that_count(
    src: TradedToken, dest: TradedToken, src_amount: int, dest_amount: int, said: str
) -> None:
    assert price_text(src, dest, src_amount, dest_amount) == said
