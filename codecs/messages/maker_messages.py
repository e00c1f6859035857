"""Messages between a market maker and the service, in both directions (spec 3).

Two tiers of decoding. A body is first decoded whole by its type. If that fails and the fault may lie in
single entries, the body is decoded again entry by entry, and the bad entries are named with their reasons, so
that a bad pair costs only itself (interop.md 4). The second decoding also mends what `dialects` knows. A body
that is not the documented object at all, or one with more than REFUSED_ENTRIES_MAX bad entries, is refused. A
large body can be decoded in steps, entry by entry
from the start, so that the driver can let other tasks run.

Our own maker sends the same structs, in a form that strict consumers accept: no keys but the documented ones,
`message` only when set, and `[]` for a side without levels.

Source: spec 3.2 to 3.5, 3.7, 3.11.
Choice: A firm answer with a null `order` is a refusal: only a success without the key `order`, and without an
    `error`, blacklists the user.
Choice: Symbol, name and description of a maker's token are optional, and so is a pair's `liquidityUSD`, which
    only ranks books.
"""

from collections.abc import Callable, Generator, Iterable
from decimal import Decimal
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from ...config.errors import InvalidInput
from ...config.limits import (
    JSON_BYTES_MAX,
    MAKER_BLACKLIST_MAX,
    MAKER_ENTRIES_MAX,
    MAKER_JSON_BYTES_MAX,
    MAKER_LEVELS_MAX,
    REFUSED_ENTRIES_MAX,
)
from .vocabulary import TokenDecimals, TokenType, UnixSeconds
from .wire import check_number, decoder

B = TypeVar("B")

_AT_ONCE_BYTES_MAX = 65_536  # a body up to this size takes half a millisecond

Level = tuple[str, str]  # price, amount; decimal strings
Levels = Annotated[tuple[Level, ...], Meta(max_length=MAKER_LEVELS_MAX)]


class Token(Struct, frozen=True, kw_only=True):
    """A maker's token, entry of `tokens`, keyed by token id (spec 3.2). The only type is ERC20."""

    symbol: str = ""
    name: str = ""
    description: str = ""
    address: str
    decimals: TokenDecimals
    type: TokenType


class Pair(Struct, frozen=True):
    """A maker's pair, entry of `pairs`, keyed by pair id (spec 3.3)."""

    base: str
    quote: str
    liquidity_usd: Decimal = field(name="liquidityUSD", default=Decimal())

    def __post_init__(self) -> None:
        check_number("liquidityUSD", self.liquidity_usd)


class PriceGrid(Struct, frozen=True):
    """Price levels of a pair, bids and asks (spec 3.4).

    An absent `bids` or `asks` means the same as an empty list: no levels. A grid that has neither member, the
    empty object, disables the pair.
    """

    bids: Levels | UnsetType = UNSET
    asks: Levels | UnsetType = UNSET


_Entries = Meta(max_length=MAKER_ENTRIES_MAX)
_Blacklist = Meta(max_length=MAKER_BLACKLIST_MAX)
Tokens = Annotated[dict[str, Token], _Entries]
Pairs = Annotated[dict[str, Pair], _Entries]
Prices = Annotated[dict[str, PriceGrid], _Entries]
Addresses = Annotated[tuple[str, ...], _Blacklist]


class TokensBody(Struct, frozen=True, omit_defaults=True):
    """Answer of GET /tokens (spec 3.7.1)."""

    tokens: Tokens
    message: str | None = None


class PairsBody(Struct, frozen=True, omit_defaults=True):
    """Answer of GET /pairs (spec 3.7.2)."""

    pairs: Pairs
    message: str | None = None


class PricesBody(Struct, frozen=True, omit_defaults=True):
    """Answer of GET /prices (spec 3.7.3)."""

    prices: Prices
    message: str | None = None


