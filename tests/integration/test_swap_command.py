"""`cambist swap` against a venue with its makers on an embedded chain."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from click.testing import Result

from cambist.codecs.contracts.calldata import allowance, approve
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.transact import transact
from cambist.feeds.transport.httpx_transport import DialTransport
from cambist.feeds.transport.streams import client_tls
from support.client.commands import invoked
from support.client.sent import given_up_once_sent
from support.interrupts import interrupted
from support.patience import PATIENCE_S, until_told
from support.venue.venue_role import CHAIN_ID, MAKER_KEYS, STRANGER, USER, Devnet, RunningVenue, running_venue

ONE, USDC = 10**18, 10**6
TRANSPORT: dict[str, Any] = {"tls": client_tls(), "connections_max": 1, "limits": Http1Limits()}


class Shell:
    """Runs the command for the user."""

    def __init__(self, venue: RunningVenue, folder: Path) -> None:
        self.venue = venue
        self.devnet = venue.devnet
        self.folder = folder

    async def swap(self, *arguments: str, typed: str = "") -> "subprocess.CompletedProcess[bytes]":
        """As a process of its own: where somebody is asked, and where a swap reverts under way."""
        with trio.fail_after(PATIENCE_S):
            return await trio.run_process(
                [sys.executable, "-m", "cambist", "swap", *arguments, *self.places()],
                stdin=typed.encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=os.environ | self.environ(),
                cwd=self.folder,
            )

    async def invoke(self, *arguments: str) -> Result:
        """In a thread of this process, which starts sooner."""
        return await invoked(["swap", *arguments, *self.places()], self.environ())

    def places(self) -> list[str]:
        venue, node = self.venue.url, self.devnet.running.url
        return ["--venue", venue, "--chain", str(CHAIN_ID), "--rpc", node, "--key", "env:KEY"]

    def environ(self) -> dict[str, str]:
        return {"KEY": USER.secret32().hex()}

    async def swapped(self, *arguments: str) -> dict[str, Any]:
        done = await self.invoke(*arguments, "--yes", "--json")
        assert done.exit_code == 0, (done.stderr, done.exception)
        (line,) = done.stdout.splitlines()
        told: dict[str, Any] = json.loads(line)
        return told

    async def allowed(self, token: str) -> int:
        data = allowance(USER.address, self.devnet.at("router"))
        return int.from_bytes(await self.devnet.chain.call(EthCall(self.devnet.at(token), data)), "big")


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    async with running_venue(tmp_path) as venue:
        yield Shell(venue, tmp_path)


async def test_a_sale_shows_its_terms_asks_and_moves_what_it_says(shell: Shell) -> None:
    before = await shell.devnet.balance(USER, "USDC")
    done = await shell.swap("weth", "USDC", "1.5", typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown, said = done.stderr.decode(), done.stdout.decode()
    for part in (
        f"sell               1.5 WETH  {shell.devnet.text('WETH')}",
        "1 WETH = 2499.75 USDC",
        "WETH -> USDC by alpha 100 %",
        "partner fee        0.01 % (anon)",
        "impact",
        "gas                about",
        "at least received  3730.876875 USDC  (50 bps)",
        f"router             {shell.devnet.text('router')}",
        "first              approve the exact amount of WETH to the router",
        "Swap? [y/N]",
        "sending the approval 0x",
        "sending the swap 0x",
    ):
        assert part in shown, (part, shown)
    assert said.startswith("swap swapped: 0x")
    assert "received     3749.625 USDC" in said
    assert await shell.devnet.balance(USER, "USDC") == before + 3_749_625_000
    assert await shell.allowed("WETH") == 0


async def test_two_hops_and_the_native_token_and_a_receiver(shell: Shell) -> None:
    receiver = f"0x{'ab' * 20}"
    told = await shell.swapped("ETH", "USDC", "2", "--receiver", receiver)
    assert (told["status"], told["step"], told["spent"]) == ("swapped", "swap", str(2 * ONE))
    assert told["received"] == told["quotedDest"]
    assert await shell.devnet.balance(bytes.fromhex(receiver[2:]), "USDC") == int(told["received"])
    told = await shell.swapped("DAI", "USDC", "1000")
    assert int(told["received"]) >= int(told["limit"]) > 990 * USDC


async def test_a_purchase_of_the_native_token_with_a_permit(shell: Shell) -> None:
    before = await shell.devnet.balance(USER, "USDC")
    told = await shell.swapped("USDC", "ETH", "0.5", "--buy", "--permit", "--slippage", "30")
    assert told["received"] == str(ONE // 2)
    assert int(told["spent"]) <= int(told["limit"]) == int(told["quotedSrc"]) * 10_030 // 10_000
    assert await shell.devnet.balance(USER, "USDC") == before - int(told["spent"])


async def test_a_dry_run_and_a_no_send_nothing(shell: Shell) -> None:
    nonce = await shell.devnet.chain.nonce(USER.address)
    done = await shell.invoke("WETH", "USDC", "1", "--dry-run", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["step"] == "price"
    done = await shell.invoke("ETH", "USDC", "1", "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("swap rehearsed, nothing was sent\n")
    for typed in ("n\n", ""):
        declined = await shell.swap("WETH", "USDC", "1", typed=typed)
        assert declined.returncode == 1
        assert declined.stdout == b""
    assert await shell.devnet.chain.nonce(USER.address) == nonce


async def test_yes_is_not_said_to_any_price_impact(tmp_path: Path) -> None:
    steep = {"WETH/USDC": {"bids": [["2500", "0.1"], ["1000", "50"]], "asks": [["2501", "20"]]}}
    async with running_venue(tmp_path, grids={"alpha": steep}) as venue:
        shell = Shell(venue, tmp_path)
        done = await shell.invoke("WETH", "USDC", "10", "--yes")
        assert done.exit_code == 1
        assert "Error: the price impact is above the venue's ceiling" in done.stderr
        assert (await shell.swapped("WETH", "USDC", "10", "--max-impact", "90"))["status"] == "swapped"


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("WETH", "USDC", "one"), 2, "AMOUNT: expected a decimal string"),
    (("WETH", "USDC", "0"), 2, "AMOUNT: is zero"),
    (("USDC", "WETH", "1.0000001"), 2, "AMOUNT: USDC has 6 decimals, got 1.0000001"),
    (("WETH", "WETH", "1"), 2, "BUY_TOKEN: equals SELL_TOKEN"),
    (("WETH", "NOPE", "1"), 2, "BUY_TOKEN: expected an address or a symbol that the venue lists"),
    ((f"0x{'12' * 20}", "USDC", "1"), 2, "SELL_TOKEN: no token at 0x1212"),
    (("0x12", "USDC", "1"), 2, "SELL_TOKEN: expected"),
    (("WETH", "USDC", "1", "--slippage", "10001"), 2, "--slippage"),
    (("WETH", "USDC", "1", "--receiver", "0x1"), 2, "--receiver"),
    (("WETH", "USDC", "1", "--max-impact", "x"), 2, "--max-impact"),
    (("WETH", "USDC", "1", "--permit", "--approve-max"), 2, "exclude each other"),
    (
        ("WETH", "USDC", "1", "--api-key", "env:NOT_SET"),
        2,
        "--api-key: environment variable NOT_SET is not set",
    ),
    (("WETH", "USDC", "1", "--router", f"0x{'12' * 20}"), 1, "not signed: contracts.json augustusV6_2"),
    (("WETH", "USDC", "900000", "--yes"), 1, "400 NoRoute: No route"),
    (("WETH", "USDC", "1", "--yes", "--permit"), 1, "takes no EIP-2612 permits: use an approval"),
]


async def test_what_is_wrong_is_said_in_one_line(shell: Shell) -> None:
    for arguments, status, said in WRONG:
        done = await shell.invoke(*arguments)
        assert done.exit_code == status, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, arguments
        assert done.stdout == "", arguments


async def test_a_swap_that_reverts_in_its_block_ends_with_3(shell: Shell) -> None:
    devnet = shell.devnet
    await devnet.chain.set_automine(on=False)
    ended: list[subprocess.CompletedProcess[bytes]] = []

    async def run() -> None:
        ended.append(await shell.swap("ETH", "USDC", "1", "--yes", "--json"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await until_told(lambda: _waits(devnet))
        for key in MAKER_KEYS.values():
            await devnet.chain.send_raw(await _first_in_line(devnet, key))
        await devnet.chain.mine()
    told = json.loads(ended[0].stdout)
    assert (ended[0].returncode, told["status"], told["step"]) == (3, "reverted", "swap")
    assert told["txHash"].encode() in ended[0].stderr
    assert told["spent"] == told["received"] == "0"


async def test_a_swap_that_is_never_mined_ends_with_4_and_its_hash(shell: Shell) -> None:
    await shell.devnet.chain.set_automine(on=False)
    with given_up_once_sent():
        done = await shell.invoke("ETH", "USDC", "1", "--yes", "--json")
    assert done.exit_code == 4, done.output
    told = json.loads(done.stdout)
    assert (told["status"], told["blockNumber"]) == ("unknown", None)
    assert await shell.devnet.chain.knows(bytes.fromhex(told["txHash"][2:]))


async def test_who_interrupts_a_swap_that_was_sent_is_told_that_it_may_be_mined(shell: Shell) -> None:
    await shell.devnet.chain.set_automine(on=False)
    command = [sys.executable, "-m", "cambist", "swap", "ETH", "USDC", "1", "--yes", *shell.places()]
    status, said = await interrupted(command, shell.environ(), shell.folder, b"sending the swap 0x")
    assert (status, "a transaction that was sent may be mined all the same" in said) == (4, True), said


async def _waits(devnet: Devnet) -> bool:
    """Whether a transaction of the user's waits: the node counts it in the pending block."""
    async with httpx.AsyncClient(transport=DialTransport(**TRANSPORT), timeout=PATIENCE_S) as client:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionCount"}
        address = f"0x{USER.address.hex()}"
        counts: list[str] = [
            (await client.post(devnet.running.url, json=asked | {"params": [address, at]})).json()["result"]
            for at in ("latest", "pending")
        ]
    return counts[0] != counts[1]


