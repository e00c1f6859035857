"""The trader believes the venue's end of an OTC order only if the chain proves it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.hexadecimal import parse_hex
from support.chain.world import HOUR_S, ONE
from support.client.scripted_otc import Kept, OtcLies
from support.client.shells import OtcShell, an_otc_shell

OFFER = ("post", "USDC", "WETH", "2500", "--price", "0.0004", "--yes")


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[OtcShell]:
    async with an_otc_shell(tmp_path) as opened:
        world = opened.world
        await world.approve(world.maker, world.usdc, world.at.rfq)
        await world.approve(world.taker, world.weth, world.at.rfq)
        yield opened


async def kept(shell: OtcShell, **changed: Any) -> tuple[str, RfqOrder]:
    """The venue has an order of 2,500 USDC for one WETH, open to anyone."""
    world = shell.world
    order = world.an_rfq_order(**{"expiry": await world.now_s() + HOUR_S} | changed)
    return shell.venue.keep(order, world.signed(order)), order


async def filled(shell: OtcShell, order: RfqOrder, amount: int) -> str:
    """By the taker; the transaction."""
    world = shell.world
    data = calldata.partial_fill_order(order, world.signed(order), amount)
    return f"0x{(await world.send(world.taker, world.at.rfq, data)).tx_hash.hex()}"


async def cancelled(shell: OtcShell, order: RfqOrder) -> str:
    """By its maker; the transaction."""
    world = shell.world
    data = calldata.cancel_order(world.rfq_hash(order))
    return f"0x{(await world.send(world.maker, world.at.rfq, data)).tx_hash.hex()}"


async def watched(shell: OtcShell, name: str, status: int) -> dict[str, Any]:
    return await shell.told("watch", name, "--rpc", shell.node, status=status)


def lies(shell: OtcShell, **changed: Any) -> None:
    """From now on the venue says so of every order."""
    shell.venue.otc_lies = OtcLies(
        stored=lambda stored: stored | changed, posted=lambda stored: stored | changed
    )


# --- What is true -------------------------------------------------------------------------------------


async def test_each_end_that_is_true_is_proven(shell: OtcShell) -> None:
    whole, order = await kept(shell)
    await filled(shell, order, ONE)
    parts, order = await kept(shell, nonce_and_meta=2)
    await filled(shell, order, ONE // 4)
    await filled(shell, order, 3 * ONE // 4)
    for name in (whole, parts):
        told = await watched(shell, name, 0)
        assert (told["outcome"], told["isProven"]) == ("fulfilled", True)
    name, order = await kept(shell, nonce_and_meta=3)
    await cancelled(shell, order)
    told = await watched(shell, name, 3)
    assert (told["state"], told["isProven"]) == ("CANCELLED", True)
    name, _ = await kept(shell, nonce_and_meta=4, expiry=await shell.world.now_s() - 1)
    told = await watched(shell, name, 3)
    assert (told["state"], told["isProven"]) == ("EXPIRED", True)


# --- What is not --------------------------------------------------------------------------------------


async def test_an_order_whose_time_is_not_over_has_not_expired(shell: OtcShell) -> None:
    name, _ = await kept(shell)
    for_ever, _ = await kept(shell, nonce_and_meta=2, expiry=0)
    lies(shell, state="EXPIRED")
    for each in (name, for_ever):
        told = await watched(shell, each, 4)
        assert (told["outcome"], told["isProven"]) == ("unknown", False)
        assert "the venue says that it is EXPIRED, and its time is not over" in told["reason"]


async def test_a_fill_is_not_called_an_expiry(shell: OtcShell) -> None:
    name, order = await kept(shell)
    await filled(shell, order, ONE)
    lies(shell, state="EXPIRED")
    told = await watched(shell, name, 4)
    assert told["reason"] == "the venue says that it is EXPIRED, and on chain it is closed"


async def test_a_cancellation_is_no_fill_and_a_fill_no_cancellation(shell: OtcShell) -> None:
    name, order = await kept(shell)
    by = await cancelled(shell, order)
    other, order = await kept(shell, nonce_and_meta=2)
    lies(shell, state="FULFILLED")
    told = await watched(shell, name, 4)
    assert told["reason"] == f"the transaction {by} fills nothing of this order"
    lies(shell, state="FULFILLED", transactionHash=None)
    assert "names no transaction" in (await watched(shell, name, 4))["reason"]
    by = await filled(shell, order, ONE)
    lies(shell, state="CANCELLED")
    told = await watched(shell, other, 4)
    assert told["reason"] == f"the transaction {by} does not cancel this order"


async def test_the_fill_of_a_part_does_not_fill_an_order_that_is_cancelled_then(shell: OtcShell) -> None:
    name, order = await kept(shell)
    by = await filled(shell, order, ONE // 2)
    await cancelled(shell, order)
    lies(shell, state="FULFILLED", transactionHash=by)
    told = await watched(shell, name, 4)
    assert told["reason"] == f"the venue says that it is FULFILLED, and after the transaction {by} it is open"


async def test_what_is_posted_and_followed_is_asked_of_the_chain(shell: OtcShell) -> None:
    shell.venue.otc_lies = OtcLies(stored=lambda stored: stored | {"state": "FULFILLED"})
    done = await shell.invoke(*OFFER, "--follow")
    assert done.exit_code == 4, (done.stdout, done.stderr)
    (name,) = shell.venue.kept
    assert "the venue says that it is FULFILLED, and on chain it is open" in done.stdout
    assert f"the order may be live: `cambist otc watch {name}" in done.stderr


@pytest.mark.parametrize("state", ["FULFILLED", "CANCELLED", "EXPIRED"])
async def test_a_venue_that_calls_a_new_order_ended_is_not_believed(shell: OtcShell, state: str) -> None:
    lies(shell, state=state)
    done = await shell.invoke(*OFFER)
    assert done.exit_code == 4, (done.stdout, done.stderr)
    (name,) = shell.venue.kept
    assert f"the venue says that it is {state}, and" in done.stdout
    assert f"the order may be live: `cambist otc watch {name}" in done.stderr


async def test_an_order_that_is_followed_to_a_proven_end_says_so(shell: OtcShell) -> None:
    async def fill(each: Kept) -> None:
        shell.venue.before_look = None
        world = shell.world
        data = calldata.fill_order(each.order, parse_hex(each.body["signature"], "signature"))
        await world.send(world.taker, world.at.rfq, data)

    shell.venue.before_look = fill
    told = await shell.told(*OFFER, "--follow")
    assert (told["outcome"], told["isProven"]) == ("fulfilled", True)
