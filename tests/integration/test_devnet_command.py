"""`cambist devnet` as a process; `cambist contracts` as one, and where it says no in this process."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
import trio
from click.testing import Result

from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.chain.anvil import Anvil
from support.chain.devnet import KEYS, cambist, devnet_process
from support.client.commands import invoked
from support.patience import PATIENCE_S
from support.programs import DEVELOPMENT_CHAIN, program

OWNER_KEY = {"OWNER_KEY": KEYS[4].secret32().hex()}
OTHER_WORDS = "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong"


def run(folder: Path, *arguments: str, typed: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        cambist(*arguments, folder=folder),
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | OWNER_KEY | environ,
    )


async def invoke(folder: Path, *arguments: str) -> Result:
    """In a thread of this process, which starts sooner."""
    return await invoked(arguments, OWNER_KEY | {"CAMBIST__STATE_DIR": str(folder)})


def test_both_chains_have_the_same_addresses_and_end_on_a_signal(tmp_path: Path) -> None:
    with devnet_process(tmp_path) as devnet:
        first, second = devnet.told["chains"]
        assert (first["chainId"], second["chainId"]) == (31_337, 31_338)
        assert first["contracts"] | {"name": ""} == second["contracts"] | {"name": ""}
        book = json.loads((tmp_path / "contracts.json").read_text())
        assert book["chains"]["31337"] == first["contracts"]
        assert set(first["contracts"]) >= {"augustusV6_2", "delta", "augustusRFQ", "executor", "feeClaimer"}
        assert devnet.told["accounts"][0]["key"] == "0x" + KEYS[0].secret32().hex()
        assert devnet.end(signal.SIGINT) == 0


def test_a_bridge_takes_both_chains_and_a_port_of_its_own(tmp_path: Path) -> None:
    one = run(tmp_path, "devnet", "--port", "0", "--bridge", "--chain", "31337")
    assert (one.returncode, "--bridge needs both chains" in one.stderr) == (2, True)
    options = "--bridge", "--chain", "31337", "--chain", "31338", "--block-time", "0.05"
    with devnet_process(tmp_path, *options) as devnet:
        urls = [*(chain["http"] for chain in devnet.told["chains"]), devnet.told["bridge"]]
        assert len(set(urls)) == 3
        answer = httpx.get(f"{devnet.told['bridge']}/v2/burn/USDC/fees/337/338", timeout=PATIENCE_S)
        assert [row["finalityThreshold"] for row in answer.json()] == [1_000, 2_000]
        assert devnet.end(signal.SIGTERM) == 0


async def test_blocks_come_by_the_clock(tmp_path: Path) -> None:
    with devnet_process(tmp_path, "--chain", "31338", "--block-time", "0.05") as devnet:
        (told,) = devnet.told["chains"]
        settings = NodeSettings(urls=(told["http"],), ws_urls=(told["ws"],))
        async with AnvilChain.open(31_338, settings) as chain:
            head = await chain.block()
            assert head is not None
            with trio.fail_after(PATIENCE_S):
                await chain.wait_head(head.hash)


@pytest.mark.needs("pyrevm")  # an anvil signs messages for every account
def test_another_mnemonic_is_not_shown(tmp_path: Path) -> None:
    options = "--chain", "31337", "--mnemonic", "env:WORDS"
    with devnet_process(tmp_path, *options, environ={"WORDS": OTHER_WORDS}) as devnet:
        assert "key" not in devnet.told["accounts"][0]
        account = devnet.told["accounts"][0]["address"]
        assert account != "0x" + KEYS[0].address.hex()
        call = {"jsonrpc": "2.0", "id": 1, "method": "personal_sign", "params": ["0x1234", account]}
        answer = httpx.post(devnet.url(), json=call, timeout=PATIENCE_S).json()
        assert answer["error"]["message"] == "accounts of --mnemonic sign transactions alone"


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    program(*DEVELOPMENT_CHAIN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(tmp_path, "devnet", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "cannot listen" in done.stderr


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    program(*DEVELOPMENT_CHAIN)
    file = tmp_path / "file"
    file.touch()
    done = run(file / "state", "devnet", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {file}/state/contracts.json: cannot be read: Not a directory\n"


@pytest.mark.anvil
async def test_anvils_stand_at_the_same_addresses(tmp_path: Path) -> None:
    path = f"{program('anvil').parent}{os.pathsep}{os.environ['PATH']}"
    with devnet_process(tmp_path, "--chain", "31337", "--anvil", environ={"PATH": path}) as devnet:
        (told,) = devnet.told["chains"]
        assert told["engine"] == "anvil"
        settings = NodeSettings(urls=(told["http"],), ws_urls=(told["ws"],))
        async with AnvilChain.open(31_337, settings) as chain:
            rfq = bytes.fromhex(told["contracts"]["augustusRFQ"][2:])
            assert await chain.code(rfq)
            assert await chain.balance(KEYS[9].address) == 10_000 * 10**18
        assert devnet.end() == 0
    with devnet_process(tmp_path, "--chain", "31337") as devnet:
        assert devnet.told["chains"][0]["contracts"] == told["contracts"]


async def test_contracts_are_deployed_once_checked_and_written_down(tmp_path: Path) -> None:
    with devnet_process(tmp_path / "devnet", "--chain", "31337") as devnet:
        asked = "contracts", "deploy", "--chain", "31337", "--key", "env:OWNER_KEY", "--node", devnet.url()
        declined = run(tmp_path, *asked, typed="n\n")
        assert declined.returncode == 1
        assert declined.stdout.count("to be created") == 10  # Rfq has no owner: it is there
        assert not (tmp_path / "contracts.json").exists()
        done = run(tmp_path, *asked, "--yes")
        assert done.returncode == 0, done.stderr
        assert "trading     paused" in done.stdout
        owner = "0x" + KEYS[4].address.hex()
        predicted = (
            await invoke(tmp_path, "contracts", "addresses", "--chain", "31337", "--owner", owner)
        ).stdout
        entry = json.loads((tmp_path / "contracts.json").read_text())["chains"]["31337"]
        settlers = {line.split()[1] for line in predicted.splitlines() if "Settler" in line}
        assert {line.split()[1] for line in predicted.splitlines()} - settlers == {
            entry[name]
            for name in (
                "augustusV6_2", "delta", "augustusRFQ", "executor", "feeClaimer", "bridges", "arrivals"
            )
        }  # fmt: skip
        again = await invoke(tmp_path, *asked)
        assert again.exit_code == 0, again.stderr
        assert "to be created" not in again.stdout
        usdc = devnet.told["chains"][0]["contracts"]["tokens"]["USDC"]["address"]
        relayer = "0x" + KEYS[5].address.hex()
        wanted = "--open", "--cap", f"{usdc}=2500.5", "--relayer", relayer, "--pauser", relayer
        opened = await invoke(tmp_path, *asked, "--yes", *wanted)
        assert opened.exit_code == 0, opened.stderr
        assert "2500500000 raw units" in opened.stdout
        assert f"pauser      {to_checksum(KEYS[5].address)}" in opened.stdout
        assert "to be set   7 " in opened.stdout
        assert "to be set   0 " in (await invoke(tmp_path, *asked, *wanted)).stdout
        huge = await invoke(tmp_path, *asked, "--yes", "--cap", f"{usdc}={2**112}")
        assert (huge.exit_code, f"at most {2**112 - 2} raw units, or `max`" in huge.stderr) == (1, True)
        nowhere = await invoke(tmp_path, *asked, "--yes", "--spoke-pool", owner)
        assert (
            nowhere.exit_code,
            f"has no spoke pool at {to_checksum(KEYS[4].address)}" in nowhere.stderr,
        ) == (1, True)
        told = devnet.told["chains"][0]["contracts"]
        bridges = "--spoke-pool", told["spokePool"], "--token-messenger", told["tokenMessenger"]
        bridged = await invoke(tmp_path, *asked, "--yes", *bridges)
        assert bridged.exit_code == 0, bridged.stderr
        other = json.loads((tmp_path / "contracts.json").read_text())["chains"]["31337"]
        assert (other["spokePool"], other["tokenMessenger"]) == (told["spokePool"], told["tokenMessenger"])
        assert other["bridges"] == told["bridges"] != entry["bridges"]
        assert other["delta"] != entry["delta"]


@pytest.mark.anvil
async def test_contracts_are_deployed_to_an_anvil(tmp_path: Path, anvil: Anvil) -> None:
    settings = anvil.settings
    async with AnvilChain.open(anvil.chain_id, settings, known_errors()) as chain:
        await chain.reset()
    done = run(
        tmp_path,
        "contracts",
        "deploy",
        "--chain",
        "31337",
        "--key",
        "env:OWNER_KEY",
        "--node",
        anvil.url,
        "--yes",
    )
    assert done.returncode == 0, done.stderr
    assert "the code on the chain is the artifacts'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--chain", "1", "--key", "env:OWNER_KEY"), 2, "--unaudited-on-a-real-chain"),
        (("--chain", "31337", "--key", "env:OWNER_KEY"), 1, "no node is set"),
        (("--chain", "31337", "--key", "owner"), 1, "unknown key 'owner'"),
        (("--chain", "31337", "--key", "env:NOBODY"), 1, "NOBODY"),
        (("--chain", "31337", "--key", "env:OWNER_KEY", "--cap", "0x12=1"), 2, "an address"),
        (("--chain", "31337", "--key", "env:OWNER_KEY", "--relayer", "0x12"), 2, "an address"),
        (("--chain", "5", "--key", "env:OWNER_KEY", "--unaudited-on-a-real-chain"), 1, "chains.5"),
        (
            ("--chain", "8453", "--key", "env:OWNER_KEY", "--unaudited-on-a-real-chain"),
            1,
            "--key: is the public key of 0x",
        ),
    ],
)
async def test_what_cannot_be_deployed_is_said(
    tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = await invoke(tmp_path, "contracts", "deploy", *arguments)
    assert (done.exit_code, words in done.stderr) == (status, True), done.stderr
