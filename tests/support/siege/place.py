"""A venue in a process of its own, with the rates and bounds of a public one, beside what `up` runs."""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from cambist.crypto.addresses import parse_address
from support.chain.devnet import telling_process
from support.patience import PATIENCE_S, STORY_S
from support.venue.venue_processes import serving

CHAIN_ID, FAR_CHAIN_ID = 31_337, 31_338
_TLS = ssl.create_default_context()
"""Made once: a client that makes its own reads all certificates, which stops the traders for 40 ms."""
_RATES_OF_UP = re.compile(r"^\[venue\.rate_tiers\]\npublic = .*\n", re.MULTILINE)


class Place(Struct, frozen=True):
    """Running venue, and the chains, makers and agents beside it.

    Attributes:
        venue, node, far_node: URLs; of nodes, those of the first and the second chain.
        told: what `up` printed.
        contracts: addresses by their names in contracts.json.
    """

    venue: str
    node: str
    far_node: str
    told: dict[str, Any]
    contracts: dict[str, str]

    def token(self, symbol: str) -> bytes:
        """Address of a token."""
        return parse_address(self.told["tokens"][symbol], symbol)

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a GET with the operator's key."""
        headers = {"X-API-KEY": self.told["operatorKey"]}
        async with httpx.AsyncClient(
            base_url=self.venue, headers=headers, timeout=STORY_S, verify=_TLS
        ) as web:
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
        lines = [line for line in (home / "secrets.env").read_text().splitlines() if line]
        secrets = dict(line.split("=", 1) for line in lines)
        with serving(home / "venue", "serve", "--config", "settings.toml", secrets=secrets) as venue:
            nodes = up.told["chains"]
            yield Place(
                venue=venue.url,
                node=nodes[str(CHAIN_ID)],
                far_node=nodes[str(FAR_CHAIN_ID)],
                told=up.told,
                contracts=_contracts(venue.url),
            )


def _contracts(url: str) -> dict[str, str]:
    answer = httpx.get(f"{url}/resources/contracts.json", timeout=PATIENCE_S)
    found: dict[str, str] = answer.json()["chains"][str(CHAIN_ID)]
    return found
