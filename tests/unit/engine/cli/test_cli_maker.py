"""`cambist maker halt` and `resume`, and what is wrong with `serve`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cambist.engine.cli import cli
from support.makers.maker_role import ENVIRON, TEXT

BOTH = "chain 31337\npair 31337 WETH/USDC\n"


def write(folder: Path, text: str = TEXT) -> str:
    path = folder / "maker.toml"
    path.write_text(f'state_dir = "{folder}"\n{text}')
    return str(path)


def run(*arguments: str, secrets: bool = False) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(arguments), env=ENVIRON if secrets else dict.fromkeys(ENVIRON, ""))
    return done.exit_code, done.output


def test_halt_and_resume_write_the_file_and_need_no_secret(tmp_path: Path) -> None:
    config = write(tmp_path)
    assert run("maker", "halt", "--config", config, "chain", "31337") == (0, "chain 31337\n")
    assert run("maker", "halt", "--config", config, "pair", "31337", "WETH/USDC") == (0, BOTH)
    assert (tmp_path / "halt").read_text() == BOTH
    assert run("maker", "halt", "--config", config)[0] == 0
    assert (tmp_path / "halt").read_text().startswith("all\n")
    assert run("maker", "resume", "--config", config) == (0, "nothing is stopped\n")
    assert not (tmp_path / "halt").exists()


@pytest.mark.parametrize("scope", ["chain 1", "pair 31337 WETH-USDC", "pair 1 WETH/USDC"])
def test_what_there_is_not_cannot_be_halted(tmp_path: Path, scope: str) -> None:
    status, said = run("maker", "halt", "--config", write(tmp_path), *scope.split())
    assert status == 2
    assert "unknown chain" in said or "no pair" in said
    assert not (tmp_path / "halt").exists()


@pytest.mark.parametrize("scope", ["chian", "chain x", "pair 1"])
def test_a_scope_that_is_none_is_wrong_usage(tmp_path: Path, scope: str) -> None:
    status, said = run("maker", "halt", "--config", write(tmp_path), *scope.split())
    assert status == 2
    assert "not `all`, `chain ID` or `pair ID NAME`" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no [maker] table"),
        (TEXT.replace('"static"', '"statics"'), "price_source: expected one of static"),
        (TEXT + '[server]\nhost = "192.0.2.1"\nport = 1\n', "server.port: cannot listen on 192.0.2.1 port 1"),
        (TEXT + '[maker.admin]\nport = 1\ndomains = ["nobody"]\n', "maker.admin.domains"),
        (TEXT.replace("auth.domains", "partnerz"), "partnerz: is not a setting"),
        (TEXT + "[server.tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n", "server.tls"),
    ],
)
def test_serve_says_which_setting_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    status, said = run("maker", "serve", "--config", write(tmp_path, text), secrets=True)
    assert status == 1
    assert words in said
    assert "Traceback" not in said


def test_serve_wants_its_secrets(tmp_path: Path) -> None:
    status, said = run("maker", "serve", "--config", write(tmp_path))
    assert (status, "environment variable" in said) == (1, True)
