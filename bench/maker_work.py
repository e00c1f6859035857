"""Load of POST /firm as data: parameters of requests, signed requests that never repeat, and prices.

    number -> Work -> body -> signed request         the load; the number determines the right answer

Body number n names its pair, its direction and which amount it gives, so 10,000 bodies in a row are all
different. Books have 2 x 20 levels. This module does not import the maker: the load generator and every
server read it.
"""

import time

from msgspec import Struct

from cambist.codecs.messages.maker_messages import Level, PriceGrid
from cambist.crypto.hmac_auth import RequestSigner

CHAIN_ID = 31_337
KEY_HEX = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
MAKER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
TAKER = "0x00000000000000000000000000000000000000aa"
DOMAIN, ACCESS_KEY, SECRET = "venue", "key-1", "a secret of the venue's onboarding"
TARGET = f"/{CHAIN_ID}/firm"

PAIRS = 200
LEVELS = 20
QUOTE_TOKENS = 5
BASE_DECIMALS = 18
BLACKLISTED = 10_000
USERS = 20_011  # prime: a user's quotes go through all pairs
_USERS_FROM = 1 << 64  # clear of the blacklist
_WORDS = 1 << 20  # spreads amounts over the depth of a book

_HEAD = b"\r\n".join(
    (
        b"POST %b HTTP/1.1" % TARGET.encode(),
        b"Host: 127.0.0.1:8080",
        b"User-Agent: venue/1.0",
        b"Accept: application/json",
        b"Accept-Encoding: identity",
        b"Content-Type: application/json",
        b"",
    )
)


class Work(Struct, frozen=True):
    """Parameters of a request for a firm quote.

    Attributes:
        pair: number of the token pair.
        gives_base: whether the maker sells the pair's base token.
        names_maker_amount: whether the request fixes makerAmount, and not takerAmount.
        amount: raw units of the fixed amount.
        user: address as text.
    """

    pair: int
    gives_base: bool
    names_maker_amount: bool
    amount: int
    user: str

    @property
    def amount_is_base(self) -> bool:
        """Whether the fixed amount is one of the pair's base token."""
        return self.gives_base is self.names_maker_amount


def work(number: int, pairs: int = PAIRS) -> Work:
    """Return the parameters of request `number` to a maker with `pairs` token pairs."""
    pair, turn = number % pairs, number // pairs
    gives_base, names_maker_amount = bool(turn & 1), bool(turn & 2)
    scatter = number * 2_654_435_761 % _WORDS
    if gives_base is names_maker_amount:  # 0.05 to 105 base tokens
        amount = 10**14 * (500 + scatter) + number
    else:  # 50 to 105,000 quote tokens
        amount = 10 ** (quote_decimals(pair) - 1) * (500 + scatter) + number
    return Work(pair, gives_base, names_maker_amount, amount, f"0x{_USERS_FROM + number % USERS:040x}")


def body(parameters: Work) -> bytes:
    """Encode the body of POST /firm for a request's parameters, as clients write it."""
    base, quote = base_address(parameters.pair), quote_address(parameters.pair)
    maker_asset, taker_asset = (base, quote) if parameters.gives_base else (quote, base)
    kind = "makerAmount" if parameters.names_maker_amount else "takerAmount"
    return (
        f'{{"makerAsset":"{maker_asset}","takerAsset":"{taker_asset}","{kind}":"{parameters.amount}",'
        f'"userAddress":"{parameters.user}","takerAddress":"{TAKER}"}}'
    ).encode()


def signed_headers(raw: bytes, now_ms: int) -> dict[str, str]:
    """Return the four headers that sign the body of a request, by name."""
    return _SIGNER.headers(now_ms, "POST", TARGET, raw)


def signed_request(number: int, now_ms: int, pairs: int = PAIRS) -> bytes:
    """Return the bytes of HTTP request `number` for a firm quote: ten headers, and some 290 bytes of body."""
    raw = body(work(number, pairs))
    signed = "".join(f"{name}: {value}\r\n" for name, value in signed_headers(raw, now_ms).items())
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (_HEAD, signed.encode(), len(raw), raw)


_SIGNER = RequestSigner(DOMAIN, ACCESS_KEY, SECRET.encode())


def wall_ms() -> int:
    """Return the present time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


# --- Tokens and prices --------------------------------------------------------------------------------


def base_address(pair: int) -> str:
    """Return the address of the base token of a pair; five pairs in a row share a base token."""
    return f"0x{0xBA5E << 64 | pair // QUOTE_TOKENS:040x}"


def quote_address(pair: int) -> str:
    """Return the address of the quote token of a pair."""
    return f"0x{0xC0DE << 64 | pair % QUOTE_TOKENS:040x}"


def quote_decimals(pair: int) -> int:
    """Return the decimals of the quote token of a pair: 6 or 18."""
    return 18 if pair % QUOTE_TOKENS % 2 else 6


def pair_id(pair: int) -> str:
    """Return the name of a pair in the maker's settings, such as `B0/Q1`."""
    return f"B{pair // QUOTE_TOKENS}/Q{pair % QUOTE_TOKENS}"


def grid(pair: int, version: int = 0) -> PriceGrid:
    """Return a version of a pair's prices; every second level differs between successive versions."""
    return PriceGrid(
        tuple(_level(pair, at, version, -1) for at in range(LEVELS)),
        tuple(_level(pair, at, version, 1) for at in range(LEVELS)),
    )


def snapshot(version: int, pairs: int) -> dict[str, PriceGrid]:
    """Return one version of the prices of all pairs, by name of the pair."""
    return {pair_id(pair): grid(pair, version) for pair in range(pairs)}


def _level(pair: int, at: int, version: int, side: int) -> Level:
    changes = version * (at & 1)
    jitter = ((pair * LEVELS + at) * 7_919 + changes * 104_729) % 400_000
    price = (1_000 + pair) * 1_000_000 + side * ((at + 1) * 500_000 + jitter)
    amount = (pair * 31 + at * 17 + (side + 1) * 41 + changes * 13) % 10_000
    return f"{price // 1_000_000}.{price % 1_000_000:06}", f"{at + 5}.{amount:04}"
