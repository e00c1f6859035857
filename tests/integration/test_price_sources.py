"""Price sources as the maker runs them: by name, on real files, through to books that quote."""

import re
import tomllib
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio.testing

from cambist.codecs.messages.maker_messages import PriceGrid, PricesBody
from cambist.codecs.messages.wire import encode
from cambist.config.errors import ConfigError
from cambist.config.settings import read_settings
from cambist.engine.host.process.credentials import check_addresses
from cambist.engine.roles.maker.prices.random_walk import RandomWalk
from cambist.engine.roles.maker.prices.replay import encode_record
from cambist.engine.roles.maker.prices.source import load_source, normalise_grid
from cambist.feeds.books.book import Book, build_book
from cambist.feeds.books.fill import quote_paid, quote_received
from support.makers.price_sources import Surroundings, first_updates, next_update

KIT = Path(__file__).parents[2] / "docs" / "guides" / "maker-kit"
FIELD = "maker.chains.1.price_options"
WALK: dict[str, Any] = {
    "seed": 42,
    "interval_ms": 250,
    "pairs": {
        "WETH/USDC": {"start": "2500", "decimals": 2, "skew_bps": 20},
        "WBTC/USDC": {"start": "90000", "decimals": 1, "levels": 20},
    },
}


def books_of(surroundings: Surroundings, prices: dict[str, PriceGrid]) -> dict[str, Book]:
    pairs = surroundings.context.pairs
    return {
        pair_id: build_book(grid, pairs[pair_id].base_decimals, pairs[pair_id].quote_decimals)
        for pair_id, grid in prices.items()
    }


async def test_a_recorded_walk_replays_as_the_same_books_at_the_same_times(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    surroundings = Surroundings(tmp_path)
    walked = await first_updates(load_source("random_walk", WALK, surroundings.context, FIELD), 40)
    (tmp_path / "walk.ndjson").write_bytes(
        b"".join(encode_record(1_795_000_000_000 + round(1_000 * at), prices) for at, prices in walked)
    )
    replayed = await first_updates(
        load_source("replay", {"path": "walk.ndjson"}, surroundings.context, FIELD), 40
    )
    assert [at for at, _ in replayed] == pytest.approx([at for at, _ in walked])
    for (_, one), (_, other) in zip(walked, replayed, strict=True):
        assert books_of(surroundings, one) == books_of(surroundings, other)
    assert surroundings.reports == []


async def test_what_the_maker_shows_is_a_file_that_static_takes(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The body of GET /prices, saved under a name and moved into place while the source runs."""
    surroundings = Surroundings(tmp_path)
    walked = await first_updates(load_source("random_walk", WALK, surroundings.context, FIELD), 3)
    source = load_source("static", {"path": "prices.json"}, surroundings.context, FIELD)
    async with aclosing(source.updates()) as updates:
        for _, prices in walked:
            saved = tmp_path / "prices.json.new"
            saved.write_bytes(encode(PricesBody(prices)))
            saved.rename(tmp_path / "prices.json")
            assert await next_update(updates) == prices
    assert surroundings.reports == []


async def test_the_maker_kits_own_source_quotes_and_leans(
    autojump_clock: trio.testing.MockClock,
) -> None:
    surroundings = Surroundings(KIT)
    source = load_source("my_prices:MyPrices", {"mids": {"WETH/USDC": "2500"}}, surroundings.context, FIELD)
    (_, before), (at, _) = await first_updates(source, 2)
    surroundings.sold["WETH/USDC"] = Decimal(10)
    ((_, after),) = await first_updates(source, 1)
    assert at == 0.5
    book, leaning = (books_of(surroundings, prices)["WETH/USDC"] for prices in (before, after))
    assert quote_received(book.bids, 10**18) == 2498_750_000
    assert quote_paid(book.asks, 10**18) == 2501_250_000
    assert len(book.bids.prices) == len(book.asks.prices) == 5
    assert leaning.bids.prices[0] > book.bids.prices[0]


def test_the_maker_kits_settings_load_with_their_source() -> None:
    secrets = dict.fromkeys(["MAKER_KEY", "VENUE_SECRET", "OPERATOR_SECRET"], "01" * 32)
    settings = read_settings(KIT / "maker.toml", secrets)
    assert settings.maker
    chain = settings.maker.chains[1]
    context = Surroundings(KIT).context
    assert load_source(chain.price_source, chain.price_options, context, FIELD)
    check_addresses(settings)


def test_the_samples_of_the_page_work() -> None:
    page = (KIT / "README.md").read_text(encoding="utf-8")
    static, walk = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    grids = {
        pair_id: normalise_grid(pair_id, grid) for pair_id, grid in tomllib.loads(static)["prices"].items()
    }
    assert books_of(Surroundings(), grids)
    chain = tomllib.loads(f"[maker.chains.1]\n{walk}")["maker"]["chains"]["1"]
    source = load_source(chain["price_source"], chain["price_options"], Surroundings().context, FIELD)
    assert isinstance(source, RandomWalk)
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["MyPrices"]({"mids": {"WETH/USDC": "2500"}}, Surroundings().context).options.half_spread
    with pytest.raises(ConfigError, match="is not an option"):
        names["MyPrices"]({"mids": {}, "half_spred": "1"}, Surroundings().context)


def test_the_maker_kits_source_is_as_short_as_it_says() -> None:
    assert len((KIT / "my_prices.py").read_text(encoding="utf-8").splitlines()) <= 30


def test_a_page_of_the_specs_shape_is_what_a_source_gives() -> None:
    """PriceGrid, strings and Decimals of one price are one and the same on the wire."""
    levels: Any = {"bids": [("2500.10", "1")], "asks": [(Decimal("2500.20"), Decimal("1.0"))]}
    line = msgspec.json.decode(encode_record(0, {"WETH/USDC": levels}))
    assert line["prices"]["WETH/USDC"] == {"bids": [["2500.10", "1"]], "asks": [["2500.20", "1.0"]]}
