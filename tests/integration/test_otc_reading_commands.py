"""`cambist otc cancel | list | watch` against a scripted venue, on an embedded chain behind JSON-RPC."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.addresses import to_checksum
from support.chain.world import HOUR_S, ONE, USDC
from support.client.scripted_otc import Kept, OtcLies
from support.client.sent import given_up_once_sent
from support.client.shells import OtcShell, an_otc_shell
from support.contracts.rfq_stories import FILLED_OR_CANCELLED, remaining
from support.patience import PATIENCE_S, until


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[OtcShell]:
    async with an_otc_shell(tmp_path) as opened:
        world = opened.world
        await world.approve(world.maker, world.usdc, world.at.rfq)
        await world.approve(world.taker, world.weth, world.at.rfq)
        yield opened


def kept(shell: OtcShell, **changed: Any) -> tuple[str, RfqOrder]:
    """An order of the maker's that the venue has."""
    order = shell.world.an_rfq_order(**changed)
    return shell.venue.keep(order, shell.world.signed(order)), order


async def fill(shell: OtcShell, order: RfqOrder, amount: int) -> None:
    world = shell.world
    data = calldata.partial_fill_order(order, world.signed(order), amount)
    await world.send(world.taker, world.at.rfq, data)


# --- cancel -------------------------------------------------------------------------------------------


async def test_one_order_is_cancelled_and_proven(shell: OtcShell) -> None:
    name, order = kept(shell)
    told = await shell.told("cancel", name)
    assert told["orders"] == [{"orderHash": name, "outcome": "cancelled", "stateBefore": "PENDING"}]
    assert await remaining(shell.world, order) == FILLED_OR_CANCELLED
    receipt = await shell.world.chain.receipt(bytes.fromhex(told["txHash"][2:]))
    assert receipt is not None
    assert len(receipt.logs) == 1


async def test_all_that_expire_within_a_time_are_cancelled_without_a_list(shell: OtcShell) -> None:
    world = shell.world
    _, soon = kept(shell, expiry=await world.now_s() + HOUR_S)
    _, late = kept(shell, expiry=await world.now_s() + 3 * HOUR_S)
    told = await shell.told("cancel", "--all-within", "2h")
    maker = await world.ask(world.at.rfq, calldata.cancelled_until(world.maker.address))
    assert told["until"] == maker >= await world.now_s() + 2 * HOUR_S - 60
    data = calldata.fill_order(soon, world.signed(soon))
    assert await world.refused(world.taker, world.at.rfq, data) == "Order already filled or expired"
    await fill(shell, late, ONE)
    again = await shell.invoke("cancel", "--all-within", "1h")
    assert (again.exit_code, "Cancelled already" in again.stderr) == (1, True)
    for wrong in ((), ("--all-within", "2h", kept(shell)[0])):
        refused = await shell.invoke("cancel", *wrong)
        assert (refused.exit_code, "exactly one of them names the orders" in refused.stderr) == (2, True)


async def test_many_are_cancelled_in_one_transaction_and_those_that_ended_are_told(shell: OtcShell) -> None:
    world = shell.world
    orders = [kept(shell) for _ in range(3)]
    (full, filled), (gone, cancelled) = kept(shell), kept(shell)
    over, _ = kept(shell, expiry=await world.now_s() + HOUR_S)
    await fill(shell, filled, ONE)
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(cancelled)))
    await world.pass_time(HOUR_S + 1)
    nonce = await world.chain.nonce(world.maker.address)
    names = [name for name, _ in orders]
    done = await shell.invoke("cancel", *names, full, gone, over, names[0])
    assert done.exit_code == 3, done.stderr
    for line in (
        *(f"order {name} cancelled\n" for name in names),
        f"order {full} closed before: FULFILLED, as the venue says",
        f"order {gone} closed before: CANCELLED, as the venue says",
        f"order {over} expired before",
    ):
        assert line in done.stdout
    assert await world.chain.nonce(world.maker.address) == nonce + 1
    assert [await remaining(world, order) for _, order in orders] == [FILLED_OR_CANCELLED] * 3
    again = await shell.told("cancel", *names)
    assert (again["txHash"], {order["outcome"] for order in again["orders"]}) == (None, {"closed before"})
    assert await world.chain.nonce(world.maker.address) == nonce + 1


async def test_a_fill_that_the_venue_calls_a_cancellation_is_none(shell: OtcShell) -> None:
    name, order = kept(shell)
    await fill(shell, order, ONE)
    shell.venue.otc_lies = OtcLies(stored=lambda stored: stored | {"state": "CANCELLED"})
    done = await shell.invoke("cancel", name)
    assert done.exit_code == 3, done.stdout
    assert done.stdout == f"order {name} closed before\n"
    assert "does not cancel this order" in done.stderr


async def test_an_order_of_another_maker_cancels_nothing(shell: OtcShell) -> None:
    world = shell.world
    mine, order = kept(shell)
    other = world.an_rfq_order(maker=world.partner.address)
    theirs = shell.venue.keep(other, world.signed(other, world.partner))
    done = await shell.invoke("cancel", mine, theirs)
    assert done.exit_code == 1
    assert f"is {to_checksum(world.partner.address)}'s" in done.stderr
    assert await remaining(world, order) == 0


