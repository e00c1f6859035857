"""The fair work of GET /v2/quote as data: the market, the requests, and about what must come back.

    line    A0..A3 -- WETH -- USDC -- B0..B3                each line is quoted by 20 makers, 20 levels a side
    wide    A0..A3 -- WETH, WBTC -- USDC, DAI -- B0..B3     all with all on either side of a line

From any A to any B it is three hops: by one path, or by four, of which two can share an amount. A request
sells or buys, in either direction, an amount that never repeats. Makers differ in price by a few basis
points, so that a larger amount is split. From one version of a maker's grids to the next half of the levels
change.
"""

from fractions import Fraction
from urllib.parse import urlencode

from msgspec import Struct

from cambist.codecs.messages.maker_messages import Level, PriceGrid

CHAIN_ID = 31_337
MAKERS, LEVELS = 20, 20
TOLERANCE = Fraction(1, 50)  # of the mid price: spreads and depth of three hops are well below it


class Token(Struct, frozen=True):
    """A token and its approximate value."""

    symbol: str
    address: str
    decimals: int
    usd: int
    is_stable: bool = False


def _token(number: int, symbol: str, decimals: int, usd: int, *, is_stable: bool = False) -> Token:
    return Token(symbol, f"0x{0x70CE << 64 | number:040x}", decimals, usd, is_stable)


_OUTER_A = [_token(1 + at, f"A{at}", 18, 3 + 5 * at) for at in range(4)]
_NEAR_A = [_token(11, "WETH", 18, 2_500), _token(12, "WBTC", 8, 60_000)]
_NEAR_B = [_token(21, "USDC", 6, 1, is_stable=True), _token(22, "DAI", 18, 1, is_stable=True)]
_OUTER_B = [_token(31 + at, f"B{at}", (18, 6)[at % 2], 2 + 7 * at) for at in range(4)]
TOKENS = [*_OUTER_A, *_NEAR_A, *_NEAR_B, *_OUTER_B]
_WETH, _USDC = _NEAR_A[0], _NEAR_B[0]
LINE, WIDE = "line", "wide"
PAIRS = {
    LINE: [
        *((base, _WETH) for base in _OUTER_A),
        (_WETH, _USDC),
        *((base, _USDC) for base in _OUTER_B),
    ],
    WIDE: [
        *((base, quote) for base in _OUTER_A for quote in _NEAR_A),
        *((base, quote) for base in _NEAR_A for quote in _NEAR_B),
        *((base, quote) for base in _OUTER_B for quote in _NEAR_B),
    ],
}
"""Graph -> (base, quote) of every pair that each maker quotes."""


class Asked(Struct, frozen=True):
    """Parameters of request number n. `amount` is of `src` if it sells, else of `dest`."""

    src: Token
    dest: Token
    sells: bool
    amount: int


def asked_for(number: int) -> Asked:
    """Request `number`, for about 10 to 20,000 dollars."""
    turn = number // 4
    one, other = _OUTER_A[turn % 4], _OUTER_B[turn // 4 % 4]
    src, dest = (one, other) if number & 1 else (other, one)
    sells = bool(number & 2)
    fixed = src if sells else dest
    dollars_thousandth = 10_000 + number * 2_654_435_761 % 20_000_000
    amount = dollars_thousandth * 10**fixed.decimals // (1_000 * fixed.usd) // 1_000_000 * 1_000_000
    return Asked(src, dest, sells, amount + number % 1_000_000)


def request(number: int) -> bytes:
    """Request `number` as it goes over the wire."""
    asked = asked_for(number)
    query = urlencode(
        {
            "chainId": CHAIN_ID,
            "srcToken": asked.src.address,
            "destToken": asked.dest.address,
            "amount": asked.amount,
            "srcDecimals": asked.src.decimals,
            "destDecimals": asked.dest.decimals,
            "side": "SELL" if asked.sells else "BUY",
        }
    )
    return (
        f"GET /v2/quote?{query} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: dapp/1.0\r\n"
        "Accept: application/json\r\nAccept-Encoding: identity\r\n\r\n"
    ).encode()


def expected(asked: Asked) -> Fraction:
    """The other amount at mid prices, in raw units."""
    fixed, other = (asked.src, asked.dest) if asked.sells else (asked.dest, asked.src)
    return Fraction(asked.amount * fixed.usd * 10**other.decimals, other.usd * 10**fixed.decimals)


def grids(graph: str, maker: int, version: int) -> dict[tuple[Token, Token], PriceGrid]:
    """Price grids of a maker at a version, by pair."""
    return {
        pair: PriceGrid(
            tuple(_level(number, pair, maker, at, version, -1) for at in range(LEVELS)),
            tuple(_level(number, pair, maker, at, version, 1) for at in range(LEVELS)),
        )
        for number, pair in enumerate(PAIRS[graph])
    }


def _level(number: int, pair: tuple[Token, Token], maker: int, at: int, version: int, side: int) -> Level:
    """2 basis points a level, the maker's own 1 to 4 from the mid; 200 to 4,000 dollars each."""
    base, quote = pair
    changed = version if at % 2 == version % 2 else version - 1
    jitter = (number * 7_919 + maker * 104_729 + at * 31 + changed * 15_485_863) % 10_000  # of 1e-8
    away = side * ((1 + maker % 4) * 10_000 + at * 20_000 + jitter)
    price = Fraction(base.usd * (10**8 + away), quote.usd * 10**8)
    dollars = 200 + (number * 17 + maker * 131 + at * 29 + changed * 613) % 3_800
    return _decimal(price, 12), _decimal(Fraction(dollars, base.usd), 6)


def _decimal(value: Fraction, digits: int) -> str:
    whole, fraction = divmod(int(value * 10**digits), 10**digits)
    return f"{whole}.{fraction:0{digits}}"
