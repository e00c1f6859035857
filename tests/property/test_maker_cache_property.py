"""After any sequence of messages the index shows what a simple model of spec 3.8 and 3.11 says."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.maker_messages import (
    Decoded,
    Pair,
    PairsBody,
    PriceGrid,
    PricesBody,
    StreamMessage,
    Token,
    TokensBody,
)
from cambist.codecs.messages.vocabulary import TokenType
from cambist.feeds.books.fill import quote_paid, quote_received
from support.makers.maker_feeds import ADDRESSES, DECIMALS, LISTED, STALE_MS, Told

NAMES = tuple(DECIMALS)
IDS = ("1", "2", "3", "4")
GRIDS: dict[str, tuple[PriceGrid, bool]] = {  # whether it makes a book to be routed
    "one": (PriceGrid((("2500", "1"),), (("2501", "1"),)), True),
    "two": (PriceGrid((("2500", "1"), ("2499", "3")), (("2502.5", "1"),)), True),
    "bids": (PriceGrid(bids=(("2500", "1"),)), True),
    "asks": (PriceGrid(asks=(("2501", "1"),)), True),
    "{}": (PriceGrid(), False),
    "empty": (PriceGrid((), ()), False),
    "crossed": (PriceGrid((("2", "1"),), (("2", "1"),)), False),
    "unsorted": (PriceGrid((("2", "1"), ("3", "1"))), False),
}
GARBLED = "garbled"  # an entry that did not decode

_token = st.one_of(
    st.builds(
        lambda name, off: Token(address=ADDRESSES[name], decimals=DECIMALS[name] + off, type=TokenType.ERC20),
        st.sampled_from(NAMES),
        st.sampled_from((0, 0, 0, 1)),
    ),
    st.just(Token(address="0x" + "99" * 20, decimals=18, type=TokenType.ERC20)),
    st.just(GARBLED),
)
_right_tokens = st.just(
    {name: Token(address=ADDRESSES[name], decimals=DECIMALS[name], type=TokenType.ERC20) for name in NAMES}
)
_tokens = st.one_of(_right_tokens, st.dictionaries(st.sampled_from(NAMES), _token, max_size=4))
_pair = st.one_of(
    st.builds(Pair, st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 3).map(Decimal)),
    st.just(GARBLED),
)
_pairs = st.dictionaries(st.sampled_from(IDS), _pair, max_size=4)
_prices = st.dictionaries(st.sampled_from(IDS), st.sampled_from((*GRIDS, "one", "two", GARBLED)), max_size=4)
_content = {"tokens": _tokens, "pairs": _pairs, "prices": _prices}
_later = st.integers(0, STALE_MS)
_step = st.one_of(
    *(
        st.tuples(st.just("poll"), st.just(name), content, st.sampled_from((0, 0, 3_000)))
        for name, content in _content.items()
    ),
    st.tuples(st.just("update"), st.fixed_dictionaries({}, optional=_content)),
    st.tuples(st.just("first"), st.fixed_dictionaries(_content)),
    st.tuples(st.just("later"), _later),
    st.tuples(st.sampled_from(("withhold", "release")), st.sampled_from(("prices", "socket"))),
    st.tuples(st.just("rest"), st.sampled_from(NAMES), st.sampled_from(NAMES), _later),
    st.tuples(st.just("rest maker"), _later),
)


class Model:
    """Spec 3.8 and 3.11, read literally: all messages, and the live books that follow."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.said: dict[str, dict[str, tuple[Any, int]]] = {"tokens": {}, "pairs": {}}
        self.prices: dict[str, tuple[str, int, int]] = {}  # grid, confirmed, heard over the socket
        self.withheld: set[str] = set()
        self.rests: dict[frozenset[bytes], int] = {}
        self.rests_until_ms = 0
        self.first_ms = 0

    def poll(self, name: str, content: dict[str, Any], asked_ms: int) -> None:
        if asked_ms < self.first_ms:
            return  # all there is has been told since
        if name == "prices":
            newer_prices = {key: value for key, value in self.prices.items() if value[2] > asked_ms}
            self.prices = {key: (grid, self.now_ms, -1) for key, grid in content.items()} | newer_prices
            return
        newer = {key: (value, heard) for key, (value, heard) in self.said[name].items() if heard > asked_ms}
        self.said[name] = {key: (value, -1) for key, value in content.items()} | newer

    def hear(self, contents: dict[str, dict[str, Any]], *, is_first: bool) -> None:
        if is_first:
            self.first_ms = self.now_ms
        for name, content in contents.items():
            if name == "prices":
                told = {pair_id: (grid, self.now_ms, self.now_ms) for pair_id, grid in content.items()}
                self.prices = told if is_first else self.prices | told
                continue
            before = self.said[name]
            kept = {} if is_first else dict(before)
            for key, value in content.items():
                known = before.get(key, (GARBLED, 0))[0]
                if not is_first and isinstance(value, Pair) and isinstance(known, Pair):
                    kept[key] = Pair(value.base, value.quote, known.liquidity_usd), self.now_ms
                else:
                    kept[key] = value, self.now_ms
            self.said[name] = kept

    def live(self) -> dict[tuple[bytes, bytes], tuple[PriceGrid, Decimal]]:
        if self.withheld or self.now_ms < self.rests_until_ms:
            return {}
        found: dict[frozenset[bytes], tuple[bytes, bytes, PriceGrid, Decimal]] = {}
        for pair_id, (pair, _) in sorted(self.said["pairs"].items()):
            name, confirmed_ms, _ = self.prices.get(pair_id, ("{}", 0, 0))
            if pair == GARBLED or name == GARBLED or not GRIDS[name][1]:
                continue
            base, quote = self.address(pair.base), self.address(pair.quote)
            if base is None or quote is None or base == quote or confirmed_ms + STALE_MS < self.now_ms:
                continue
            ends = frozenset((base, quote))
            if self.now_ms >= self.rests.get(ends, 0):
                found.setdefault(ends, (base, quote, GRIDS[name][0], pair.liquidity_usd))
        return {(base, quote): (grid, liquidity) for base, quote, grid, liquidity in found.values()}

    def address(self, token_id: str) -> bytes | None:
        token = self.said["tokens"].get(token_id, (GARBLED, 0))[0]
        if token == GARBLED:
            return None
        address = bytes.fromhex(token.address[2:])
        return address if LISTED.get(address) == token.decimals else None