async def test_an_order_that_no_venue_knows_is_cancelled_by_its_file(shell: OtcShell) -> None:
    name, order = kept(shell)
    (file := shell.folder / "order.json").write_text(json.dumps(shell.venue.kept.pop(name).body))
    unknown = await shell.invoke("cancel", name)
    assert unknown.exit_code == 1
    assert "404 OrderNotFound" in unknown.stderr
    told = await shell.told("cancel", str(file), "--no-venue", "--rfq", to_checksum(shell.world.at.rfq))
    assert told["orders"][0]["outcome"] == "cancelled"
    assert await remaining(shell.world, order) == FILLED_OR_CANCELLED


async def test_without_a_venue_a_hash_is_cancelled_unseen_for_the_keys_account(shell: OtcShell) -> None:
    world, (name, order) = shell.world, kept(shell)
    rfq = ("--no-venue", "--rfq", to_checksum(world.at.rfq))
    stranger = await shell.of(world.stranger).told("cancel", name, *rfq)
    assert stranger["orders"] == [{"orderHash": name, "outcome": "cancelled", "stateBefore": None}]
    assert await remaining(world, order) == 0, "a stranger's cancellation is of its own account"
    said = await shell.of(world.stranger).invoke("cancel", name, f"0x{'34' * 32}", *rfq)
    assert f"is closed for {to_checksum(world.stranger.address)} and nobody else" in said.stderr
    await shell.told("cancel", name, *rfq)
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    again = await shell.invoke("cancel", name, *rfq)
    assert again.exit_code == 3
    assert again.stdout == f"order {name} closed before\n"


async def test_a_cancellation_that_is_not_mined_is_told_to_programs_too(shell: OtcShell) -> None:
    await shell.world.chain.set_automine(on=False)
    name, _ = kept(shell)
    with given_up_once_sent():
        told = await shell.told("cancel", name, status=4)
    assert told["orders"] == [{"orderHash": name, "outcome": "unknown", "stateBefore": None}]
    assert len(told["txHash"]) == 66


# --- list ---------------------------------------------------------------------------------------------


async def test_a_makers_orders_are_a_table_page_after_page(shell: OtcShell) -> None:
    world, venue = shell.world, shell.venue
    venue.page_max = 2
    names = [kept(shell, expiry=0 if at else 4_102_444_800)[0] for at in range(5)]
    await fill(shell, venue.kept[names[4]].order, ONE // 4)
    done = await shell.invoke("list", "--account", to_checksum(world.maker.address))
    assert done.exit_code == 0, done.stderr
    header, first, *rest = done.stdout.splitlines()
    assert header.split()[:4] == ["created", "hash", "state", "sells"]
    assert [line.split()[2] for line in (first, *rest)] == names[::-1]
    for cell in ("2026-01-01 00:04", "PENDING", "2500 USDC", "1 WETH", "1875 USDC", "never", "anyone"):
        assert cell in first
    assert "2100-01-01 00:00" in rest[-1]
    assert "5 orders" in done.stderr
    asked = [line for line in venue.requests if "/ft/p2p/31337/maker/" in line]
    assert len(asked) == 3
    assert venue.as_of == [None, "as of 5", "as of 5"]


async def test_lists_take_what_is_asked_for(shell: OtcShell) -> None:
    world = shell.world
    named, _ = kept(shell, taker=world.taker.address)
    small, order = kept(shell)
    later, _ = kept(shell, expiry=4_102_444_800)
    await fill(shell, order, ONE)

    async def listed(*options: str) -> list[str]:
        done = await shell.invoke("list", *options, "--json")
        assert done.exit_code == 0, done.stderr
        return [json.loads(line)["orderHash"] for line in done.stdout.splitlines()]

    maker = ("--account", to_checksum(world.maker.address))
    assert await listed(*maker) == [later, small, named]
    assert await listed("--key", "env:KEY") == [later, small, named]
    assert await listed(*maker, "--type", "p2p") == [named]
    assert await listed(*maker, "--hide-small") == [later, named]
    assert await listed(*maker, "--limit", "1", "--offset", "1") == [small]
    assert await listed(*maker, "--order-by", "expiry", "--limit", "5") == [small, named, later]
    taker = ("--account", to_checksum(world.taker.address))
    assert await listed(*taker) == []
    assert await listed(*taker, "--as", "taker") == [named]


async def test_an_order_that_is_not_the_accounts_is_no_answer(shell: OtcShell) -> None:
    name, _ = kept(shell)
    theirs = {"maker": to_checksum(shell.world.partner.address)}

    def listed(page: dict[str, Any]) -> dict[str, Any]:
        return page | {"orders": [page["orders"][0] | theirs]}

    shell.venue.otc_lies = OtcLies(listed=listed)
    done = await shell.invoke("list", "--key", "env:KEY")
    assert done.exit_code == 1
    assert f"the venue answers with {name}, which is none" in done.stderr
    done = await shell.invoke("list")
    assert done.exit_code == 2
    assert "one of --account and --key is needed" in done.stderr


# --- watch --------------------------------------------------------------------------------------------


async def test_an_order_is_watched_to_its_end_and_checked_on_chain(shell: OtcShell) -> None:
    name, order = kept(shell)
    parts = [ONE // 4, 3 * ONE // 4]

    async def fill_a_part(_: Kept) -> None:
        if parts:
            await fill(shell, order, parts.pop(0))

    shell.venue.before_look = fill_a_part
    done = await shell.invoke("watch", name, "--rpc", shell.node)
    assert done.exit_code == 0, done.stderr
    assert f"order {name} is PENDING: it can be filled" in done.stderr
    assert f"order {name} is FULFILLED: all of it is filled" in done.stderr
    assert "0 raw units are left: 0x" in done.stderr
    assert f"order fulfilled: FULFILLED\nhash         {name}\ntransaction  0x" in done.stdout


@pytest.mark.parametrize("state", ["FULFILLED", "CANCELLED"])
async def test_a_venue_that_only_says_so_is_not_believed(shell: OtcShell, state: str) -> None:
    name, _ = kept(shell)
    shell.venue.otc_lies = OtcLies(stored=lambda stored: stored | {"state": state})
    told = await shell.told("watch", name, "--rpc", shell.node, status=4)
    assert told["reason"] == f"the venue says that it is {state}, and on chain it is open"
    believed = await shell.told("watch", name, status=0 if state == "FULFILLED" else 3)
    assert (believed["state"], believed["isProven"]) == (state, False)


async def test_a_push_wakes_whoever_watches(shell: OtcShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.engine.trader.client.events.TRADER_ORDER_LOOK_PUSHED_S", 3_600)
    venue, (name, order) = shell.venue, kept(shell)
    venue.pushes = True
    world = shell.world

    async def cancelled() -> None:
        await until(lambda: venue.listening)
        await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))
        await venue.change(venue.kept[name])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancelled)
        told = await shell.told("watch", name, "--timeout", f"{PATIENCE_S}", status=3)
    assert (told["outcome"], told["state"]) == ("ended", "CANCELLED")
    assert venue.listening == [{"orderHash": name}]


