"""Numbers and names that pages state are those of the code."""

import re
from collections.abc import Iterator

import click
import pytest

from cambist.config import limits, timeouts
from cambist.config.sections.server import ServerSettings
from cambist.engine.cli import cli
from cambist.engine.trade.events.deliveries import rest_s
from support.tracked_files import ROOT

_WORDS = {1.0: "one", 60.0: "a minute", 3_600.0: "an hour"}
_LOCAL = re.compile(r"(?:127\.0\.0\.1|localhost):(\d+)")
_PORTS = {
    ServerSettings().port: "a venue",
    8180: "a maker",
    8181: "a maker's listener for its operator",
    8182: "an agent",
    8183: "a maker's own server of the walk through roles",
    8280: "an agent's listener of the walk to a real chain",
    8545: "a node",
    8546: "the node of a second chain",
    3000: "a web page in development",
}


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, list[click.Option]]]:
    """Yield each command's words and options."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, words)
        else:
            yield words, [one for one in command.params if isinstance(one, click.Option)]


COMMANDS = dict(commands(cli))
OPTIONS = {
    words: {"--help", *(text for one in options for text in (*one.opts, *one.secondary_opts))}
    for words, options in COMMANDS.items()
}
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")]


def text(page: str) -> str:
    """A page's text on one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("page", "fact"),
    [
        (
            "docs/guides/webhooks.md",
            f"with pauses that grow from {_WORDS[rest_s(1)]} second to {_WORDS[rest_s(100)]}, until",
        ),
        (
            "docs/guides/webhooks.md",
            f"doubles the pause with each further try, up to {_WORDS[timeouts.WEBHOOK_AGAIN_S_MAX]}",
        ),
        (
            "docs/guides/venue.md",
            f"each fault (at most {_WORDS[timeouts.FEED_REMARK_EVERY_S]} a second for each maker)",
        ),
        (
            "docs/guides/venue.md",
            f"refused pairs (at most one in {int(timeouts.FEED_REFUSALS_EVERY_S)} seconds)",
        ),
        ("docs/guides/venue.md", f"The last {limits.MAKER_LAST_FAULTS_MAX} faults"),
    ],
)
def test_a_number_on_a_page_is_that_of_the_code(page: str, fact: str) -> None:
    assert fact in text(page)


def test_the_partner_of_an_order_is_a_name() -> None:
    helps = {option.name: option.help for option in COMMANDS["order swap"]}
    assert helps["partner"] == "The partner's name."


def test_ports_on_pages_are_those_that_roles_listen_at() -> None:
    shown = {int(port) for page in PAGES for port in _LOCAL.findall(page.read_text(encoding="utf-8"))}
    assert shown <= _PORTS.keys()


def test_the_page_of_trading_names_the_options_that_orders_lack() -> None:
    swap = OPTIONS["swap"]
    lacked = {name: swap - OPTIONS[f"order {name}"] for name in ("swap", "limit", "twap")}
    assert lacked == {
        "swap": {"--buy", "--max-impact", "--router"},
        "limit": {"--buy", "--max-impact", "--router", "--permit", "--slippage"},
        "twap": {"--buy", "--max-impact", "--router", "--permit"},
    }
    assert (
        "without `--buy`, `--max-impact` and `--router`; `limit` also lacks `--permit` and `--slippage`, and "
        "`twap` lacks `--permit`"
    ) in text("docs/guides/trading.md")
