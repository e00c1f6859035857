"""A venue in a process of its own, with the rates and bounds of a public one, beside what `up` runs."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import httpx
from msgspec import Struct

from cambist.crypto.addresses import parse_address
from support.chain.devnet import telling_process
from support.patience import PATIENCE_S, STORY_S

CHAIN_ID = 31_337
_SERVING = re.compile(r'"url": "(http://[\d.:]+)".*"serving"')
_RATES_OF_UP = re.compile(r"^\[venue\.rate_tiers\]\npublic = .*\n", re.MULTILINE)


class Place(Struct, frozen=True):
    """What runs.

    Attributes:
        venue, node: URLs.
        told: what `up` printed.
        contracts: addresses by their names in contracts.json.
    """

    venue: str
    node: str
    told: dict[str, Any]
    contracts: dict[str, str]

    def token(self, symbol: str) -> bytes:
        """Address of a token."""
        return parse_address(self.told["tokens"][symbol], symbol)

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a GET with the operator's key."""
        headers = {"X-API-KEY": self.told["operatorKey"]}
        async with httpx.AsyncClient(base_url=self.venue, headers=headers, timeout=STORY_S) as web:
            answer = await web.get(path, params=query)
            assert answer.status_code == 200, answer.text
            return answer.json()


@contextmanager
def a_place(folder: Path, *options: str) -> Iterator[Place]:
    """The venue, makers and agents of `cambist up`; the venue has the rates of a public one."""
    home = folder / "roles"
    ports = "--port", "0", "--devnet-port", "0"
    roles = "--without", "venue", "--write", str(home)
    with telling_process("up", *ports, *roles, *options, folder=folder) as up:
        settings = home / "venue" / "settings.toml"
        text, count = _RATES_OF_UP.subn("", settings.read_text())
        assert count == 1
        settings.write_text(text)
        secrets = [line for line in (home / "secrets.env").read_text().splitlines() if line]
        with _serving(home / "venue", dict(line.split("=", 1) for line in secrets)) as url:
            contracts = _contracts(url)
            yield Place(url, up.told["chains"][str(CHAIN_ID)], up.told, contracts)


def _contracts(url: str) -> dict[str, str]:
    answer = httpx.get(f"{url}/resources/contracts.json", timeout=PATIENCE_S)
    found: dict[str, str] = answer.json()["chains"][str(CHAIN_ID)]
    return found


@contextmanager
def _serving(home: Path, environ: dict[str, str]) -> Iterator[str]:
    """URL of a venue."""
    with TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "cambist", "serve", "--config", "settings.toml"],
            stdout=log,
            stderr=log,
            env=os.environ | environ,
            cwd=home,
        )
        try:
            give_up_s = time.monotonic() + PATIENCE_S
            while not (found := _SERVING.search(_said(log))):
                assert process.poll() is None, _said(log)
                assert time.monotonic() < give_up_s, _said(log)
                time.sleep(0.05)
            yield found[1]
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _said(log: IO[bytes]) -> str:
    return os.pread(log.fileno(), 1 << 16, 0).decode()
