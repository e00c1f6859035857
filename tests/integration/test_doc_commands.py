"""Commands of the docs. Blocks marked `sh` run as printed; commands marked `text` are listed with a reason.

A page whose commands name http://127.0.0.1:8080 runs beside `cambist up`, as its reader is asked to.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click
import pytest

from cambist.engine.cli import cli
from support.chain.devnet import Devnet, telling_process
from support.patience import STORY_S
from support.programs import DEVELOPMENT_CHAIN, program
from support.scripts_of_pages import at_free_ports

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
VENUE = "http://127.0.0.1:8080"
PROGRAM = re.compile(
    r"(?:\$ )?(?:[A-Z_]+=\S+\s+)*((?:\S*/)?(?:cambist|make|pip|python3?|pytest|docker|curl)) "
)
"""Start of a line that is a command; its program."""
NOT_RUN = {
    "README.md": "CI runs `make test`; integration/test_up_command.py runs `cambist up`",
    "CONTRIBUTING.md": "the suite itself",
    "deploy/README.md": "containers and accounts of the machine: e2e/test_deploy_containers.py",
    "docs/explanation/performance.md": "benches of minutes: `make bench-report`, `make test-long`",
    "docs/guides/incidents.md": "a chain with roles: integration/test_contract_acts.py",
    "docs/guides/maker-check.md": "a maker of your own: integration/test_maker_kit.py checks the kit's",
    "docs/guides/maker-kit/README.md": "integration/test_maker_kit.py",
    "docs/guides/several-engines.md": "a database server: e2e/test_deploy_kit.py starts two engines so",
    "docs/guides/store.md": "a database server: e2e/test_deploy_kit.py restores a dump of its own",
    "docs/guides/upgrade.md": "releases of the machine: e2e/test_upgrade.py",
    "docs/guides/webhooks.md": "a webhook of a partner: e2e/test_order_webhooks.py",
    "docs/start/quickstart.md": "a role in another terminal: integration/test_up_command.py",
}
"""Page -> why its commands marked `text` do not run here, and the test that runs them or their like."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """Words of each command of a block, from its program on, without comments."""
    found = [(PROGRAM.match(line), line) for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line[start.start(1) :], comments=True) for start, line in found if start]


def runnable() -> Iterator[Any]:
    """Each page whose commands run, with the programs that its commands need."""
    for page in PAGES:
        if scripts := blocks(page, "sh"):
            found = re.findall(r"(?:^|[{(|;&]) *(curl|docker|openssl) ", "\n".join(scripts), re.MULTILINE)
            if page.name == "devnet.md":  # an anvil lacks some of the methods that this page has
                found.append("pyrevm")
            yield pytest.param(page, id=name_of(page), marks=pytest.mark.needs(*sorted(set(found))))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    folder = tmp_path_factory.mktemp("up")
    with telling_process("up", "--port", "0", "--devnet-port", "0", folder=folder) as process:
        yield process


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("page", list(runnable()))
def test_commands_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    script = "set -euo pipefail\n" + "\n".join(blocks(page, "sh"))
    if re.search(r"cambist (?:devnet|demo|up)\b", script):
        program(*DEVELOPMENT_CHAIN)
    if VENUE in script:
        told = request.getfixturevalue("up").told
        script = script.replace(VENUE, told["venue"])
        for port, url in zip((8_545, 8_546), told["chains"].values(), strict=True):
            script = script.replace(f"http://127.0.0.1:{port}", url)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = tmp_path / "folder"
    folder.mkdir()
    with ExitStack() as stack:
        script = stack.enter_context(at_free_ports(script))
        output, errors = [stack.enter_context((tmp_path / name).open("w")) for name in ("output", "errors")]
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            returncode = process.wait(STORY_S)
        finally:
            with suppress(ProcessLookupError):  # what it left running ends with it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (tmp_path / "errors").read_text()
    assert returncode == 0, (tmp_path / "output").read_text() + said
    assert "Error" not in said


def test_every_block_of_commands_is_run_or_has_its_reason() -> None:
    named = {name_of(page) for page in PAGES if any(map(commands, blocks(page, "text")))}
    assert named == NOT_RUN.keys()
    for reason in NOT_RUN.values():
        for test in re.findall(r"\w+/test_\w+\.py", reason):
            assert (ROOT / "tests" / test).exists(), test


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_a_command_with_these_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prose = re.sub("```.*?```", "", text, flags=re.DOTALL)
    inline = [" ".join(found.split()) for found in re.findall(r"`(cambist [^`]+)`", prose)]
    written = [words for block in (*blocks(page, "(?:text|sh|bash)"), *inline) for words in commands(block)]
    for words in written:
        if Path(words[0]).name == "cambist":
            assert unknown_word(words[1:]) is None, words


def unknown_word(words: list[str]) -> str | None:
    """The first word that names no command or no option; None if all do."""
    command: click.Command = cli
    context = click.Context(cli, **cli.context_settings)
    for word in words:
        if word.startswith("-") and word != "-":
            options = [(*each.opts, *each.secondary_opts) for each in command.get_params(context)]
            if not any(word.partition("=")[0] in names for names in options):
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return None if re.fullmatch(r"[A-Z.|]+", word) else word  # COMMAND
            command, context = found, click.Context(found, parent=context)
    return None
