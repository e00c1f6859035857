"""The maker kit as its README has it: the maker of the kit passes the command of the page."""

import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.peers.ports import held_port, port_of

from support.patience import PATIENCE_S, STORY_S

pytestmark = pytest.mark.process
KIT = Path(__file__).parents[2] / "docs" / "guides" / "maker-kit"
COMMANDS = [
    shlex.split(line.replace("\\\n", " "))
    for line in re.findall(r"^\$ (cambist (?:.*\\\n)*.*)$", (KIT / "README.md").read_text(), re.MULTILINE)
]


def test_the_kit_passes_the_command_of_its_page(tmp_path: Path) -> None:
    serve, check = (command[1:] for command in COMMANDS if command[1] == "maker")
    for name in ("maker.toml", "my_prices.py"):
        shutil.copy(KIT / name, tmp_path)
    with ExitStack() as owned:
        port, admin = (str(port_of(owned.enter_context(held_port()))) for _ in range(2))
        environ = os.environ | {"MAKER_KEY": secrets.token_hex(32), "CAMBIST__STATE_DIR": str(tmp_path)}
        environ |= {name: secrets.token_hex(16) for name in ("VENUE_SECRET", "OPERATOR_SECRET")}
        environ |= {"CAMBIST__SERVER__PORT": port, "CAMBIST__MAKER__ADMIN__PORT": admin}
        maker = subprocess.Popen(
            [sys.executable, "-m", "cambist", *serve], cwd=tmp_path, env=environ, stderr=subprocess.PIPE
        )
        owned.callback(maker.communicate)
        owned.callback(maker.kill)
        give_up = threading.Timer(PATIENCE_S, maker.kill)
        owned.callback(give_up.cancel)
        give_up.start()
        assert maker.stderr
        assert any(b'"serving"' in line for line in maker.stderr)
        give_up.cancel()
        done = subprocess.run(
            [sys.executable, "-m", "cambist", *(word.replace(":8080", f":{port}") for word in check)],
            cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=STORY_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "The maker conforms."
