"""Price sources by the name in the settings, their options, and the prices that they may give."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import ConfigError, InvalidInput
from cambist.engine.roles.maker.prices.random_walk import RandomWalk
from cambist.engine.roles.maker.prices.replay import Replay
from cambist.engine.roles.maker.prices.source import load_source, normalise_grid, read_options
from cambist.engine.roles.maker.prices.static import StaticPrices
from cambist.feeds.books.book import build_book
from support.makers.price_sources import Surroundings, first_updates

FIELD = "maker.chains.1.price_options"
GOOD = """
import beside_{n}
class Prices:
    def __init__(self, options, context):
        self.price = options.get("price", beside_{n}.PRICE)
    async def updates(self):
        yield {{"WETH/USDC": {{"bids": [(self.price, "1")]}}}}
"""


def test_the_shipped_sources_go_by_their_names(tmp_path: Path) -> None:
    context = Surroundings(tmp_path).context
    assert isinstance(load_source("static", {"path": "prices.json"}, context, FIELD), StaticPrices)
    assert isinstance(load_source("replay", {"path": "prices.ndjson"}, context, FIELD), Replay)
    walk = load_source("random_walk", {"pairs": {"WETH/USDC": {"start": "2500"}}}, context, FIELD)
    assert isinstance(walk, RandomWalk)


async def test_a_source_of_ones_own_stands_beside_the_settings_with_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "own_prices_1.py").write_text(GOOD.format(n=1))
    (tmp_path / "beside_1.py").write_text('PRICE = "2499"')
    context = Surroundings(tmp_path).context
    for options, price in (({}, "2499"), ({"price": "2400"}, "2400")):
        source = load_source("own_prices_1:Prices", options, context, FIELD)
        ((_, prices),) = await first_updates(source, 1)
        assert prices == {"WETH/USDC": PriceGrid(bids=((price, "1"),))}


def test_a_source_may_stand_in_a_package(tmp_path: Path) -> None:
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").touch()
    (tmp_path / "own_package" / "prices.py").write_text(GOOD.format(n=2))
    (tmp_path / "beside_2.py").write_text('PRICE = "1"')
    assert load_source("own_package.prices:Prices", {}, Surroundings(tmp_path).context, FIELD)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("statik", None, "one of static, random_walk, replay, or module:Class, got 'statik'"),
        ("a b:C", None, "or module:Class, got 'a b:C'"),
        ("../x:C", None, "or module:Class"),
        ("module:", None, "or module:Class"),
        ("no_such_module:C", None, "unknown module no_such_module, neither in .* nor installed"),
        ("no_such.module:C", None, "unknown module no_such.module"),
        (
            "own_needing:C",
            "import not_there_at_all",
            "own_needing needs not_there_at_all, which is not installed",
        ),
        ("own_broken:C", "def", "own_broken cannot be imported: SyntaxError"),
        ("own_raising:C", "1 / 0", "own_raising cannot be imported: ZeroDivisionError"),
        ("own_lacking:C", "D = 1", "module own_lacking has no class C"),
        ("own_function:C", "def C(options, context): ...", "own_function:C is not a class"),
        ("own_narrow:C", "class C: ...", r"own_narrow:C is not made by C\(options, context\)"),
        (
            "own_still:C",
            "class C:\n def __init__(self, options, context): ...",
            "own_still:C has no async generator `updates`",
        ),
        (
            "own_awaiting:C",
            "class C:\n def __init__(self, o, c): ...\n async def updates(self): ...",
            "own_awaiting:C has no async generator `updates`",
        ),
        ("json:JSONDecoder", None, "is not made by JSONDecoder"),
        ("colorsys:C", "class C: ...", "module colorsys of .* is hidden by .*: rename it"),
    ],
)
def test_what_is_no_source_is_refused_by_setting(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / f"{name.partition(':')[0]}.py").write_text(text)
    with pytest.raises(ConfigError, match=rf"^maker\.chains\.1\.price_source: .*{said}"):
        load_source(name, {}, Surroundings(tmp_path).context, FIELD)


def test_a_constructor_that_raises_is_an_error_of_the_options(tmp_path: Path) -> None:
    (tmp_path / "own_picky.py").write_text(
        "class C:\n def __init__(self, options, context): options['nope']\n async def updates(self): yield {}"
    )
    with pytest.raises(
        ConfigError, match=r"price_options: own_picky:C does not take them: KeyError\('nope'\)"
    ):
        load_source("own_picky:C", {}, Surroundings(tmp_path).context, FIELD)


class Options(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    poll_ms: int = 5
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "x", "pol_ms": 5}, r"price_options\.pol_ms: is not an option"),
        ({}, r"price_options\.path: is missing"),
        ({"path": "x", "poll_ms": "fast"}, r"price_options\.poll_ms: expected `int`, got `str`"),
        ({"path": 5}, r"price_options\.path: expected `str`, got `int`"),
        ({"path": "x", "inner": {"a": "b"}}, r"price_options\.inner\[\.\.\.\]: expected `int`"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_options(Options, options, Surroundings().context)


def test_numbers_may_stand_in_quotes() -> None:
    assert read_options(Options, {"path": "x", "poll_ms": "7"}, Surroundings().context).poll_ms == 7


def test_grids_of_strings_and_decimals_become_price_grids() -> None:
    grid = normalise_grid("A/B", {"bids": [("2500.10", Decimal("1E+3")), [Decimal("1e-7"), "2"]], "asks": []})
    assert grid == PriceGrid((("2500.10", "1000"), ("0.0000001", "2")), ())
    assert normalise_grid("A/B", {}) == PriceGrid()
    assert normalise_grid("A/B", grid) == grid


def test_a_grid_that_its_maker_changes_later_is_not_changed_with_it() -> None:
    levels: Any = [["1", "1"]]
    grid = normalise_grid("A/B", PriceGrid(bids=levels))
    levels[0][0] = "2"
    assert grid == PriceGrid(bids=(("1", "1"),))


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"bids": [(2500.5, "1")]}, r"prices\.A/B\.bids\[0\]\[0\]: .*never a float.*got 2500\.5"),
        ({"asks": [("1", "1"), ("2", 0.1)]}, r"prices\.A/B\.asks\[1\]\[1\]: .*never a float.*got 0\.1"),
        ({"bids": [(1, "1")]}, r"bids\[0\]\[0\]: expected a string or a Decimal"),
        (
            {"bids": [(Decimal("NaN"), "1")]},
            r"bids\[0\]\[0\]: expected at most 36 whole and 36 decimal digits, got NaN",
        ),
        ({"bids": [(Decimal("1e999999"), "1")]}, r"bids\[0\]\[0\]: expected at most 36 whole"),
        ({"bids": [(Decimal("1e-37"), "1")]}, r"bids\[0\]\[0\]: .* and 36 decimal digits, got 1E-37"),
        ({"bids": [("1", "1", "1")]}, r"bids\[0\]: expected \[price, amount\]"),
        ({"bids": ["11"]}, r"bids\[0\]: expected \[price, amount\], got '11'"),
        ({"bids": "11"}, r"bids: expected a list of \[price, amount\]"),
        ({"bids": None}, r"bids: expected a list of \[price, amount\], got null"),
        ({"bid": []}, r"prices\.A/B: expected bids and asks, got 'bid'"),
        ([], r"prices\.A/B: expected an object with bids and asks"),
        ({"bids": [("1", "1")] * 1_001}, r"bids: expected at most 1000 levels, got 1001"),
        (PriceGrid(bids=((1.5, "1"),)), r"bids\[0\]\[0\]: .*never a float"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_grid_is_refused_by_pair_side_and_level(grid: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        normalise_grid("A/B", grid)


def test_a_negative_decimal_is_refused_when_the_book_is_built() -> None:
    grid = normalise_grid("A/B", {"bids": [(Decimal(-1), "1")]})
    with pytest.raises(InvalidInput, match=r"bids\[0\]\[0\]: expected a decimal string: .*got '-1'"):
        build_book(grid, 18, 6)
