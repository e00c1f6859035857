"""The command as a process: help, exit statuses, standard input, and how errors look."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click import Context
from click.testing import CliRunner

from cambist import __version__
from cambist.config.limits import JSON_BYTES_MAX, TYPED_DATA_BYTES_MAX
from cambist.engine.cli import CommandGroup, cli
from support.programs import DEVELOPMENT_CHAIN, program

SECRET = "correct horse battery staple"
HMAC = (
    "hmac",
    "sign",
    "POST",
    "/1/firm",
    "--domain",
    "venue",
    "--access-key",
    "k1",
    "--secret",
    "env:SECRET",
)

pytestmark = pytest.mark.process


def cambist(*arguments: str, stdin: bytes = b"", home: str = "/") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "cambist", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=home,
        env=os.environ | {"SECRET": SECRET, "HOME": home},
    )


def test_help_lists_every_command_and_where_to_start() -> None:
    done = cambist("--help")
    assert (done.returncode, done.stderr) == (0, b"")
    listed = done.stdout.decode().partition("Commands:")[2].split("\n\n")[0].split("\n")
    commands = [
        "up", "demo", "devnet", "serve", "swap", "order", "otc", "webhooks", "makers", "maker", "agent",
        "contracts", "db", "typed-data", "hmac", "keys", "config", "completion",
    ]  # fmt: skip
    named = [line.split()[0] for line in listed if re.match(r"  \w", line)]  # the others go on
    assert named == commands == cli.list_commands(Context(cli))
    for command in (
        "cambist demo",
        "cambist serve",
        "cambist swap",
        "cambist order swap",
        "cambist otc post",
        "cambist webhooks list",
        "cambist maker serve",
        "cambist maker check",
        "cambist agent serve",
        "cambist devnet",
        "cambist contracts deploy",
        "cambist typed-data hash FILE",
        "cambist keys new",
        "cambist config check",
    ):
        assert command.encode() in done.stdout


def test_the_body_on_standard_input_is_signed() -> None:
    done = cambist(*HMAC, "--timestamp", "1700000000000", "--body", "-", "--explain", stdin=b"\xff{}\n")
    assert done.returncode == 0
    assert [line.split(b": ")[0] for line in done.stdout.splitlines()] == [
        b"X-AUTH-DOMAIN",
        b"X-AUTH-ACCESS-KEY",
        b"X-AUTH-TIMESTAMP",
        b"X-AUTH-SIGNATURE",
    ]
    assert done.stderr.endswith(b"1700000000000POST/1/firm\xff{}\n\n")
    assert SECRET.encode() not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "bytes_max"),
    [
        pytest.param((*HMAC, "--body", "-"), JSON_BYTES_MAX, id="hmac"),
        pytest.param(("typed-data", "hash", "-"), TYPED_DATA_BYTES_MAX, id="typed-data"),
    ],
)
def test_endless_input_is_refused(arguments: tuple[str, ...], bytes_max: int) -> None:
    done = cambist(*arguments, stdin=b" " * (bytes_max + 1))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == f"Error: Invalid input: <stdin>: expected at most {bytes_max} bytes\n".encode()


def test_our_errors_end_with_status_1_and_one_line() -> None:
    done = cambist("keys", "address", "--key", "env:ABSENT")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Error: --key: environment variable ABSENT is not set or empty\n"


def test_wrong_usage_ends_with_status_2_and_says_how() -> None:
    done = cambist("keys", "new")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Usage: cambist keys new [OPTIONS]" in done.stderr
    assert b"Missing option '--out'" in done.stderr


@pytest.mark.parametrize("arguments", [["trade"], ["--colour"], ["typed-data", "sing"], ["-x"]], ids=" ".join)
def test_an_unknown_command_or_option_ends_with_status_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        "", "demo", "typed-data", "typed-data hash", "typed-data sign", "typed-data recover", "hmac",
        "hmac sign", "keys", "keys new", "keys import", "keys address", "config", "config check", "maker",
        "maker serve", "maker check", "maker halt", "maker resume", "agent", "agent serve", "serve", "swap",
        "order", "order swap", "order watch", "order cancel", "order withdraw",
        "otc", "otc post", "otc fill", "otc cancel", "otc list", "otc watch", "webhooks", "webhooks list",
    ],
)  # fmt: skip
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_a_page(command: str, flag: str) -> None:
    result = CliRunner().invoke(cli, [*command.split(), flag], prog_name="cambist")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cambist {command}".rstrip())


def every_command(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all commands of the program, groups included."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found
            yield from every_command(found, (*path, name))


@pytest.mark.parametrize("path", list(every_command(cli)), ids=" ".join)
def test_help_fits_eighty_columns_and_cuts_no_sentence(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*path, "--help"], prog_name="cambist", terminal_width=80)
    lines = result.stdout.splitlines()
    cut = [line for line in lines[1:] if re.search(r"\w\.\.\.$", line)]
    assert [line for line in lines if len(line) > 80] + cut == []


def groups(group: click.Command) -> Iterator[CommandGroup]:
    """A group and all groups in it."""
    if isinstance(group, CommandGroup):
        yield group
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found
            yield from groups(found)


def test_the_list_of_a_group_has_the_first_sentence_of_each_page() -> None:
    lazy = {
        name: (group.get_command(click.Context(group), name), sentence)
        for group in groups(cli)
        for name, (_, sentence) in group.lazy.items()
    }
    assert len(lazy) > 25
    for command, sentence in lazy.values():
        assert command
        assert command.get_short_help_str(300) == sentence, "the table of the group in engine/cli"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script_of_completion(shell: str) -> None:
    done = cambist("completion", shell)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"_CAMBIST_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offers"),
    [("cambist ord", "order"), ("cambist order sw", "swap"), ("cambist maker approve --re", "--revoke")],
)
def test_bash_completes_commands_and_options(typed: str, offers: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "cambist"],
        env=os.environ | words | {"_CAMBIST_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"plain,{offers}" in done.stdout.splitlines()


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"cambist, version {__version__}\n")


@pytest.mark.seldom
def test_demo_plays_its_scenes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program(*DEVELOPMENT_CHAIN)
    done = cambist("demo", "--verbose", home=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    told = done.stdout.decode()
    brief = [line for line in told.splitlines() if not line.startswith("    ")]
    assert 40 < len(brief) < 120
    assert "cambist up" in told[-400:]  # the next command
    for words in (
        "alpha signs 3750 USDC for 1.5 WETH, and not one unit more",
        "rules kept, none broken",
        "0.16665 WBTC over two hops",
        "refused by the venue, Invalid priceRoute",
        "beta signed in its place: 4995.5004 USDC",
        "10004 USDC became 3.9996 WETH: signed once",
        "rests: the order waits for its price",
        " s apart on the chain",
        "plain's bid of the same round has settled the order",
        "the contract refuses any other taker",
        "across delivered 5991.740963 USDC on chain 31338",
        "cctp delivered 5993.801059 USDC on chain 31338",
        "5994.4005 USDC, all that entered the bridge, are back",
        "10100 USDC sold for 4.122036734693877551 WETH",
        "the only bid was its own",
    ):
        assert words in told
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_input_is_an_empty_one() -> None:
    command = [sys.executable, "-m", "cambist", "typed-data", "hash", "-"]
    closed = ["bash", "-c", '"$@" <&-', "bash", *command]
    done = subprocess.run(closed, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Invalid input")
