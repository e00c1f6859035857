"""docs/start/python.md: each example runs as printed at the venue of `cambist up`."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chain.devnet import Devnet, telling_process
from support.patience import PATIENCE_S

pytestmark = [pytest.mark.process, pytest.mark.seldom]
PAGE = (Path(__file__).parents[2] / "docs" / "start" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SAYS = (
    (
        r"1\.5 WETH for [\d.]+ USDC, [\d.]+ each\n1\.5 WETH for [\d.]+ USDC: 0x\w{64}\n"
        r"order \S+ COMPLETED: [\d.]+ USDC\n"
    ),
    r"(?s).+1 slices settled\n(\S+ CANCELLED\n){2}",
    r"1250 USDC for 0\.5 WETH\nCANCELLED\n",
    r"declined: 1 WETH for [\d.]+ USDC\n",
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    options = ("--port", "0", "--devnet-port", "0", "--json")
    with telling_process("up", *options, folder=tmp_path_factory.mktemp("python")) as process:
        yield process


@pytest.mark.parametrize("number", range(len(SAYS)))
def test_an_example_runs_as_printed(up: Devnet, number: int) -> None:
    assert len(EXAMPLES) == len(SAYS)
    program = EXAMPLES[number].replace("http://127.0.0.1:8080", up.told["venue"])
    program = program.replace("http://127.0.0.1:8545", up.told["chains"]["31337"])
    keys = {name: up.told["accounts"][at]["key"] for at, name in enumerate(("TRADER_KEY", "OTHER_KEY"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | keys,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(SAYS[number], done.stdout), done.stdout
