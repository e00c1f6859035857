"""`cambist order limit | twap | list | watch` against a scripted venue that settles on an embedded chain."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC
from support.client.shells import Shell, an_order_shell
from support.patience import PATIENCE_S, until

LIMIT = ("limit", "WETH", "USDC", "1", "--limit", "2600", "--yes")
TWAP = ("twap", "WETH", "USDC", "1", "--slices", "3", "--interval", "5m", "--yes")


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    async with an_order_shell(tmp_path) as opened:
        yield opened


# --- limit --------------------------------------------------------------------------------------------


async def test_a_limit_order_says_how_far_its_price_is_and_stops_once_it_is_placed(shell: Shell) -> None:
    done = await shell.order("limit", "WETH", "USDC", "1.5", "--limit", "2600", "--partial", typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stderr.decode()
    for part in (
        "price now          1 WETH = 2500 USDC",
        "limit price        1 WETH = 2600 USDC  (+4.00 % from now)",
        "at least received  3900 USDC  (the limit)",
        "parts              it may be settled in parts, none at a worse price",
        "valid for          7 d",
        "Place it? [y/N]",
    ):
        assert part in shown, (part, shown)
    placed = shell.venue.only
    assert f"order placed: {placed.id} PENDING" in done.stdout.decode()
    assert (placed.type, placed.is_partial) == ("LIMIT", True)
    assert shell.venue.only_order.dest_amount == 3_900 * USDC
    assert f"`cambist order watch {placed.id}" in shown


async def test_a_price_is_rounded_for_the_user(shell: Shell) -> None:
    """A third of a dollar for a WETH; and a purchase at 3 WETH for a dollar."""
    sale = await shell.told("limit", "WETH", "USDC", "1", "--limit", "2666.6666666", "--yes")
    assert sale["limit"] == "2666666667"
    purchase = await shell.told(
        *("limit", "USDC", "WETH", "0.5", "--limit", "0.0003", "--side", "buy", "--yes")
    )
    assert (purchase["side"], purchase["limit"]) == ("BUY", str(5_000 * USDC // 3))
    assert int(purchase["limit"]) * 3 * ONE // 10_000 <= ONE // 2 * USDC


async def test_a_limit_amount_does_without_a_price_and_is_followed_where_that_is_wanted(shell: Shell) -> None:
    amount = ("--limit-amount", "2490.5", "--deadline", "90m")
    told = await shell.told("limit", "WETH", "USDC", "1", *amount, "--yes", "--follow")
    assert (told["outcome"], told["limit"], told["isProven"]) == ("settled", "2490500000", True)
    now_s = await shell.world.now_s()
    assert shell.venue.only_order.deadline - now_s <= 90 * 60


async def test_parts_are_followed_and_proven_one_by_one(shell: Shell) -> None:
    placed_id = (await shell.told(*LIMIT, "--partial"))["id"]
    placed = shell.venue.placed[placed_id]
    shell.venue.price = 2_600 * USDC

    async def at_look(_: Any) -> None:
        await shell.venue.settle(placed, *(() if placed.filled else (ONE * 6 // 10,)))

    shell.venue.at_look = at_look
    done = await shell.invoke("watch", placed_id, "--rpc", shell.node)
    assert done.exit_code == 0, done.stderr
    assert "60.0 %" in done.stderr
    assert "40.0 %" in done.stderr
    assert "spent        1 WETH\nreceived     2600 USDC" in done.stdout
    assert done.stdout.count("transaction  0x") == 2


# --- twap ---------------------------------------------------------------------------------------------


async def test_a_twap_shows_its_schedule_and_its_worst_price_before_it_asks(shell: Shell) -> None:
    done = await shell.order("twap", "WETH", "USDC", "1", "--slices", "3", "--interval", "5m", typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown = squeezed(done.stderr.decode())
    for part in (
        f"sell in all 1 WETH {to_checksum(shell.world.weth)}",
        "slices 3 of 0.333333333333333333 WETH, the last 0.333333333333333334 WETH",
        "schedule one every 5 min: the first at once, the last in 10 min at the earliest",
        "price now 1 WETH = 2499.999999 USDC",
        "worst price 1 WETH = 2487.499",
        "(-0.50 % from now)",
        "at least received 2487.49",
        " in all (50 bps)",
        "valid for 35 min",
        "first approve the exact amount of WETH to the spender",
    ):
        assert part in shown, (part, shown)
    order = shell.venue.only.order
    assert isinstance(order, TwapOrder)
    assert (order.num_slices, order.interval, order.total_src_amount) == (3, 300, ONE)
    assert await shell.venue.allowed(shell.world.weth, shell.world.user.address) == ONE


async def test_a_twap_is_followed_slice_by_slice_and_proven(shell: Shell) -> None:
    shell.venue.at_look = shell.venue.settle_on_schedule
    told = await shell.told(*TWAP, "--min", "2400", "--follow")
    assert (told["outcome"], told["isProven"], told["spent"]) == ("settled", True, str(ONE))
    assert (told["slices"], told["intervalS"], told["sliceLimit"]) == (3, 300, str(800 * USDC))
    assert len(told["transactions"]) == 3
    assert int(told["received"]) >= int(told["limit"]) >= 2_400 * USDC


async def test_a_twap_that_buys_spends_no_more_than_its_maximum(shell: Shell) -> None:
    shell.venue.at_look = shell.venue.settle_on_schedule
    told = await shell.told(
        *("twap", "WETH", "USDC", "1000", "--side", "buy", "--slices", "2", "--interval", "60"),
        *("--max", "0.41", "--yes", "--follow"),
    )
    order = shell.venue.only.order
    assert isinstance(order, TwapBuyOrder)
    assert order.max_src_amount == 41 * ONE // 100
    assert (told["received"], told["spent"]) == (str(1_000 * USDC), str(4 * ONE // 10))


async def test_a_twap_may_begin_with_less_than_it_sells_and_says_so(shell: Shell) -> None:
    has = await shell.world.balance(shell.world.weth, shell.world.user) // ONE
    done = await shell.invoke("twap", "WETH", "USDC", f"{2 * has}", *TWAP[4:])
    assert done.exit_code == 0, done.stderr
    suspends = f"note you have {has} WETH: a slice that is not there when it is due suspends the order"
    assert suspends in squeezed(done.stderr)
    done = await shell.invoke("twap", "WETH", "USDC", f"{6 * has}", *TWAP[4:])
    assert done.exit_code == 1
    assert f"has {has} WETH, and {2 * has} WETH is needed" in done.stderr


# --- list ---------------------------------------------------------------------------------------------


async def test_all_pages_are_listed_as_a_table_or_as_lines_of_json(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trader.client.order.order_listing._PAGE_ORDERS", 2)
    for wanted in (LIMIT, TWAP, ("swap", "USDC", "WETH", "0.25", "--side", "buy", "--yes", "--no-wait")):
        await shell.told(*wanted)
    first = next(iter(shell.venue.placed.values()))
    shell.venue.change(first, "CANCELLED")
    done = await shell.invoke("list", "--owner", to_checksum(shell.world.user.address))
    assert done.exit_code == 0, done.stderr
    header, swap, twap, limit = done.stdout.splitlines()
    assert header.split() == ["created", "id", "status", "kind", "chain", "sells", "for", "filled", "expires"]
    assert " swap 31337 at most 628.125 USDC 0.25 WETH 0 % " in squeezed(swap)
    assert " twap 31337 1 WETH at least 2487.499999 USDC 0 % " in squeezed(twap)
    assert limit.split()[:4] == ["2026-01-01", "00:00", first.id, "CANCELLED"]
    assert "3 orders" in done.stderr
    lines = (await shell.invoke("list", "--json")).stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [*reversed(shell.venue.placed)]
    only = await shell.invoke("list", "--status", "cancelled", "--chain", "31337", "--json")
    assert [json.loads(line)["id"] for line in only.stdout.splitlines()] == [first.id]
    assert (await shell.invoke("list", "--owner", f"0x{'ab' * 20}")).stderr == "0 orders\n"


# --- watch --------------------------------------------------------------------------------------------


async def test_a_pushed_change_is_told_at_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a push nothing would be asked for a minute."""
    for pause in ("TRADER_ORDER_LOOK_S", "TRADER_ORDER_LOOK_S_MAX"):
        monkeypatch.setattr(f"cambist.engine.trader.client.following.{pause}", 60)
    venue = shell.venue
    venue.pushes, venue.at_look = True, None
    told = await shell.told(*LIMIT)
    venue.price = 2_600 * USDC
    async with trio.open_nursery() as nursery:

        async def settle_once_watched() -> None:
            await until(lambda: venue.listening)
            await venue.settle(venue.only)

        nursery.start_soon(settle_once_watched)
        done = await shell.invoke("watch", told["id"], "--timeout", f"{PATIENCE_S}")
    assert done.exit_code == 0, done.stderr
    assert venue.listening == [{"orderId": told["id"]}]
    assert "is COMPLETED: settled" in done.stderr


