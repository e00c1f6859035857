"""`cambist maker show` prints the resources of a maker as a venue reads them, or why it cannot."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cambist.engine.cli import cli
from support.conformance.faulty_maker import SECRET, Refused
from support.conformance.faulty_runs import SIGNED, Served


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as server:
        yield server


def show(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["maker", "show", *arguments], env={"MAKER_SECRET": SECRET})


def test_tokens_pairs_and_ladders_are_shown(served: Served) -> None:
    prices = served.maker.resource("prices")
    served.maker.entries["prices"] = lambda _: prices  # they would move between two looks
    done = show(served.url, *SIGNED, "--levels", "1")
    assert done.exit_code == 0, done.output
    text = done.stdout
    for name, grid in prices.items():
        section = text.partition(f"\n{name}  ")[2].split("\n\n")[0].splitlines()
        levels = [level for side in ("bids", "asks") for level in (grid.get(side) or [])[:1]]
        if levels:
            (best,) = section[2:]
            assert best.split() == [word for level in levels for word in level]
    for name, token in served.maker.resource("tokens").items():
        assert f"{name} " in text
        assert token["address"] in text


def test_one_pair_as_json(served: Served) -> None:
    done = show(served.url, *SIGNED, "--pair", "WETH/USDC", "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert list(shown["pairs"]) == list(shown["prices"]) == ["WETH/USDC"]
    assert shown["tokens"] == served.maker.resource("tokens")
    assert shown["refused"] == {}


def test_an_entry_that_a_venue_refuses_is_named(served: Served) -> None:
    served.maker.entries["prices"] = lambda prices: prices | {"WETH/USDC": 5}
    shown = json.loads(show(served.url, *SIGNED, "--json").stdout)
    assert list(shown["refused"]) == ["prices.WETH/USDC"]
    assert "WETH/USDC" not in shown["prices"]
    assert "refused: prices.WETH/USDC: " in show(served.url, *SIGNED).stdout


def test_a_maker_that_refuses_is_quoted(served: Served) -> None:
    done = show(served.url)
    assert done.exit_code == 1
    assert "GET /tokens: 401 " in done.stderr

    def closed(name: str) -> Any:
        raise Refused(503, "closed today")

    served.maker.resource = closed  # type: ignore[method-assign]
    done = show(served.url, *SIGNED)
    assert "GET /tokens: 503 " in done.stderr
    assert "closed today" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ftp://maker",), "URL"),
        (("http://127.0.0.1:9", "--domain", "venue"), "needed too: a signature takes all three"),
    ],
)
def test_wrong_usage_is_named(arguments: tuple[str, ...], says: str) -> None:
    done = show(*arguments)
    assert done.exit_code == 2
    assert says in done.output


def test_a_pair_that_the_maker_lacks_is_named(served: Served) -> None:
    done = show(served.url, *SIGNED, "--pair", "WETH/DOGE")
    assert (done.exit_code, "the maker has no pair 'WETH/DOGE'; it has " in done.output) == (2, True)