def split(name: str, content: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Good entries, and the refused ones as a decoder gives them."""
    good = {key: value for key, value in content.items() if value != GARBLED}
    if name == "prices":
        good = {key: GRIDS[grid][0] for key, grid in good.items()}
    return good, {f"{name}.{key}": "no" for key, value in content.items() if value == GARBLED}


def message(contents: dict[str, dict[str, Any]]) -> Decoded[StreamMessage]:
    refused: dict[str, str] = {}
    good: dict[str, Any] = {}
    for name, content in contents.items():
        good[name], faults = split(name, content)
        refused |= faults
    return Decoded(StreamMessage(**good), refused)


def steps_of(made: Told, model: Model, step: tuple[Any, ...]) -> Any:
    """Tell the model, and give what the cache has to go through."""
    cache, now_ms = made.cache, model.now_ms
    match step:
        case ("poll", name, content, ago_ms):
            model.poll(name, content, now_ms - ago_ms)
            good, refused = split(name, content)
            if name == "tokens":
                return cache.apply_tokens(Decoded(TokensBody(good), refused), now_ms - ago_ms, now_ms)
            if name == "pairs":
                return cache.apply_pairs(Decoded(PairsBody(good), refused), now_ms - ago_ms, now_ms)
            return cache.apply_prices(Decoded(PricesBody(good), refused), now_ms - ago_ms, now_ms)
        case ("update" | "first" as kind, contents):
            model.hear(contents, is_first=kind == "first")
            return cache.apply_message(message(contents), now_ms, is_first=kind == "first")
        case ("later", ms):
            model.now_ms += ms
        case ("withhold", reason):
            model.withheld.add(reason)
            cache.withhold(reason)
        case ("release", reason):
            model.withheld.discard(reason)
            cache.release(reason)
        case ("rest", base, quote, ms):
            one, other = (bytes.fromhex(ADDRESSES[name][2:]) for name in (base, quote))
            model.rests[frozenset((one, other))] = now_ms + ms
            cache.rest_pair(one, other, now_ms + ms)
        case ("rest maker", ms):
            model.rests_until_ms = now_ms + ms
            cache.rest_maker(now_ms + ms)
    return ()


def seen(made: Told) -> dict[tuple[bytes, bytes], tuple[int | None, int | None, Decimal]]:
    return {
        (live.base, live.quote): (
            quote_received(live.book.bids, 10 ** LISTED[live.base]),
            quote_paid(live.book.asks, 10 ** LISTED[live.base]),
            live.liquidity_usd,
        )
        for live in made.index.books()
    }


def expected(model: Model) -> dict[tuple[bytes, bytes], tuple[int | None, int | None, Decimal]]:
    def best(side: Any, quote: bytes) -> int | None:
        return int(Decimal(side[0][0]) * 10 ** LISTED[quote]) if side else None

    return {
        (base, quote): (best(grid.bids, quote), best(grid.asks, quote), liquidity)
        for (base, quote), (grid, liquidity) in model.live().items()
    }


@given(st.lists(_step, max_size=24))
def test_index_shows_what_the_messages_say(sequence: list[tuple[Any, ...]]) -> None:
    made, model = Told(), Model()
    for step in sequence:
        for _ in steps_of(made, model, step):
            pass
        made.cache.expire(model.now_ms)
        assert seen(made) == expected(model)
        for base, quote in seen(made):
            assert made.index.neighbours(base)[quote] == model.live()[base, quote][1]


@given(st.lists(st.tuples(_step, st.integers(0, 6)), max_size=12), _right_tokens, _pairs, _prices)
def test_work_that_is_abandoned_leaves_nothing_that_polls_do_not_mend(
    sequence: list[tuple[tuple[Any, ...], int]], tokens: Any, pairs: Any, prices: Any
) -> None:
    made, model = Told(), Model()
    for step, count in sequence:
        steps = iter(steps_of(made, model, step))
        for _ in range(count):
            next(steps, None)
        del steps
        made.cache.expire(model.now_ms)
    model.now_ms += 1
    for name, content in (("tokens", tokens), ("pairs", pairs), ("prices", prices)):
        for _ in steps_of(made, model, ("poll", name, content, 0)):
            pass
    made.cache.expire(model.now_ms)
    assert seen(made) == expected(model)