async def _first_in_line(devnet: Devnet, key: SigningKey) -> bytes:
    """A maker allows nothing any more, and pays more than others for it."""
    nonce = await devnet.chain.nonce(key.address)
    data = approve(devnet.at("rfq"), 0)
    fee = 500 * 10**9
    return sign_transaction(
        Transaction(CHAIN_ID, nonce, fee, fee, 100_000, devnet.at("USDC"), 0, data), key
    ).raw


async def test_more_than_there_is_is_said(shell: Shell) -> None:
    has = await shell.devnet.balance(USER, "WBTC")
    await transact(shell.devnet.chain, USER, shell.devnet.at("WBTC"), _transfer(STRANGER.address, has))
    done = await shell.invoke("WBTC", "USDC", "1", "--yes")
    assert done.exit_code == 1
    assert "has 0 WBTC, and 1 WBTC is needed" in done.stderr


async def test_an_allowance_that_does_not_suffice_is_replaced(shell: Shell) -> None:
    devnet = shell.devnet
    await transact(devnet.chain, USER, devnet.at("WETH"), approve(devnet.at("router"), 5))
    told = await shell.swapped("WETH", "USDC", "1")
    assert told["status"] == "swapped"


def _transfer(to: bytes, amount: int) -> bytes:
    return bytes.fromhex("a9059cbb") + to.rjust(32, b"\0") + amount.to_bytes(32, "big")