class BlacklistBody(Struct, frozen=True, omit_defaults=True):
    """Answer of GET /blacklist (spec 3.7.5): addresses as the maker wrote them, duplicates included."""

    blacklist: Addresses
    message: str | None = None


class StreamMessage(Struct, frozen=True, omit_defaults=True):
    """A maker's WebSocket message: any members of the HTTP answers but `order` (spec 3.11.4 and 3.11.5)."""

    tokens: Tokens | UnsetType = UNSET
    pairs: Pairs | UnsetType = UNSET
    prices: Prices | UnsetType = UNSET
    blacklist: Addresses | UnsetType = UNSET
    message: str | None = None


class FirmRequest(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Body of POST /firm (spec 3.9): one of the two amounts is set, the other is None.

    Not guaranteed: that exactly one amount is set; the handler of the endpoint checks this.
    """

    maker_asset: str
    taker_asset: str
    maker_amount: str | None = None
    taker_amount: str | None = None
    user_address: str
    taker_address: str


class FirmOrder(Struct, frozen=True, rename="camel"):
    """A firm quote's signed RFQ order, member `order` (spec 3.5)."""

    nonce_and_meta: str
    expiry: UnixSeconds
    maker_asset: str
    taker_asset: str
    maker: str
    taker: str
    maker_amount: str
    taker_amount: str
    signature: str


class FirmResponse(Struct, frozen=True, omit_defaults=True):
    """Answer of POST /firm (spec 3.7.4): an order, or none.

    An answer without `order` (UNSET) and without `error` means a blacklisted user. A null `order`, or an
    `error`, means a refusal of this one request.
    """

    order: FirmOrder | UnsetType | None = UNSET
    message: str | None = None
    error: str | None = None


def encode_firm_quote(
    nonce_and_meta: int,
    expiry_s: int,
    maker_asset: str,
    taker_asset: str,
    maker: str,
    taker: str,
    maker_amount: str | int,
    taker_amount: str | int,
    signature: bytes,
) -> bytes:
    """Encode a firm quote as `encode(FirmResponse(FirmOrder(...)))` does, in half the time.

    Not guaranteed: valid JSON, unless the caller has validated the texts as addresses and digits.
    """
    return (
        f'{{"order":{{"nonceAndMeta":"{nonce_and_meta}","expiry":{expiry_s},"makerAsset":"{maker_asset}",'
        f'"takerAsset":"{taker_asset}","maker":"{maker}","taker":"{taker}","makerAmount":"{maker_amount}",'
        f'"takerAmount":"{taker_amount}","signature":"0x{signature.hex()}"}}}}'
    ).encode()


class ErrorBody(Struct, frozen=True):
    """Body of a maker's 4xx and 5xx responses (spec 3.12.1)."""

    error: str


class Decoded(Struct, Generic[B], frozen=True):
    """A maker's message body, decoded, without its bad entries, which are listed separately.

    Attributes:
        body: the body with its valid entries only.
        refused: path of each removed entry (`prices.WETH/USDC`, `blacklist.3`) -> reason.
    """

    body: B
    refused: dict[str, str]


_LOOSE_TYPES: dict[str, Any] = {
    "tokens": Annotated[dict[str, Raw], _Entries],
    "pairs": Annotated[dict[str, Raw], _Entries],
    "prices": Annotated[dict[str, Raw], _Entries],
    "blacklist": Annotated[tuple[Raw, ...], _Blacklist],
    "message": str | None,
}
_ENTRY_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "tokens": decoder(Token, bytes_max=MAKER_JSON_BYTES_MAX, tolerant=True),
    "pairs": decoder(Pair, bytes_max=MAKER_JSON_BYTES_MAX, tolerant=True),
    "prices": decoder(PriceGrid, bytes_max=MAKER_JSON_BYTES_MAX, tolerant=True),
    "blacklist": decoder(str, bytes_max=MAKER_JSON_BYTES_MAX),
}