async def test_changes_of_many_are_told_until_it_is_interrupted(shell: OtcShell) -> None:
    venue, world = shell.venue, shell.world
    venue.pushes = True
    (name, order), (other, _) = kept(shell), kept(shell, taker=world.user.address)
    maker = to_checksum(world.maker.address)
    out = shell.folder / "stdout"
    async with await trio.open_file(out, "wb") as stdout:
        process = await trio.lowlevel.open_process(
            shell.command("watch", "--maker", maker, "--json"),
            stdout=stdout.wrapped,
            stderr=subprocess.PIPE,
            env=os.environ | shell.environ(),
            cwd=shell.folder,
        )
        with trio.fail_after(PATIENCE_S):
            await until(lambda: venue.listening)
            assert venue.listening == [{"maker": maker}]
            await fill(shell, order, ONE // 2)
            await venue.change(venue.kept[name])
            await venue.change(venue.kept[other])
            await until(lambda: out.read_bytes().count(b"\n") == 2)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            said = b"".join([part async for part in process.stderr]).decode()
            assert await process.wait() == 0
    first, second = [json.loads(line) for line in out.read_text().splitlines()]
    assert (first["orderHash"], first["fillableBalance"]) == (name, str(1_250 * USDC))
    assert (second["orderHash"], second["taker"]) == (other, to_checksum(world.user.address))
    assert f"`--after {second['token']}` goes on from here" in said
    done = await shell.invoke("watch", "--maker", maker, "--after", first["token"], "--timeout", "5")
    assert done.exit_code == 0, done.stderr
    assert f"order {other} is PENDING: it can be filled, 2500000000 raw units left" in done.stdout
    assert name not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("watch", "0x12"), "HASH: expected 0x and 64 hexadecimal digits"),
        (("watch", f"0x{'12' * 32}", "--maker", f"0x{'12' * 20}"), "--maker: not with a HASH"),
        (("watch", "--rfq", f"0x{'12' * 20}"), "--rfq: only with a HASH"),
        (("watch", f"0x{'12' * 32}", "--rfq", f"0x{'12' * 20}"), "--rfq: needs --rpc"),
        (("cancel", *(f"0x{at:064x}" for at in range(101))), "HASH|FILE: at most 100 at once, got 101"),
    ],
)
async def test_wrong_usage_names_the_argument(shell: OtcShell, arguments: tuple[str, ...], said: str) -> None:
    done = await shell.invoke(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


async def test_an_order_that_is_not_there_is_no_order(shell: OtcShell) -> None:
    done = await shell.invoke("watch", f"0x{'12' * 32}")
    assert done.exit_code == 1
    assert "404 OrderNotFound: no order" in done.stderr
