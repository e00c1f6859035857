"""Load of GET /v2/quote as data: the makers' prices, the requests, and the approximate right answers.

    line    A0..A3 -- WETH -- USDC -- B0..B3                each line is quoted by 20 makers, 20 levels a side
    wide    A0..A3 -- WETH, WBTC -- USDC, DAI -- B0..B3     all with all on either side of a line

From any A to any B it is three hops: by one path, or by four, of which two can share an amount. A request
sells or buys, in either direction, an amount that never repeats. Makers differ in price by a few basis
points, so that a larger amount is split. From one version of a maker's prices to the next half of the levels
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
    """A token of the load of GET /v2/quote, and its approximate value in US dollars."""

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
"""Graph of tokens -> (base, quote) of every pair that each maker quotes."""


class Asked(Struct, frozen=True):
    """Parameters of a request for GET /v2/quote.

    Attributes:
        sells: whether `amount` is of `src` (SELL), and not of `dest` (BUY).
        amount: raw units.
    """

    src: Token
    dest: Token
    sells: bool
    amount: int


def asked_for(number: int) -> Asked:
    """Return the parameters of request `number`, for amounts worth about 10 to 20,000 US dollars."""
    turn = number // 4
    one, other = _OUTER_A[turn % 4], _OUTER_B[turn // 4 % 4]
    src, dest = (one, other) if number & 1 else (other, one)
    sells = bool(number & 2)
    fixed = src if sells else dest
    dollars_thousandth = 10_000 + number * 2_654_435_761 % 20_000_000
    millions = dollars_thousandth * 10**fixed.decimals // (1_000 * fixed.usd) // 1_000_000
    return Asked(src, dest, sells, max(millions, 1) * 1_000_000 + number % 1_000_000)


def request(number: int) -> bytes:
    """Return the bytes of HTTP request `number` for a quote."""
    parameters = asked_for(number)
    query = urlencode(
        {
            "chainId": CHAIN_ID,
            "srcToken": parameters.src.address,
            "destToken": parameters.dest.address,
            "amount": parameters.amount,
            "srcDecimals": parameters.src.decimals,
            "destDecimals": parameters.dest.decimals,
            "side": "SELL" if parameters.sells else "BUY",
        }
    )
    return (
        f"GET /v2/quote?{query} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: dapp/1.0\r\n"
        "Accept: application/json\r\nAccept-Encoding: identity\r\n\r\n"
    ).encode()


def expected(parameters: Asked) -> Fraction:
    """Compute the amount that a quote leaves open at mid prices, in raw units."""
    src, dest = parameters.src, parameters.dest
    fixed, other = (src, dest) if parameters.sells else (dest, src)
    return Fraction(parameters.amount * fixed.usd * 10**other.decimals, other.usd * 10**fixed.decimals)


def grids(graph: str, maker: int, version: int) -> dict[tuple[Token, Token], PriceGrid]:
    """Return a version of a maker's prices of all pairs of a graph, by pair of tokens."""
    return {
        pair: PriceGrid(
            tuple(_level(number, pair, maker, at, version, -1) for at in range(LEVELS)),
            tuple(_level(number, pair, maker, at, version, 1) for at in range(LEVELS)),
        )
        for number, pair in enumerate(PAIRS[graph])
    }


def _level(number: int, pair: tuple[Token, Token], maker: int, at: int, version: int, side: int) -> Level:
    """Make a (price, amount) level of a maker's book.

    Levels lie 2 basis points apart, the first 1 to 4 from the mid by maker, and are worth 200 to 4,000
    dollars.
    """
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