class BodyDecoder(Generic[B]):
    """Decoder of one of the message types that makers send; bad entries of a message are left out.

    A call of the decoder decodes a message at once; `in_steps` lets other tasks run in between.
    """

    def __init__(self, kind: type[B]) -> None:
        self._kind = kind
        self._decode_whole = decoder(kind, bytes_max=MAKER_JSON_BYTES_MAX)
        self._decode_loose = decoder(_loose(kind), bytes_max=MAKER_JSON_BYTES_MAX, tolerant=True)

    def __call__(self, raw: bytes) -> Decoded[B]:
        """Decode a body, and list its bad entries.

        Raises:
            InvalidInput: the body is no JSON, is malformed outside its entries, or has too many bad entries.
        """
        try:
            return Decoded(self._decode_whole(raw), {})
        except InvalidInput:
            steps = self._entry_by_entry(raw)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                decoded: Decoded[B] = end.value
                return decoded

    def in_steps(self, raw: bytes) -> Generator[None, None, Decoded[B]]:
        """Decode a body in a generator, which yields between entries so that other tasks can run.

        The generator decodes a small body at once, without a yield. The generator's return value, and the
        errors that it raises, are those of a call of the decoder.
        """
        if len(raw) <= _AT_ONCE_BYTES_MAX:
            return self(raw)
        yield
        return (yield from self._entry_by_entry(raw))

    def _entry_by_entry(self, raw: bytes) -> Generator[None, None, Decoded[B]]:
        members = msgspec.structs.asdict(self._decode_loose(raw))
        refused: dict[str, str] = {}
        for key, entries in members.items():
            if isinstance(entries, dict):
                members[key] = dict((yield from _good_entries(key, entries.items(), refused)))
            elif isinstance(entries, tuple):
                good = yield from _good_entries(key, enumerate(entries), refused)
                members[key] = tuple(entry for _, entry in good)
        return Decoded(self._kind(**members), refused)


def _loose(kind: Any) -> type[Struct]:
    """Make a variant of a body's struct type that keeps each entry as undecoded JSON."""
    fields: list[Any] = []
    for member in msgspec.structs.fields(kind):
        loose_type = _LOOSE_TYPES[member.name]
        if member.required:
            fields.append((member.name, loose_type))
        else:
            fields.append((member.name, loose_type | UnsetType, member.default))
    return msgspec.defstruct(f"Loose{kind.__name__}", fields)


def _good_entries(
    key: str, entries: Iterable[tuple[str | int, Raw]], refused: dict[str, str]
) -> Generator[None, None, list[tuple[str | int, Any]]]:
    """Decode entries, one per step, and return the valid ones.

    Args:
        key: member of the body that holds the entries, e.g. `prices`.
        entries: (name or index, JSON) of each entry.
        refused: path of each bad entry -> reason; the function adds the bad entries that it finds.

    Raises:
        InvalidInput: more than REFUSED_ENTRIES_MAX entries are bad.
    """
    decode_entry = _ENTRY_DECODERS[key]
    good = []
    for name, raw in entries:
        try:
            good.append((name, decode_entry(bytes(raw))))
        except InvalidInput as fault:
            refused[f"{key}.{name}"] = fault.detail
            if len(refused) > REFUSED_ENTRIES_MAX:
                raise InvalidInput(f"more than {REFUSED_ENTRIES_MAX} bad entries", field=key) from None
        yield
    return good


decode_tokens = BodyDecoder(TokensBody)
decode_pairs = BodyDecoder(PairsBody)
decode_prices = BodyDecoder(PricesBody)
decode_blacklist = BodyDecoder(BlacklistBody)
decode_stream_message = BodyDecoder(StreamMessage)
decode_firm_request = decoder(FirmRequest, bytes_max=JSON_BYTES_MAX, tolerant=True)
decode_firm_response = decoder(FirmResponse, bytes_max=JSON_BYTES_MAX, tolerant=True)
decode_error_body = decoder(ErrorBody, bytes_max=JSON_BYTES_MAX)
