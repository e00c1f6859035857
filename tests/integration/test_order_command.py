"""`cambist order` against a scripted venue that settles on an embedded chain behind JSON-RPC."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts.delta_calldata import deposit_native_and_pre_sign
from cambist.crypto.addresses import to_checksum
from support import interrupts
from support.chain.world import NATIVE, ONE, USDC
from support.client.scripted_orders import OrderLies, Placed
from support.client.sent import given_up_once_sent
from support.client.shells import Shell, an_order_shell
from support.patience import PATIENCE, PATIENCE_S


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    async with an_order_shell(tmp_path) as opened:
        yield opened


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
        "valid for          20 min",
        f"spender            {to_checksum(world.at.delta)} (Delta)",
        "first              approve the exact amount of WETH to the spender",
        "Place it? [y/N]",
        "sending the approval 0x",
        "signing the order 0x",
        "is PENDING: it waits for a bid",
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


async def test_time_that_is_up_says_how_to_go_on(shell: Shell) -> None:
    shell.venue.at_look = None
    done = await shell.invoke("swap", "WETH", "USDC", "1", "--yes", "--timeout", "0.2")
    assert done.exit_code == 4, done.stderr
    order_id = shell.venue.only.id
    assert f"order not ended: {order_id} PENDING" in done.stdout
    assert f"the order goes on: `cambist order watch {order_id} --venue {shell.venue.url}`" in done.stderr
    assert f"`cambist order cancel {order_id}" in done.stderr
    assert "noBids: no agent bid for the order" in done.stderr
    assert (await shell.told("watch", order_id, "--timeout", "4", status=4))["status"] == "PENDING"


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
    before = await shell.world.balance(NATIVE, shell.world.user)
    assert (await shell.told("withdraw"))["amountWei"] == str(ONE)
    assert await shell.world.balance(NATIVE, shell.world.user) > before + ONE * 99 // 100


async def test_a_venue_that_only_says_completed_is_not_believed(shell: Shell) -> None:
    shell.venue.order_lies = OrderLies(record=lambda record: record | {"status": "COMPLETED"})
    shell.venue.at_look = None
    told = await shell.told("swap", "WETH", "USDC", "1", "--yes", status=4)
    assert (told["outcome"], told["status"], told["isProven"]) == ("unknown", "COMPLETED", False)
    assert told["reason"] == "the venue says that it is completed, and on chain it is still open"


async def test_a_venues_words_draw_no_row_of_the_offer(shell: Shell) -> None:
    def lies(block: dict[str, Any]) -> dict[str, Any]:
        partner = block["partner"] | {"name": "x\nat least received  9999 USDC\x1b[8m"}
        gas = block["route"]["fees"]["gas"] | {"amountUSD": "0\nat least received  9999"}
        route = block["route"] | {"fees": block["route"]["fees"] | {"gas": gas}}
        return block | {"partner": partner, "route": route}

    shell.venue.order_lies = OrderLies(price=lies)
    done = await shell.invoke("swap", "WETH", "USDC", "1", "--dry-run")
    assert done.exit_code == 0, done.stderr
    lines = [line.rstrip() for line in done.stderr.splitlines()]
    shown = [line for line in lines if line.startswith("at least received")]
    assert shown == ["at least received  2487.5 USDC  (50 bps)"]
    assert "\x1b" not in done.stderr


async def test_an_amount_that_makes_no_sense_does_not_hide_what_became_of_it(shell: Shell) -> None:
    def lies(record: dict[str, Any]) -> dict[str, Any]:
        return record | {"output": record["output"] | {"executedAmount": "many"}}

    shell.venue.order_lies = OrderLies(record=lies)
    told = await shell.told("swap", "WETH", "USDC", "1", "--yes", status=4)
    assert (told["outcome"], told["status"], told["executed"]) == ("unknown", "COMPLETED", None)
    assert told["reason"].startswith("executedAmount of order ")
    told = await shell.told("watch", told["id"])
    assert (told["status"], told["executed"]) == ("COMPLETED", None)
    assert (await shell.invoke("watch", told["id"])).exit_code == 0


async def test_an_end_that_the_chain_does_not_tell_of_is_not_known(shell: Shell) -> None:
    placed = await shell.told("swap", "WETH", "USDC", "1", "--yes")
    nowhere = "http://127.0.0.1:9"
    told = await shell.told("watch", placed["id"], "--rpc", nowhere, status=4)
    assert (told["outcome"], told["status"], told["isProven"]) == ("unknown", "COMPLETED", False)
    assert told["reason"]


async def test_a_deposit_that_may_be_mined_later_can_be_taken_back(shell: Shell) -> None:
    chain = shell.world.chain
    await chain.set_automine(on=False)
    with given_up_once_sent():
        done = await shell.invoke("swap", "ETH", "USDC", "1", "--yes")
    assert done.exit_code == 4, done.stderr
    assert "deposit unknown: 0x" in done.stdout
    assert f"`cambist order withdraw --venue {shell.venue.url}" in done.stderr
    await chain.mine()
    await chain.set_automine(on=True)
    assert (await shell.told("withdraw"))["amountWei"] == str(ONE)
    assert shell.venue.submissions == []


async def interrupted(
    shell: Shell, once_said: bytes, *arguments: str, again_s: float = PATIENCE_S
) -> tuple[int | None, str]:
    """Of `cambist order`, see `support.interrupts`."""
    command, environ = shell.command(*arguments), shell.environ()
    return await interrupts.interrupted(command, environ, shell.folder, once_said, again_s=again_s)


async def test_who_interrupts_a_transaction_is_told_that_it_may_be_mined(shell: Shell) -> None:
    chain, world = shell.world.chain, shell.world
    order_hash = bytes(range(32))
    await world.send(world.user, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=ONE)
    await chain.set_automine(on=False)
    status, said = await interrupted(shell, b"sending the withdrawal", "withdraw")
    assert (status, "a withdrawal that was sent may be mined all the same" in said) == (4, True), said
    await chain.mine()
    status, said = await interrupted(shell, b"sending the approval", "swap", "WETH", "USDC", "1", "--yes")
    assert (status, "no order was placed; an approval that was sent may be mined" in said) == (4, True), said
    await chain.mine()
    status, said = await interrupted(shell, b"sending the deposit", "swap", "ETH", "USDC", "1", "--yes")
    assert (status, "`cambist order withdraw --venue" in said) == (4, True), said
    assert shell.venue.submissions == []


async def test_who_interrupts_the_question_is_not_asked_for_an_answer(shell: Shell) -> None:
    """Python misses signals for a moment as it begins to read, so the test presses again."""
    status, said = await interrupted(
        shell, b"Place it? [y/N]", "swap", "WETH", "USDC", "1", again_s=5 * PATIENCE
    )
    assert (status, said.endswith("Aborted!\n")) == (1, True), said
    assert shell.venue.submissions == []


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
    done = await shell.invoke("cancel", fourth, "--timeout", "4")
    assert done.exit_code == 4, done.stderr
    assert f"order {fourth} CANCELLING" in done.stdout


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("swap", "WETH", "USDC", "one"), 2, "AMOUNT: expected a decimal string"),
    (("swap", "WETH", "USDC", "0"), 2, "AMOUNT: is zero"),
    (("swap", "USDC", "WETH", "1.0000001"), 2, "AMOUNT: USDC has 6 decimals, got 1.0000001"),
    (("swap", "WETH", "WETH", "1"), 2, "BUY_TOKEN: equals SELL_TOKEN"),
    (("swap", "WETH", "NOPE", "1"), 2, "BUY_TOKEN: expected an address or a symbol that the venue lists"),
    (("swap", "WETH", "USDC", "1", "--permit", "--approve-max"), 2, "exclude each other"),
    (("swap", "WETH", "USDC", "1", "--timeout", "0"), 2, "--timeout"),
    (("swap", "WETH", "USDC", "1", "--side", "up"), 2, "--side"),
    (("swap", "WETH", "USDC", "1", "--delta", f"0x{'12' * 20}"), 1, "not signed: contracts.json delta"),
    (("swap", "WETH", "USDC", "1", "--yes", "--permit"), 1, "takes no EIP-2612 permits: use an approval"),
    (("swap", "WETH", "USDC", "900000", "--yes"), 1, "WETH, and 900000 WETH is needed"),
    (("watch", "0x12"), 2, "ID: expected 0x and 64 hexadecimal digits"),
    (("watch", ""), 2, "ID: expected the id or the hash of an order, got nothing"),
    (("watch", "nobody", "--timeout", "nan"), 2, "--timeout"),
    (("watch", "nobody"), 1, "404 OrderNotFound: Order not found (request r-1)"),
    (("watch", "../../tokens/1"), 1, "404"),
    (("cancel", *map(str, range(101))), 2, "ID: at most 100 at once, got 101"),
    (("cancel", "nobody"), 1, "404 OrderNotFound"),
    (("cancel", ""), 2, "ID: expected the id or the hash of an order, got nothing"),
    (("cancel", "nobody", "--timeout", "nan"), 2, "--timeout"),
    (("withdraw", "--to", "nobody"), 2, "--to: expected"),
    (("withdraw", "--amount", "all"), 2, "--amount: expected"),
    (("withdraw", "--amount", "1"), 1, "has deposited 0 wei"),
]


async def test_what_is_wrong_is_said_in_one_line(shell: Shell) -> None:
    for arguments, status, said in WRONG:
        done = await shell.invoke(*arguments)
        assert done.exit_code == status, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, arguments
        assert done.stdout == "", arguments
    assert shell.venue.submissions == []