async def test_changes_of_many_are_lines_until_it_is_interrupted_and_go_on_from_their_token(
    shell: Shell,
) -> None:
    venue = shell.venue
    venue.pushes = True
    command = shell.command("watch", "--owner", to_checksum(shell.world.user.address), "--json")
    async with await trio.open_file(shell.folder / "changes", "wb") as changes:
        process = await trio.lowlevel.open_process(
            command, stdout=changes.wrapped, stderr=subprocess.PIPE, env=os.environ | shell.environ()
        )
        assert process.stderr is not None
        with trio.fail_after(PATIENCE_S):
            said = await _until(process.stderr, b"pushes changes")
            first = (await shell.told(*LIMIT))["id"]
            await until(lambda: (shell.folder / "changes").stat().st_size)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
            said += await _until(process.stderr, b"goes on from here")
    (line,) = (shell.folder / "changes").read_text().splitlines()
    change = json.loads(line)
    assert (change["id"], change["status"]) == (first, "PENDING")
    assert f"`--after {change['token']}` goes on from here" in said.decode()
    assert "Traceback" not in said.decode()
    second = (await shell.told(*LIMIT))["id"]
    done = await shell.invoke("watch", "--after", change["token"], "--timeout", "5")
    assert done.exit_code == 0, done.stderr
    assert f"order {second} is PENDING: it waits for a bid" in done.stdout
    assert first not in done.stdout


