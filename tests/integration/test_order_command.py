"""`cambist order` against a scripted venue that settles on an embedded chain behind JSON-RPC."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from cambist.crypto.addresses import to_checksum
from cambist.engine.cli import cli
from support.scripted_orders import OrderLies, OrderVenue, Placed, scripted_orders
from support.venue_role import CHAIN_ID, served_devnet
from support.world import NATIVE, ONE, USDC, a_world

PATIENCE_S = 60


class Shell:
    """Runs the command for the user."""

    def __init__(self, venue: OrderVenue, node: str, folder: Path) -> None:
        self.venue = venue
        self.world = venue.world
        self.node = node
        self.folder = folder

    async def order(self, *arguments: str, typed: str = "") -> "subprocess.CompletedProcess[bytes]":
        """As a process of its own."""
        with trio.fail_after(PATIENCE_S):
            return await trio.run_process(
                self.command(*arguments),
                stdin=typed.encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=os.environ | self.environ(),
                cwd=self.folder,
            )

    async def invoke(self, *arguments: str) -> Result:
        """In a thread of this process, which starts sooner."""
        with trio.fail_after(PATIENCE_S):
            return await trio.to_thread.run_sync(
                lambda: CliRunner().invoke(
                    cli, ["order", *self.placed(*arguments)], env=self.environ(), input=""
                )
            )

    async def told(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """The JSON that it ends with."""
        done = await self.invoke(*arguments, "--json")
        assert done.exit_code == status, (done.stderr, done.exception)
        (line,) = done.stdout.splitlines()
        told: dict[str, Any] = json.loads(line)
        return told

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "cambist", "order", *self.placed(*arguments)]

    def placed(self, *arguments: str) -> list[str]:
        """With venue, chain and key; `watch` needs neither of the last two."""
        places = ["--venue", self.venue.url]
        if arguments[0] != "watch":
            places += ["--chain", str(CHAIN_ID), "--rpc", self.node, "--key", "env:KEY"]
        return [*arguments, *places]

    def environ(self) -> dict[str, str]:
        return {"KEY": self.world.user.secret32().hex()}


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    async with served_devnet(tmp_path) as devnet:
        world = await a_world(devnet.chain)
        await world.give(world.maker, world.usdc, 100_000 * USDC, world.at.rfq)
        await world.give(world.maker, world.weth, 100 * ONE, world.at.rfq)
        await world.mint(world.weth, world.user, 10 * ONE)
        await world.mint(world.usdc, world.user, 10_000 * USDC)
        async with scripted_orders(world) as venue:
            venue.at_look = venue.settle
            yield Shell(venue, devnet.running.url, tmp_path)


async def test_a_sale_shows_its_terms_asks_and_ends_with_what_the_chain_says(shell: Shell) -> None:
    world = shell.world
    done = await shell.order("swap", "weth", "USDC", "1.5", typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown, said = done.stderr.decode(), done.stdout.decode()
    for part in (
        f"sell               1.5 WETH  {to_checksum(world.weth)}",
        "1 WETH = 2500 USDC",
        "partner fee        0 % (anon), included",
        "impact             0.40 %",
        "at least received  3731.25 USDC  (50 bps)",
        "valid for          1200 s",
        f"spender            {to_checksum(world.at.delta)} (Delta)",
        "first              approve the exact amount of WETH to the spender",
        "Swap? [y/N]",
        "sending the approval 0x",
        "signing the order 0x",
        "is PENDING: no agent has bid yet",
        "settled by 0x",
        "is COMPLETED: settled",
    ):
        assert part in shown, (part, shown)
    assert f"order settled: {shell.venue.only.id} COMPLETED" in said
    assert "spent        1.5 WETH\nreceived     3750 USDC" in said
    assert await world.balance(world.usdc, world.user) == 13_750 * USDC


async def test_a_no_and_a_dry_run_sign_nothing(shell: Shell) -> None:
    done = await shell.order("swap", "WETH", "USDC", "1", typed="n\n")
    assert (done.returncode, done.stdout) == (1, b"")
    told = await shell.told("swap", "WETH", "USDC", "1", "--dry-run")
    assert (told["outcome"], told["status"], told["limit"]) == ("rehearsed", None, "2487500000")
    assert len(shell.venue.builds) == 1
    assert shell.venue.submissions == []


async def test_native_tokens_another_receiver_and_a_purchase(shell: Shell) -> None:
    receiver = f"0x{'ab' * 20}"
    told = await shell.told("swap", "ETH", "USDC", "2", "--yes", "--receiver", receiver)
    assert (told["outcome"], told["status"], told["isProven"]) == ("settled", "COMPLETED", True)
    assert (told["spent"], told["received"]) == (str(2 * ONE), str(5_000 * USDC))
    assert await shell.world.balance(shell.world.usdc, bytes.fromhex(receiver[2:])) == 5_000 * USDC
    told = await shell.told(
        *("swap", "USDC", "WETH", "0.5", "--side", "buy", "--permit", "--yes", "--slippage", "30")
    )
    assert (told["side"], told["received"], told["spent"]) == ("BUY", str(ONE // 2), str(1_250 * USDC))
    assert told["limit"] == str(1_250 * USDC * 10_030 // 10_000)


async def test_a_limit_order_is_placed_and_watched_later(shell: Shell) -> None:
    limit = ("--type", "LIMIT", "--limit-amount", "2490.5", "--deadline", "5000")
    told = await shell.told("swap", "WETH", "USDC", "1", *limit, "--yes", "--no-wait")
    assert (told["outcome"], told["status"], told["type"]) == ("placed", "PENDING", "LIMIT")
    assert told["limit"] == "2490500000"
    assert shell.venue.only.order.dest_amount == 2_490_500_000
    unproven = await shell.told("watch", told["orderHash"].upper().replace("0X", "0x"))
    assert (unproven["outcome"], unproven["isProven"], unproven["executed"]) == (
        "settled",
        False,
        "2500000000",
    )
    done = await shell.invoke("watch", told["id"], "--rpc", shell.node)
    assert done.exit_code == 0, done.stderr
    assert "spent        1 WETH\nreceived     2500 USDC" in done.stdout


async def test_time_that_is_up_says_how_to_go_on(shell: Shell) -> None:
    shell.venue.at_look = None
    done = await shell.invoke("swap", "WETH", "USDC", "1", "--yes", "--timeout", "0.2")
    assert done.exit_code == 4, done.stderr
    order_id = shell.venue.only.id
    assert f"order unknown: {order_id} PENDING" in done.stdout
    assert f"the order goes on: `cambist order watch {order_id} --venue {shell.venue.url}`" in done.stderr
    assert f"`cambist order cancel {order_id}" in done.stderr
    assert (await shell.told("watch", order_id, "--timeout", "0.2", status=4))["status"] == "PENDING"


async def test_who_interrupts_it_is_told_how_to_go_on(shell: Shell) -> None:
    looked = trio.Event()

    async def at_look(_: Placed) -> None:
        looked.set()

    shell.venue.at_look = at_look
    async with await trio.open_file(shell.folder / "stderr", "wb") as stderr:
        process = await trio.lowlevel.open_process(
            shell.command("swap", "WETH", "USDC", "1", "--yes"),
            stderr=stderr.wrapped,
            stdout=subprocess.DEVNULL,
            env=os.environ | shell.environ(),
            cwd=shell.folder,
        )
        with trio.fail_after(PATIENCE_S):
            await looked.wait()
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 4
    said = await trio.Path(shell.folder / "stderr").read_text()
    assert f"the order goes on: `cambist order watch {shell.venue.only.id}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("status", ["FAILED", "EXPIRED", "CANCELLED"])
async def test_an_order_that_ends_otherwise_ends_with_3(shell: Shell, status: str) -> None:
    async def at_look(placed: Placed) -> None:
        placed.status = status

    shell.venue.at_look = at_look
    done = await shell.invoke("swap", "ETH", "USDC", "1", "--yes")
    assert done.exit_code == 3, done.stderr
    assert f"order ended: {shell.venue.only.id} {status}" in done.stdout
    assert "`cambist order withdraw` takes back what was deposited" in done.stderr
    order_hash = f"0x{shell.world.delta_hash(shell.venue.only.order).hex()}"
    before = await shell.world.balance(NATIVE, shell.world.user)
    assert (await shell.told("withdraw", order_hash))["amountWei"] == str(ONE)
    assert await shell.world.balance(NATIVE, shell.world.user) > before + ONE * 99 // 100


async def test_a_venue_that_only_says_completed_is_not_believed(shell: Shell) -> None:
    shell.venue.order_lies = OrderLies(record=lambda record: record | {"status": "COMPLETED"})
    shell.venue.at_look = None
    told = await shell.told("swap", "WETH", "USDC", "1", "--yes", status=4)
    assert (told["outcome"], told["status"], told["isProven"]) == ("unknown", "COMPLETED", False)
    assert told["reason"] == "the venue says that it is completed, and on chain it is still open"


async def test_a_refusal_is_told_with_the_request(shell: Shell) -> None:
    refusal = {"errorType": "NoRoute", "details": "No route", "requestId": "r-5"}
    tokens = await shell.invoke("swap", "WETH", "USDC", "1", "--dry-run")
    assert tokens.exit_code == 0
    real = shell.venue.served

    async def refusing(request: Any) -> bytes:
        if request.path == b"/v2/quote":
            shell.venue.refusals.append((400, {}, refusal))
            return await shell.venue._answer(request)
        return await real(request)

    shell.venue.served = refusing  # type: ignore[method-assign]
    done = await shell.invoke("swap", "WETH", "USDC", "1", "--yes")
    assert done.exit_code == 1
    assert "Error: GET /v2/quote: 400 NoRoute: No route (request r-5)" in done.stderr


async def test_orders_are_cancelled_and_what_won_is_told(shell: Shell) -> None:
    async def cancels(placed: Placed) -> None:
        if placed.status == "CANCELLING":
            placed.status = "CANCELLED"

    shell.venue.at_look = cancels
    first, second, third = [
        (await shell.told("swap", "WETH", "USDC", "1", "--yes", "--no-wait"))["id"] for _ in range(3)
    ]
    told = await shell.told("cancel", first, second)
    assert told["orders"] == [{"id": first, "status": "CANCELLED"}, {"id": second, "status": "CANCELLED"}]

    async def settles(placed: Placed) -> None:
        if placed.status == "CANCELLING":
            await shell.venue.settle(placed)

    shell.venue.at_look = settles
    done = await shell.invoke("cancel", third)
    assert done.exit_code == 3, done.stderr
    assert f"order {third} COMPLETED: settled" in done.stdout
    shell.venue.at_look = None
    fourth = (await shell.told("swap", "WETH", "USDC", "1", "--yes", "--no-wait"))["id"]
    done = await shell.invoke("cancel", fourth, "--timeout", "0.2")
    assert done.exit_code == 4, done.stderr
    assert f"order {fourth} CANCELLING" in done.stdout


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("swap", "WETH", "USDC", "one"), 2, "AMOUNT: expected a decimal string"),
    (("swap", "WETH", "USDC", "0"), 2, "AMOUNT: is zero"),
    (("swap", "USDC", "WETH", "1.0000001"), 2, "AMOUNT: USDC has 6 decimals, got 1.0000001"),
    (("swap", "WETH", "WETH", "1"), 2, "BUY_TOKEN: is the token that is sold"),
    (("swap", "WETH", "NOPE", "1"), 2, "BUY_TOKEN: expected an address or a symbol that the venue lists"),
    (("swap", "WETH", "USDC", "1", "--type", "LIMIT"), 2, "--type LIMIT and --limit-amount go together"),
    (("swap", "WETH", "USDC", "1", "--limit-amount", "1"), 2, "--type LIMIT and --limit-amount go together"),
    (
        ("swap", "WETH", "USDC", "1", "--type", "LIMIT", "--limit-amount", "2500.0000001"),
        2,
        "--limit-amount: USDC has 6 decimals",
    ),
    (
        ("swap", "WETH", "USDC", "1", "--type", "LIMIT", "--limit-amount", "1", "--permit"),
        2,
        "a limit order needs an approval",
    ),
    (("swap", "WETH", "USDC", "1", "--permit", "--approve-max"), 2, "exclude each other"),
    (("swap", "WETH", "USDC", "1", "--timeout", "0"), 2, "--timeout"),
    (("swap", "WETH", "USDC", "1", "--side", "up"), 2, "--side"),
    (("swap", "WETH", "USDC", "1", "--delta", f"0x{'12' * 20}"), 1, "not signed: contracts.json delta"),
    (("swap", "WETH", "USDC", "1", "--yes", "--permit"), 1, "takes no EIP-2612 permits: approve instead"),
    (("swap", "WETH", "USDC", "900000", "--yes"), 1, "raw units of WETH, and"),
    (("watch", "0x12"), 2, "ID: expected 0x and 64 hexadecimal digits"),
    (("watch", "nobody"), 1, "404 OrderNotFound: Order not found (request r-9)"),
    (("watch", "../../tokens/1"), 1, "404"),
    (("cancel", *map(str, range(101))), 2, "ID: at most 100 at once, got 101"),
    (("cancel", "nobody"), 1, "404 OrderNotFound"),
    (("withdraw", "nobody"), 2, "HASH: expected 0x and 64"),
    (("withdraw", "0x" + "11" * 32), 1, "has no deposit for the order"),
]


async def test_what_is_wrong_is_said_in_one_line(shell: Shell) -> None:
    for arguments, status, said in WRONG:
        done = await shell.invoke(*arguments)
        assert done.exit_code == status, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, arguments
        assert done.stdout == "", arguments
    assert shell.venue.submissions == []
