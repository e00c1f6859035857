"""`cambist config check`: right settings are summed up, wrong ones are named, secrets are never shown."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cambist.engine.cli import cli

DIGITS = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
SIGNER = "0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b"
SECRET = "correct horse battery staple"
ROUTER = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
WRONG_CHECKSUM = "0xc02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
GOOD = f"""
state_dir = "/var/lib/cambist"
[chains.31337]
name = "devnet"
rfq = true
router = "{ROUTER}"
[[tokens]]
chain_id = 31337
address = "{ROUTER.lower()}"
symbol = "WETH"
decimals = 18
[partners.wallet]
address = "{ROUTER}"
[keys.maker]
source = "env:MAKER_KEY"
[keys.maker.policy]
contracts = ["31337:{ROUTER}"]
amounts_max = {{ "31337:{ROUTER}" = "1000" }}
[auth.domains.venue]
keys = [{{ access_key = "k1", secret = "env:VENUE_SECRET" }}]
"""


def check(text: str | None, tmp_path: Path, **environ: str) -> Result:
    arguments = ["config", "check"]
    if text is not None:
        path = tmp_path / "cambist.toml"
        path.write_text(text)
        arguments += ["--config", str(path)]
    given = {"MAKER_KEY": DIGITS, "VENUE_SECRET": SECRET, "CAMBIST_CONFIG": ""} | environ
    result = CliRunner().invoke(cli, arguments, env=given)
    assert SECRET not in result.output
    assert DIGITS not in result.output
    return result


def test_good_settings_are_summed_up(tmp_path: Path) -> None:
    result = check(GOOD, tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert "state directory   /var/lib/cambist" in lines
    assert "tokens            1" in lines
    assert "partners          wallet" in lines
    assert "request domains   venue" in lines
    assert f"key maker         {SIGNER}, 1 contracts allowed" in lines
    assert lines[-1] == "settings are right"
    (devnet,) = (line for line in lines if "devnet" in line)
    assert devnet.replace("│", " ").split() == ["31337", "devnet", "-", "-", "yes", "10", "1", "of", "5"]


def test_defaults_are_right(tmp_path: Path) -> None:
    result = check(None, tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "settings are right"
    for chain in ("Ethereum", "Optimism", "Gnosis", "Unichain", "Polygon", "Base", "Arbitrum One"):
        assert chain in result.stdout


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "cambist.toml"
    path.write_text("colour = 1")
    result = check(None, tmp_path, CAMBIST_CONFIG=str(path))
    assert (result.exit_code, result.stderr) == (1, "Error: colour: is not a setting\n")


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    result = check(GOOD, tmp_path, CAMBIST__STATE_DIR="/srv/other")
    assert "state directory   /srv/other" in result.stdout.splitlines()


@pytest.mark.parametrize("name", ["[red]", "[/]", "[bold", "[u]x[/u]", ":smile:"])
def test_names_are_printed_as_they_are(tmp_path: Path, name: str) -> None:
    text = GOOD.replace("[auth.domains.venue]", f'[auth.domains."{name}"]').replace('"devnet"', f'"{name}"')
    result = check(text, tmp_path)
    assert result.exit_code == 0, result.output
    assert f"request domains   {name}" in result.stdout.splitlines()
    assert any(line.startswith("│ 31337") and name in line for line in result.stdout.splitlines())


WRONG = {
    "unknown key": (GOOD.replace("rfq =", "rfk ="), "chains.31337.rfk: is not a setting"),
    "unknown section": ("[colours]\n" + GOOD, "colours: is not a setting"),
    "not TOML": ("= 1", "settings: not TOML: "),
    "a chain's checksum": (
        GOOD.replace(f'router = "{ROUTER}"', f'router = "{WRONG_CHECKSUM}"'),
        f"chains.31337.router: expected the EIP-55 checksum {ROUTER}, got '{WRONG_CHECKSUM}'",
    ),
    "a token's checksum": (
        GOOD.replace(ROUTER.lower(), WRONG_CHECKSUM),
        f"tokens[0].address: expected the EIP-55 checksum {ROUTER}",
    ),
    "a partner's checksum": (
        GOOD.replace(
            f'[partners.wallet]\naddress = "{ROUTER}"', f'[partners.wallet]\naddress = "{WRONG_CHECKSUM}"'
        ),
        f"partners.wallet.address: expected the EIP-55 checksum {ROUTER}",
    ),
    "a policy's checksum": (
        GOOD.replace(f'["31337:{ROUTER}"]', f'["31337:{WRONG_CHECKSUM}"]'),
        f"keys.maker.policy.contracts: expected the EIP-55 checksum {ROUTER}",
    ),
    "a key without contracts": (
        GOOD.replace(f'["31337:{ROUTER}"]', "[]"),
        "keys.maker.policy.contracts: names no contract: the key could sign no data",
    ),
    "a key that is none": (
        GOOD.replace("env:MAKER_KEY", "env:VENUE_SECRET"),
        "env:VENUE_SECRET: is neither a",
    ),
    "a key that is typed": (
        GOOD.replace("env:MAKER_KEY", DIGITS),
        "keys.maker.source: expected env:NAME or file:PATH; a secret itself never stands here",
    ),
    "a secret of another encoding": (
        GOOD + 'secret_encoding = "hex"',
        "auth.domains.venue: secret: is not hex text",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_settings_end_with_one_line_and_status_1(tmp_path: Path, text: str, said: str) -> None:
    result = check(text, tmp_path)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {said}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "absent.toml")
    result = CliRunner().invoke(cli, ["config", "check", "--config", path])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {path}: cannot be read: No such file or directory\n",
    )


def test_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["config", "check", "--config", str(tmp_path)]).exit_code == 2


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from commands(inner, f"{name} {part}".strip())


def test_every_command_reads_the_settings_file_that_the_environment_names() -> None:
    named = {
        name: option.envvar
        for name, command in commands(cli)
        for option in command.params
        if "--config" in option.opts
    }
    assert {"config check", "contracts addresses", "contracts deploy", "db status", "serve"} <= named.keys()
    assert set(named.values()) == {"CAMBIST_CONFIG"}


def test_contracts_are_those_of_the_settings_file_that_the_environment_names(tmp_path: Path) -> None:
    arguments = ["contracts", "addresses", "--chain", "5", "--owner", ROUTER]
    unset = CliRunner().invoke(cli, arguments, env={"CAMBIST_CONFIG": ""})
    assert (unset.exit_code, unset.stdout) == (1, "")
    path = tmp_path / "cambist.toml"
    path.write_text(f'[chains.5]\nname = "five"\nwrapped_native = "{ROUTER}"\n')
    named = CliRunner().invoke(cli, arguments, env={"CAMBIST_CONFIG": str(path)})
    assert (named.exit_code, named.stderr) == (0, "")
    assert "Router" in named.stdout