async def test_a_venue_without_events_says_so_where_they_are_all_that_is_wanted(shell: Shell) -> None:
    done = await shell.invoke("watch", "--timeout", "5")
    assert done.exit_code == 1
    assert "Error: GET /v2/delta/orders/events: 404 NotFound" in done.stderr


def squeezed(text: str) -> str:
    """On one line, with single spaces."""
    return " ".join(text.split())


async def _until(stream: trio.abc.ReceiveStream, mark: bytes) -> bytes:
    said = b""
    while mark not in said:
        data = await stream.receive_some()
        assert data, said
        said += data
    return said


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("limit", "WETH", "USDC", "1"), 2, "one of --limit and --limit-amount is needed"),
    (("limit", "WETH", "USDC", "1", "--limit", "1", "--limit-amount", "1"), 2, "one of --limit and"),
    (("limit", "WETH", "USDC", "1", "--limit", "1e3"), 2, "--limit: expected a decimal string"),
    (("limit", "WETH", "USDC", "1", "--limit", "0"), 2, "--limit: is zero"),
    (("limit", "WETH", "USDC", "1", "--limit-amount", "-2"), 2, "--limit-amount: expected a decimal string"),
    (("limit", "WETH", "USDC", "1", "--limit-amount", "1.0000001"), 2, "--limit-amount: USDC has 6 decimals"),
    (
        ("limit", "USDC", "WETH", "0.1", "--side", "BUY", "--limit", "1000000"),
        2,
        "--limit: at this price not one unit of USDC may be spent",
    ),
    (("limit", "WETH", "USDC", "1", "--limit", "1", "--permit"), 2, "No such option"),
    (
        ("limit", "WETH", "USDC", "1", "--limit", "1", "--deadline", "1w"),
        2,
        "'--deadline': expected seconds, or",
    ),
    (("limit", "WETH", "USDC", "1", "--limit", "1", "--deadline", "0"), 2, "'--deadline': expected 1 to"),
    (("twap", "WETH", "USDC", "1", "--interval", "60"), 2, "--slices"),
    (("twap", "WETH", "USDC", "1", "--slices", "1", "--interval", "60"), 2, "--slices"),
    (("twap", "WETH", "USDC", "1", "--slices", "2", "--interval", "59"), 2, "'--interval': expected 60 to"),
    ((*TWAP, "--max", "1"), 2, "--side SELL is bounded by --min"),
    ((*TWAP, "--side", "BUY", "--min", "1"), 2, "--side BUY is bounded by --max"),
    ((*TWAP, "--min", "1", "--slippage", "1"), 2, "--slippage: excluded by --min"),
    ((*TWAP, "--min", "some"), 2, "--min: expected a decimal string"),
    (
        (*TWAP, "--deadline", "15m"),
        2,
        "--deadline: expected at least 960 s, as 3 slices take 900 s, got 900 s",
    ),
    (
        ("twap", "USDC", "WETH", "0.000002", "--slices", "3", "--interval", "60"),
        2,
        "--slices: expected at most 2, a raw unit for each, got 3",
    ),
    (
        (
            "twap",
            "USDC",
            "WETH",
            "0.1",
            "--side",
            "BUY",
            "--slices",
            "3",
            "--interval",
            "60",
            "--max",
            "0.000002",
        ),
        1,
        "a slice may spend less than one unit",
    ),
    (("swap", "WETH", "USDC", "1", "--strategy", "vault"), 2, "--strategy: expected an address"),
    (("swap", "WETH", "USDC", "1", "--strategy", f"0x{'ab' * 20}"), 2, "--strategy: no token at 0x"),
    (("swap", "WETH", "USDC", "1", "--strategy", "0x", "--side", "BUY"), 2, "--strategy: only for a sale"),
    (
        ("limit", "WETH", "USDC", "1", "--limit", "1", "--strategy", "0x", "--partial"),
        2,
        "--partial: not with --strategy",
    ),
    ((*TWAP, "--strategy", "0x"), 2, "No such option"),
    (("list", "--status", "OPEN"), 2, "--status"),
    (("list", "--owner", "0x12"), 2, "--owner"),
    (("watch", "nobody", "--owner", f"0x{'ab' * 20}"), 2, "--owner: not with an ID"),
    (("watch", "--rpc", "http://127.0.0.1:1"), 2, "--rpc: only with an ID"),
]


async def test_what_is_wrong_names_the_option_in_one_line(shell: Shell) -> None:
    for arguments, status, said in WRONG:
        done = await shell.invoke(*arguments)
        assert done.exit_code == status, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, arguments
        assert done.stdout == "", arguments
    assert shell.venue.submissions == []
