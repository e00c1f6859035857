"""`cambist otc post` against a scripted venue, on an embedded chain behind JSON-RPC."""

import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.crypto.addresses import to_checksum
from cambist.crypto.custody.keystore import encrypt_key
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.signatures import signer
from support.chain.world import MOST, NOBODY, ONE, USDC
from support.client.scripted_orders import OrderLies
from support.client.scripted_otc import Kept, OtcLies
from support.client.shells import OtcShell, an_otc_shell
from support.patience import PATIENCE_S

OFFER = ("post", "USDC", "WETH", "2500", "--price", "0.0004")


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[OtcShell]:
    async with an_otc_shell(tmp_path) as opened:
        yield opened


def order_in(told: dict[str, Any]) -> RfqOrder:
    """Signed order in the command's JSON."""
    return RFQ_ORDER.from_wire({name: told[name] for name in RFQ_ORDER.member_names})


async def allowed(shell: OtcShell) -> int:
    world = shell.world
    return await world.ask(world.usdc, calldata.allowance(world.maker.address, world.at.rfq))


# --- What is posted -----------------------------------------------------------------------------------


async def test_an_order_shows_its_terms_asks_and_is_posted_as_it_was_signed(shell: OtcShell) -> None:
    world, taker = shell.world, to_checksum(shell.world.taker.address)
    out = shell.folder / "order.json"
    done = await shell.order(*OFFER, "--taker", taker, "--expires", "12h", "--out", str(out), typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stderr.decode()
    for part in (
        f"sell       2500 USDC  {to_checksum(world.usdc)}",
        f"for        1 WETH  {to_checksum(world.weth)}",
        "price      1 USDC = 0.0004 WETH, 1 WETH = 2500 USDC",
        f"taker      {taker}",
        "valid for  12 h",
        f"spender    {to_checksum(world.at.rfq)} (RFQ)",
        "first      approve the exact amount of USDC to the spender",
        "Post it? [y/N]",
        "sending the approval 0x",
        "signing the order 0x",
    ):
        assert part in shown, (part, shown)
    (order_hash,) = shell.venue.kept
    assert f"order posted: PENDING\nhash         {order_hash}" in done.stdout.decode()
    order = order_in(shell.venue.posts[0])
    assert order.taker == world.taker.address
    assert order.nonce_and_meta >> 96 == int.from_bytes(world.maker.address, "big")
    now_s = max(await world.now_s(), int(time.time()))
    assert 0 < order.expiry - now_s <= 12 * 3_600
    signature = parse_hex(shell.venue.posts[0]["signature"], "signature")
    assert len(signature) == 65
    assert signer(world.rfq_hash(order), signature) == world.maker.address
    handed = json.loads(out.read_text())
    assert handed == shell.venue.posts[0] | {"chainId": 31_337, "orderHash": order_hash}
    assert await allowed(shell) == 2_500 * USDC
    assert world.maker.secret32().hex() not in shown + done.stdout.decode()


async def test_a_keystore_posts_fills_and_cancels(shell: OtcShell, monkeypatch: pytest.MonkeyPatch) -> None:
    def a_keystore(of: OtcShell) -> OtcShell:
        text = encrypt_key(
            of.key, "open sesame", salt32=bytes(32), iv16=bytes(16), file_id=str(UUID(int=1)), scrypt_n=2
        ).decode()
        monkeypatch.setattr(
            of, "environ", lambda: {"KEY": text, "PASSWORD": "open sesame", "WRONG": "open barley"}
        )
        return of

    maker, taker = a_keystore(shell), a_keystore(shell.of(shell.world.taker))
    done = await maker.invoke(*OFFER, "--yes", "--password", "env:WRONG")
    assert (done.exit_code, shell.venue.kept, await allowed(shell)) == (1, {}, 0), done.stderr
    assert "env:KEY: keystore: wrong password" in done.stderr
    assert shell.world.maker.secret32().hex() not in done.stderr
    password = ("--yes", "--password", "env:PASSWORD")
    posted = await maker.told(*OFFER, *password)
    filled = await taker.told("fill", posted["orderHash"], "--receive", "500", *password)
    assert (filled["outcome"], filled["given"]) == ("filled", str(ONE // 5))
    assert filled["received"] == str(500 * USDC)
    taken_back = await maker.told("cancel", posted["orderHash"], *password[1:])
    (order,) = taken_back["orders"]
    assert (order["orderHash"], order["outcome"]) == (posted["orderHash"], "cancelled")


async def test_without_a_taker_it_is_open_to_anyone_and_says_so(shell: OtcShell) -> None:
    done = await shell.invoke(*OFFER, "--expires", "never", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "taker      anyone: whoever comes first" in done.stderr
    assert "valid for  ever, until it is cancelled" in done.stderr
    order = order_in(shell.venue.posts[0])
    assert (order.taker, order.expiry) == (NOBODY, 0)


async def test_any_amount_is_approved_only_when_asked_for_and_then_once(shell: OtcShell) -> None:
    told = await shell.told(*OFFER, "--approve-max", "--yes")
    assert (told["outcome"], told["state"], await allowed(shell)) == ("posted", "PENDING", MOST)
    done = await shell.invoke("post", "USDC", "WETH", "7600", "--receive", "3", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "sending the approval" not in done.stderr
    assert "older orders of yours come first: they leave 7500 USDC, as the venue says" in " ".join(
        done.stderr.split()
    )
    assert order_in(shell.venue.posts[1]).taker_amount == 3 * ONE


async def test_an_approval_that_older_orders_share_says_so(shell: OtcShell) -> None:
    await shell.told(*OFFER, "--yes")
    larger = ("post", "USDC", "WETH", "5000", "--price", "0.0004", "--yes", "--dry-run")
    note = "older orders of yours share that, and come first; --approve-max allows more"
    shown = [
        " ".join((await shell.invoke(*larger, *more)).stderr.split()) for more in ((), ("--approve-max",))
    ]
    assert [note in text for text in shown] == [True, False]
    assert ["approve" in text for text in shown] == [True, True]


async def test_any_amount_is_approved_for_older_orders_besides(shell: OtcShell) -> None:
    await shell.told(*OFFER, "--yes")
    done = await shell.invoke(*OFFER, "--yes")
    assert (done.exit_code, await allowed(shell)) == (0, 2_500 * USDC)
    note = "they leave 0 USDC, as the venue says; --approve-max lets the spender take more"
    assert note in " ".join(done.stderr.split())
    done = await shell.invoke(*OFFER, "--approve-max", "--yes")
    assert (done.exit_code, await allowed(shell)) == (0, MOST)
    assert "first approve any amount of USDC to the spender" in " ".join(done.stderr.split())


async def test_a_price_is_rounded_for_the_maker(shell: OtcShell) -> None:
    """A millionth of a dollar at a third of a WETH for a dollar."""
    told = await shell.told("post", "USDC", "WETH", "0.000001", "--price", "0.3333333333333333333", "--yes")
    order = order_in(told["signedOrder"])
    assert (order.maker_amount, order.taker_amount) == (1, 333_333_333_334)


async def test_a_permit_goes_with_the_order_in_place_of_an_approval(shell: OtcShell) -> None:
    before = await shell.world.chain.nonce(shell.world.maker.address)
    told = await shell.told(*OFFER, "--permit", "--yes")
    assert len(parse_hex(told["signedOrder"]["permitMakerAsset"], "permit")) == 224
    assert await shell.world.chain.nonce(shell.world.maker.address) == before
    filled = await shell.of(shell.world.taker).told("fill", told["orderHash"], "--yes")
    assert (filled["outcome"], filled["received"]) == ("filled", str(2_500 * USDC))


async def test_a_balance_that_lacks_is_told_and_has_to_be_meant(shell: OtcShell) -> None:
    large = ("post", "USDC", "WETH", "12000", "--price", "0.0004")
    done = await shell.invoke(*large, "--yes")
    assert done.exit_code == 1
    assert "you lack 2000 USDC: the venue suspends the order until you have it" in done.stderr
    assert "you have 10000 USDC, and 12000 USDC is offered" in done.stderr
    assert "--even-if-short" in done.stderr
    assert (shell.venue.posts, await allowed(shell)) == ([], 0)
    asked = await shell.order(*large, typed="y\n")
    assert asked.returncode == 0
    assert "Post it, although you do not have that much? [y/N]" in asked.stderr.decode()
    assert (await shell.told(*large, "--even-if-short", "--yes"))["state"] == "SUSPENDED"


async def test_a_no_and_a_dry_run_sign_nothing(shell: OtcShell) -> None:
    done = await shell.order(*OFFER, typed="n\n")
    assert (done.returncode, done.stdout) == (1, b"")
    told = await shell.told(*OFFER, "--dry-run")
    assert (told["outcome"], told["orderHash"]) == ("rehearsed", None)
    assert (shell.venue.posts, await allowed(shell)) == ([], 0)


# --- What is refused before anything is signed --------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("post", "ETH", "USDC", "1", "--price", "2500"), "SELL_TOKEN: is the native token"),
        (("post", "USDC", "ETH", "1", "--price", "1"), "BUY_TOKEN: is the native token"),
        (("post", "USDC", "usdc", "1", "--price", "1"), "BUY_TOKEN: equals SELL_TOKEN"),
        (("post", "USDC", "WETH", "1"), "one of --price and --receive is needed"),
        (("post", "USDC", "WETH", "1", "--price", "1", "--receive", "1"), "one of --price and --receive"),
        (("post", "USDC", "WETH", "1", "--price", "0"), "--price: is zero"),
        (("post", "USDC", "WETH", "x", "--price", "1"), "AMOUNT: expected a decimal"),
        (("post", "USDC", "WETH", "0.0000001", "--price", "1"), "AMOUNT: USDC has 6 decimals"),
        (("post", "USDC", "WETH", "1", "--receive", "0"), "--receive: is zero"),
        (("post", "USDC", "WETH", "1", "--price", "1", "--expires", "soon"), "'--expires': expected seconds"),
        (
            ("post", "USDC", "WETH", "1", "--price", "1", "--taker", f"0x{'00' * 20}"),
            "--taker: the zero address",
        ),
        (("post", "USDC", "WETH", "1", "--price", "1", "--permit", "--approve-max"), "exclude each other"),
    ],
)
async def test_wrong_usage_names_the_argument(shell: OtcShell, arguments: tuple[str, ...], said: str) -> None:
    done = await shell.invoke(*arguments, "--yes")
    assert (done.exit_code, shell.venue.posts) == (2, [])
    assert said in done.stderr, done.stderr


async def test_a_taker_who_is_the_maker_and_a_file_that_is_there_are_refused(shell: OtcShell) -> None:
    own = await shell.invoke(*OFFER, "--taker", to_checksum(shell.world.maker.address), "--yes")
    assert own.exit_code == 2
    assert "--taker: is the account of the key itself" in own.stderr
    (there := shell.folder / "there.json").write_text("mine")
    done = await shell.invoke(*OFFER, "--out", str(there), "--yes")
    assert done.exit_code == 2
    assert "exists; it is not overwritten" in done.stderr
    assert (there.read_text(), shell.venue.posts) == ("mine", [])


async def test_a_file_that_cannot_be_made_is_refused_before_anything_is_approved(shell: OtcShell) -> None:
    for out in (shell.folder / "nowhere" / "order.json", shell.folder / "order.json" / "order.json"):
        (shell.folder / "order.json").touch()
        done = await shell.invoke(*OFFER, "--out", str(out), "--yes")
        assert done.exit_code == 2
        assert f"--out: no file can be made in {out.parent}" in done.stderr
    assert (shell.venue.posts, await allowed(shell)) == ([], 0)


async def test_a_contract_of_other_code_is_not_signed_for(shell: OtcShell) -> None:
    world = shell.world

    def contracts(document: dict[str, Any]) -> dict[str, Any]:
        ((chain, entry),) = document["chains"].items()
        return document | {"chains": {chain: entry | {"augustusRFQ": to_checksum(world.usdc)}}}

    shell.venue.order_lies = OrderLies(contracts=contracts)
    done = await shell.invoke(*OFFER, "--yes")
    assert done.exit_code == 1
    assert "is not that of this release's Rfq: --rfq pins an address that you trust" in done.stderr
    pinned = await shell.invoke(*OFFER, "--rfq", to_checksum(world.at.rfq), "--yes")
    assert pinned.exit_code == 1
    assert f"contracts.json augustusRFQ: expected {to_checksum(world.at.rfq)}" in pinned.stderr
    assert shell.venue.posts == []


# --- What a venue says of it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"orderHash": f"0x{'11' * 32}"}, "orderHash is"),
        ({"makerAmount": "2500000001"}, "maker_amount is 2500000001, not 2500000000"),
        ({"taker": f"0x{'66' * 20}"}, "taker is 0x6666"),
        ({"expiry": 0}, "expiry is 0"),
        ({"chainId": 1}, "chainId is 1, not 31337"),
        ({"signature": "0x11"}, "signature is 0x11"),
        ({"permitMakerAsset": "0x1234"}, "permitMakerAsset is 0x1234"),
        ({"maker": "x"}, "is malformed"),
    ],
)
async def test_a_venue_that_answers_with_another_order_is_caught(
    shell: OtcShell, lie: dict[str, Any], said: str
) -> None:
    shell.venue.otc_lies = OtcLies(posted=lambda stored: stored | lie)
    told = await shell.told(*OFFER, "--yes", status=4)
    assert (told["outcome"], told["state"]) == ("unknown", None)
    assert said in told["reason"], told
    assert told["orderHash"] in shell.venue.kept
    assert told["signedOrder"]["orderHash"] == told["orderHash"]


async def test_a_post_that_is_not_answered_is_looked_for(shell: OtcShell) -> None:
    shell.venue.drops = 1
    done = await shell.invoke(*OFFER, "--yes")
    assert done.exit_code == 0, done.stderr
    assert "nobody knows what became of it (request r-1): looking for the order" in done.stderr
    assert len(shell.venue.posts) == 1


async def test_a_refusal_is_told_in_the_venues_words(shell: OtcShell) -> None:
    body = {"errorType": "InvalidSignature", "details": "not the maker's", "requestId": "r-7"}
    shell.venue.refuses_posts = (400, body)
    done = await shell.invoke(*OFFER, "--yes")
    assert done.exit_code == 1, done.stderr
    assert "POST /ft/p2p/31337: 400 InvalidSignature: not the maker's (request r-7)" in done.stderr
    assert shell.venue.kept == {}
    assert "The venue has seen the signed order 0x" in done.stderr
    assert f"--rfq {to_checksum(shell.world.at.rfq)} ...` closes it for good" in done.stderr


async def test_an_order_that_is_followed_ends_with_the_fill(shell: OtcShell) -> None:
    world, venue = shell.world, shell.venue
    await world.approve(world.taker, world.weth, world.at.rfq)

    async def fill(kept: Kept) -> None:
        venue.before_look = None
        data = calldata.fill_order(kept.order, parse_hex(kept.body["signature"], "signature"))
        await world.send(world.taker, world.at.rfq, data)

    venue.before_look = fill
    told = await shell.told(*OFFER, "--follow", "--yes")
    assert (told["outcome"], told["state"]) == ("fulfilled", "FULFILLED")
    assert told["order"]["fillableBalance"] == "0"
    assert told["signedOrder"]["orderHash"] == told["orderHash"]


async def test_who_interrupts_it_is_told_how_to_go_on(shell: OtcShell) -> None:
    looked = trio.Event()

    async def look(_: Kept) -> None:
        looked.set()

    shell.venue.before_look = look
    async with await trio.open_file(shell.folder / "stderr", "wb") as stderr:
        process = await trio.lowlevel.open_process(
            shell.command(*OFFER, "--follow", "--yes"),
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
    (order_hash,) = shell.venue.kept
    assert f"the order goes on: `cambist otc watch {order_hash}" in said, "the venue has taken it"
    assert "Traceback" not in said


async def test_time_that_is_up_says_how_to_go_on(shell: OtcShell) -> None:
    done = await shell.invoke(*OFFER, "--follow", "--timeout", "1", "--yes")
    assert done.exit_code == 4, done.stderr
    (order_hash,) = shell.venue.kept
    assert "order not ended: PENDING" in done.stdout
    assert f"`cambist otc watch {order_hash} --venue {shell.venue.url}` follows it" in done.stderr
    assert f"`cambist otc cancel {order_hash} --venue" in done.stderr
