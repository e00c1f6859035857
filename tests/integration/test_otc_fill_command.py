"""`cambist otc fill` against a scripted venue, and the real contract on an embedded chain behind JSON-RPC."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.addresses import to_checksum
from support.chain.world import HOUR_S, MOST, ONE, USDC
from support.client.scripted_otc import OtcLies
from support.client.shells import OtcShell, an_otc_shell
from support.contracts.permits import eip2612_permit, token_domain
from support.contracts.rfq_stories import FILLED_OR_CANCELLED, a_wallet, remaining

WHOLE = 2_500 * USDC


class Taking:
    """The taker's side of a maker's order, which is allowed already.

    Attributes:
        shell: the taker's.
    """

    def __init__(self, maker: OtcShell) -> None:
        self.maker = maker
        self.world = maker.world
        self.venue = maker.venue
        self.shell = maker.of(maker.world.taker)

    def order(self, **changed: Any) -> RfqOrder:
        """2,500 USDC for one WETH, for the taker alone."""
        named = {"taker": self.world.taker.address, "nonce_and_meta": pack_otc(self.world.maker.address, 7)}
        return self.world.an_rfq_order(**named | changed)

    def kept(self, order: RfqOrder) -> str:
        """The venue has it, signed by the maker; its hash."""
        return self.venue.keep(order, self.world.signed(order))

    async def fill(self, *arguments: str) -> dict[str, Any]:
        return await self.shell.told("fill", *arguments, "--yes")

    async def refused(self, *arguments: str) -> Result:
        """Refused before anything was sent: neither a fill nor an approval."""
        nonce = await self.world.chain.nonce(self.shell.key.address)
        done = await self.shell.invoke("fill", *arguments, "--yes")
        assert done.exit_code == 1, (done.stdout, done.stderr, done.exception)
        assert await self.world.chain.nonce(self.shell.key.address) == nonce
        return done

    async def has(self, token: bytes) -> int:
        return await self.world.balance(token, self.world.taker)


@pytest.fixture
async def taking(tmp_path: Path) -> AsyncIterator[Taking]:
    async with an_otc_shell(tmp_path) as shell:
        world = shell.world
        await world.approve(world.maker, world.usdc, world.at.rfq)
        yield Taking(shell)


# --- Fills --------------------------------------------------------------------------------------------


async def test_a_whole_order_shows_what_moves_asks_and_ends_with_what_the_chain_says(taking: Taking) -> None:
    world, order = taking.world, taking.order(expiry=await taking.world.now_s() + HOUR_S)
    order_hash = taking.kept(order)
    done = await taking.shell.order("fill", order_hash, typed="y\n")
    assert done.returncode == 0, done.stderr.decode()
    shown, said = done.stderr.decode(), done.stdout.decode()
    for part in (
        f"give          1 WETH  {to_checksum(world.weth)}",
        f"receive       2500 USDC  {to_checksum(world.usdc)}",
        "price         1 WETH = 2500 USDC, 1 USDC = 0.0004 WETH",
        f"maker         {to_checksum(world.maker.address)}",
        "of the order  all of it",
        "first         approve the exact amount of WETH to the spender",
        "Fill it? [y/N]",
        "sending the approval 0x",
        "sending the fill 0x",
    ):
        assert part in shown, (part, shown)
    assert f"order        {order_hash}\ngiven        1 WETH\nreceived     2500 USDC" in said
    assert said.startswith("fill filled: 0x")
    assert "note" not in said
    assert (await taking.has(world.usdc), await taking.has(world.weth)) == (WHOLE, 9 * ONE)
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert world.taker.secret32().hex() not in shown + said


async def test_parts_are_taken_to_the_end_by_what_is_given_or_received(taking: Taking) -> None:
    world, order = taking.world, taking.order()
    order_hash = taking.kept(order)
    first = await taking.fill(order_hash, "--amount", "0.25", "--approve-max")
    assert (first["given"], first["received"]) == (str(ONE // 4), str(625 * USDC))
    second = await taking.fill(order_hash, "--receive", "1000")
    assert (second["given"], second["received"]) == (str(4 * ONE // 10), str(1_000 * USDC))
    assert await remaining(world, order) == 875 * USDC + 1
    last = await taking.fill(order_hash)
    assert (last["given"], last["received"], last["leftBefore"]) == (
        str(35 * ONE // 100),
        str(875 * USDC),
        str(875 * USDC),
    )
    assert await remaining(world, order) == FILLED_OR_CANCELLED
    assert await taking.has(world.usdc) == WHOLE
    done = await taking.refused(order_hash)
    assert "the order has no unfilled amount: the venue says that it was filled by 0x" in done.stderr


async def test_of_a_rest_that_does_not_divide_nothing_is_given_for_nothing(taking: Taking) -> None:
    """Seven units for three: a third of it brings two, and the rest five."""
    world, order = taking.world, taking.order(maker_amount=7, taker_amount=3 * ONE + 1)
    order_hash = taking.kept(order)
    first = await taking.fill(order_hash, "--receive", "0.000002")
    assert first["received"] == "2"
    assert int(first["given"]) == -(-2 * (3 * ONE + 1) // 7)
    last = await taking.fill(order_hash)
    assert (last["received"], int(last["given"])) == ("5", -(-5 * (3 * ONE + 1) // 7))
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_an_open_order_is_filled_by_whoever_comes(taking: Taking) -> None:
    world = taking.world
    await world.mint(world.weth, world.stranger, ONE)
    order_hash = taking.kept(world.an_rfq_order())
    told = await taking.maker.of(world.stranger).told("fill", order_hash, "--yes")
    assert (told["outcome"], told["received"]) == ("filled", str(WHOLE))


async def test_a_file_is_filled_without_the_venue(taking: Taking) -> None:
    world, file = taking.world, taking.shell.folder / "order.json"
    posted = await taking.maker.told(
        *("post", "USDC", "WETH", "2500", "--price", "0.0004", "--yes", "--out", str(file)),
        *("--taker", to_checksum(world.taker.address)),
    )
    asked = len(taking.venue.requests)
    rfq = to_checksum(world.at.rfq)
    told = await taking.fill(str(file), "--no-venue", "--rfq", rfq, "--amount", "0.5")
    assert (told["outcome"], told["orderHash"]) == ("filled", posted["orderHash"])
    assert told["received"] == str(WHOLE // 2)
    (whole := taking.shell.folder / "told.json").write_text(json.dumps(posted))
    assert (await taking.fill(str(whole), "--no-venue", "--rfq", rfq))["received"] == str(WHOLE // 2)
    assert len(taking.venue.requests) == asked


async def test_an_order_of_a_contract_is_filled_by_its_word(taking: Taking) -> None:
    world = taking.world
    wallet = await a_wallet(world, world.partner)
    order = taking.order(maker=wallet)
    order_hash = taking.venue.keep(order, world.signed(order, world.partner))
    told = await taking.fill(order_hash)
    assert (told["received"], told["maker"]) == (str(WHOLE), to_checksum(wallet))
    other = taking.order(maker=wallet, expiry=await world.now_s() + HOUR_S)
    strange = taking.venue.keep(other, world.signed(other, world.stranger))
    done = await taking.refused(strange)
    assert f"the signature is not that of the maker {to_checksum(wallet)}" in done.stderr


async def test_permits_of_either_side_stand_for_approvals(taking: Taking) -> None:
    """The maker's goes with the order, the taker's is signed here; the second fill needs neither."""
    world = taking.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    await world.mint(world.dai, world.taker, 10_000 * ONE)
    deadline = await world.now_s() + HOUR_S
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    permit = eip2612_permit(domain, world.maker, world.at.rfq, WHOLE, nonce=0, deadline=deadline)
    order = taking.order(taker_asset=world.dai, taker_amount=2_500 * ONE)
    order_hash = taking.venue.keep(order, world.signed(order), permit)
    nonce = await world.chain.nonce(world.taker.address)
    first = await taking.fill(order_hash, "--receive", "1000", "--permit")
    assert (first["outcome"], first["received"]) == ("filled", str(1_000 * USDC))
    assert await world.chain.nonce(world.taker.address) == nonce + 1, "a fill and no approval"
    assert (await taking.fill(order_hash))["received"] == str(1_500 * USDC)


async def test_a_token_that_the_venue_does_not_list_is_known_by_its_own_word_alone(taking: Taking) -> None:
    world, order = taking.world, taking.order()
    listed = taking.kept(order)
    done = await taking.shell.invoke("fill", listed, "--dry-run")
    assert "calls itself" not in done.stderr
    sham = await world.new_token(symbol="USDC", decimals=6)
    await world.give(world.maker, sham, 1, world.at.rfq)
    unlisted = taking.kept(taking.order(maker_asset=sham, maker_amount=1))
    done = await taking.shell.invoke("fill", unlisted, "--dry-run")
    name = f"USDC is what {to_checksum(sham)} calls itself: do you know that address?"
    assert name in " ".join(done.stderr.split()), done.stderr
    (file := taking.shell.folder / "o.json").write_text(json.dumps(taking.venue.kept[listed].body))
    alone = ("--no-venue", "--rfq", to_checksum(world.at.rfq), "--dry-run")
    done = await taking.shell.invoke("fill", str(file), *alone)
    assert " ".join(done.stderr.split()).count("calls itself") == 2


async def test_a_dry_run_sends_nothing(taking: Taking) -> None:
    order = taking.order()
    nonce = await taking.world.chain.nonce(taking.world.taker.address)
    told = await taking.shell.told("fill", taking.kept(order), "--dry-run")
    assert (told["outcome"], told["txHash"], told["received"]) == ("rehearsed", None, str(WHOLE))
    assert await taking.world.chain.nonce(taking.world.taker.address) == nonce
    assert await remaining(taking.world, order) == 0


# --- Refusals: nothing is sent, no approval either ----------------------------------------------------


async def test_a_stranger_is_refused_before_anything_is_sent(taking: Taking) -> None:
    world = taking.world
    order_hash = taking.kept(taking.order(taker=world.user.address))
    done = await taking.refused(order_hash)
    assert f"the order names {to_checksum(world.user.address)} as its taker" in done.stderr
    assert f"the key is of {to_checksum(world.taker.address)}" in done.stderr


async def test_an_order_whose_time_is_over_is_refused_by_the_chains_time(taking: Taking) -> None:
    world = taking.world
    order_hash = taking.kept(taking.order(expiry=await world.now_s() + HOUR_S))
    await world.pass_time(HOUR_S + 1)
    assert "the order expired at" in (await taking.refused(order_hash)).stderr


async def test_a_cancelled_order_is_refused(taking: Taking) -> None:
    world, order = taking.world, taking.order()
    order_hash = taking.kept(order)
    (file := taking.shell.folder / "order.json").write_text(json.dumps(taking.venue.kept[order_hash].body))
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))
    assert "the venue says that it was cancelled by 0x" in (await taking.refused(order_hash)).stderr
    done = await taking.refused(str(file))
    assert "the order has no unfilled amount: it was filled or cancelled" in done.stderr


@pytest.mark.parametrize(
    ("option", "amount", "said"),
    [
        ("--amount", "1.5", "--amount: too much: 1 WETH at most can be given, got 1.5 WETH"),
        ("--receive", "2500.000001", "--receive: too much: 2500 USDC at most can be had, got 2500.000001"),
        (
            "--amount",
            "0.000000000000000001",
            "--amount: too little: 0.000000000000000001 WETH",
        ),
    ],
)
async def test_more_than_is_left_is_refused(taking: Taking, option: str, amount: str, said: str) -> None:
    done = await taking.refused(taking.kept(taking.order()), option, amount)
    assert said in done.stderr


async def test_a_maker_or_a_taker_who_lacks_is_told(taking: Taking) -> None:
    world = taking.world
    large = taking.kept(taking.order(maker_amount=20_000 * USDC))
    said = "has 10000 USDC, and 20000 USDC would be taken: 10000 USDC at most can be had now"
    assert said in (await taking.refused(large)).stderr
    assert (await taking.fill(large, "--receive", "10000"))["received"] == str(10_000 * USDC)
    await world.mint(world.usdc, world.maker, 10_000 * USDC)
    dear = taking.kept(taking.order(taker_amount=11 * ONE))
    done = await taking.refused(dear)
    assert "has 9.5 WETH, and 11 WETH is needed" in done.stderr
    await world.approve(world.maker, world.usdc, world.at.rfq, 5)
    done = await taking.refused(taking.kept(taking.order()))
    assert "allows 0.000005 USDC, and 2500 USDC would be taken: 0.000005 USDC at most" in done.stderr


async def test_a_permit_that_the_token_refuses_is_told_before_the_approval(taking: Taking) -> None:
    world = taking.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    past = eip2612_permit(domain, world.maker, world.at.rfq, MOST, nonce=5, deadline=MOST)
    order = taking.order()
    done = await taking.refused(taking.venue.keep(order, world.signed(order), past))
    assert "reverted: Permit failed" in done.stderr


async def test_an_order_that_the_maker_did_not_sign_is_refused(taking: Taking) -> None:
    world, order = taking.world, taking.order()
    order_hash = taking.venue.keep(order, world.signed(order, world.stranger))
    done = await taking.refused(order_hash)
    assert f"the signature is not that of the maker {to_checksum(world.maker.address)}" in done.stderr


@pytest.mark.parametrize("lie", [{"takerAmount": "1"}, {"makerAsset": f"0x{'66' * 20}"}, {"chainId": 5}])
async def test_a_venue_that_answers_with_another_order_is_caught(taking: Taking, lie: dict[str, Any]) -> None:
    order_hash = taking.kept(taking.order())
    taking.venue.otc_lies = OtcLies(stored=lambda stored: stored | lie)
    done = await taking.refused(order_hash)
    assert ("is on chain 5, not on 31337" if "chainId" in lie else f"expected {order_hash}") in done.stderr


async def test_an_order_that_is_not_there_and_a_file_that_was_changed_are_refused(taking: Taking) -> None:
    done = await taking.refused(f"0x{'12' * 32}")
    assert "404 OrderNotFound: no order 0x1212" in done.stderr
    order_hash = taking.kept(taking.order())
    file = taking.shell.folder / "order.json"
    body = taking.venue.kept[order_hash].body | {"orderHash": order_hash}
    for changed, said in (
        ({"makerAmount": "2600000000"}, "it was changed, or is of another contract"),
        ({"chainId": 5}, "the order is on chain 5, not on 31337"),
        ({"takerAmount": "-1"}, "order.takerAmount: expected"),
        ({"maker": None}, "holds no signed order: Invalid input: maker: expected a string"),
    ):
        file.write_text(json.dumps(body | changed))
        done = await taking.shell.invoke("fill", str(file), "--yes")
        assert done.exit_code == (2 if "holds" in said else 1)
        assert said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((f"0x{'12' * 32}", "--amount", "1", "--receive", "1"), "--amount and --receive exclude each other"),
        (("0x1234",), "HASH|FILE: expected 0x and 64 hexadecimal digits"),
        (("nothing.json",), "HASH|FILE: nothing.json cannot be read"),
        ((f"0x{'12' * 32}", "--amount", "x"), "--amount: expected a decimal"),
        (("-",), "-: with --yes or --dry-run only: the command cannot prompt"),
        ((f"0x{'12' * 32}", "--no-venue"), "--venue or --rfq is needed"),
        (
            (f"0x{'12' * 32}", "--no-venue", "--rfq", f"0x{'12' * 20}"),
            "--venue: is needed to look an order up",
        ),
    ],
)
async def test_wrong_usage_names_the_argument(taking: Taking, arguments: tuple[str, ...], said: str) -> None:
    done = await taking.shell.invoke("fill", *arguments)
    assert done.exit_code == 2, done.stderr
    assert said in done.stderr


@pytest.mark.needs("pyrevm")  # an anvil orders the transactions of a block by their fees
async def test_an_order_that_is_cancelled_meanwhile_reverts_and_says_why(
    taking: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation waits to be mined when the fill is simulated, and is mined before it."""
    world, order = taking.world, taking.order()
    order_hash = taking.kept(order)
    await world.approve(world.taker, world.weth, world.at.rfq)
    cancelling = await world.signed_tx(
        world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(order))
    )
    chain, send = world.chain, world.chain.send_raw
    await chain.set_automine(on=False)
    await send(cancelling.raw)

    async def send_and_mine(raw: bytes) -> bytes:
        tx_hash = await send(raw)
        await chain.mine()
        return tx_hash

    monkeypatch.setattr(chain, "send_raw", send_and_mine)
    told = await taking.shell.told("fill", order_hash, "--yes", status=3)
    assert (told["outcome"], told["step"], told["received"]) == ("reverted", "fill", "0")
    assert told["reason"] == "the state before its block does not tell why"
    assert await taking.has(world.usdc) == 0
