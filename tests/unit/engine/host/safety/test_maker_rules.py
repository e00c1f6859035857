"""The operator's rules for makers: written rules are read back, and their effects."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cambist.engine.cli.makers import makers
from cambist.engine.host.safety.maker_rules import MakerRules

NOW_MS = 1_795_000_000_000
VENUE = """
[venue.makers.alpha.chains.1]
url = "http://127.0.0.1:9/1"
[venue.makers.alpha.chains.10]
url = "http://127.0.0.1:9/10"
[venue.makers.beta.chains.1]
url = "http://127.0.0.1:9/1"
"""


def test_what_is_written_is_read_back_and_nothing_is_no_file() -> None:
    rules = MakerRules().excluding("alpha", None).excluding("beta", 10).releasing("gamma", None, NOW_MS)
    assert MakerRules.parse(rules.text()) == rules
    assert MakerRules().text() == ""


def test_a_maker_is_left_out_of_one_chain_or_of_all() -> None:
    rules = MakerRules().excluding("alpha", None).excluding("beta", 10)
    assert [rules.excludes("alpha", chain_id) for chain_id in (1, 10)] == [True, True]
    assert [rules.excludes("beta", chain_id) for chain_id in (1, 10)] == [False, True]
    assert rules.excluding("beta", 10) is rules


def test_a_release_ends_what_was_excluded_and_counts_once() -> None:
    rules = MakerRules().excluding("alpha", 1).excluding("alpha", 10).releasing("alpha", 1, NOW_MS)
    assert [rules.excludes("alpha", chain_id) for chain_id in (1, 10)] == [False, True]
    assert rules.releases("alpha", 1, NOW_MS - 1)
    assert not rules.releases("alpha", 1, NOW_MS)
    assert not rules.releases("alpha", 10, 0)
    everywhere = rules.releasing("alpha", None, NOW_MS + 5)
    assert not everywhere.excluded
    assert everywhere.releases("alpha", 10, NOW_MS)


def test_one_chain_of_all_is_not_released_alone() -> None:
    with pytest.raises(ValueError, match="release it on all of them"):
        MakerRules().excluding("alpha", None).releasing("alpha", 1, NOW_MS)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"excluded": [{"maker": 1}]}', '{"exclude": []}'])
def test_what_is_not_understood_excludes_nobody_and_says_so(text: str) -> None:
    rules = MakerRules.parse(text)
    assert not rules.excluded
    assert "is no list of makers" in rules.reason


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "venue.toml"
    path.write_text('state_dir = "state"\n' + VENUE)
    return path


def said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(makers, arguments)
    return result.exit_code, result.output


def test_the_commands_change_the_file_and_tell_what_holds(settings: Path) -> None:
    config = ("--config", str(settings))
    file = settings.parent / "state" / "makers.json"
    assert said("list", *config) == (0, "no maker is left out\n")
    assert said("exclude", "alpha", "--chain", "10", *config) == (0, "alpha: left out of chain 10\n")
    told = "alpha: left out of chain 10\nbeta: left out of all chains\n"
    assert said("exclude", "beta", *config) == said("list", *config) == (0, told)
    assert MakerRules.parse(file.read_text()).excludes("beta", 1)
    assert said("release", "alpha", *config) == (0, "beta: left out of all chains\n")
    assert MakerRules.parse(file.read_text()).releases("alpha", 10, 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("exclude", "gamma"), "unknown maker 'gamma': expected alpha, beta"),
        (("exclude", "beta", "--chain", "10"), "beta is on no chain 10"),
        (("release",), "Missing argument 'NAME'"),
    ],
)
def test_what_is_not_configured_is_refused(settings: Path, arguments: tuple[str, ...], told: str) -> None:
    status, output = said(*arguments, "--config", str(settings))
    assert status == 2
    assert told in output
    assert not (settings.parent / "state").exists()


def test_a_file_that_is_not_understood_is_left_as_it_is(settings: Path) -> None:
    file = settings.parent / "state" / "makers.json"
    file.parent.mkdir()
    file.write_text("?")
    result = CliRunner().invoke(makers, ["exclude", "alpha", "--config", str(settings)])
    assert "makers.json is no list of makers" in str(result.exception)
    assert file.read_text() == "?"
