"""POST /operator/otc/purge and `cambist otc purge`: an operator ends what the book should not hold."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from support.chain.evm_programs import assembled, deploys
from support.client.commands import invoked
from support.contracts.rfq_stories import a_wallet
from support.otc.otc_front import OPERATOR_KEY, OtcFront, an_otc_front
from support.patience import STORY_S

PURGE = "/operator/otc/purge"
OPERATOR = {"X-API-KEY": OPERATOR_KEY}
RICH = "128 2 EXP 0x40 MSTORE 32 0x40 RETURN"


async def a_book(front: OtcFront) -> dict[str, dict[str, Any]]:
    """A pending order, one without funds, a draft, and one of a token that its maker has written."""
    world = front.world
    receipt = await world.send(world.owner, b"", deploys(assembled(RICH)))
    assert receipt.contract is not None
    wallet, key = await a_wallet(world, world.user), SigningKey(b"7" * 32)
    fake = front.an_order(maker=key.address, maker_asset=receipt.contract)
    return {
        "pending": await front.posted(front.an_order()),
        "short": await front.posted(front.an_order(maker_amount=10**24)),
        "draft": await front.posted(front.an_order(maker=wallet), signature=b"\x01" * 100),
        "fake": await front.posted(fake, key),
    }


async def states(front: OtcFront, book: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: (await front.order(stored))["state"] for name, stored in book.items()}


async def purged(front: OtcFront, **body: Any) -> tuple[int, Any]:
    return await front.post(PURGE, body, OPERATOR)


async def command(front: OtcFront, *arguments: str) -> Result:
    """`cambist otc purge`, in a thread."""
    place = ["--venue", f"http://127.0.0.1:{front.port}", "--api-key", "env:KEY"]
    return await invoked(["otc", "purge", *arguments, *place], {"KEY": OPERATOR_KEY}, within_s=STORY_S)


@pytest.mark.parametrize("runs", [True, False], ids=["followed", "not followed"])
async def test_orders_are_ended_by_what_they_have_in_common(tmp_path: Path, runs: bool) -> None:
    async with an_otc_front(tmp_path, runs=runs) as front:
        book = await a_book(front)
        before = await states(front, book)
        assert before == {"pending": "PENDING", "short": "SUSPENDED", "draft": "DRAFT", "fake": "PENDING"}
        done = await command(front, "--unlisted", "--dry-run")
        assert (done.exit_code, done.stdout) == (0, "1 order would be ended\n")
        assert await states(front, book) == before
        done = await command(front, "--unlisted", "--json")
        assert (done.exit_code, msgspec.json.decode(done.stdout)) == (0, {"orders": 1})
        assert await states(front, book) == before | {"fake": "EXPIRED"}
        assert await purged(front, state="DRAFT", chainId=1) == (200, {"orders": 0, "after": ""})
        assert await purged(front, state="DRAFT") == (200, {"orders": 1, "after": ""})
        maker = to_checksum(front.world.maker.address)
        assert await purged(front, maker=maker, state="SUSPENDED") == (200, {"orders": 1, "after": ""})
        assert await states(front, book) == dict.fromkeys(book, "EXPIRED") | {"pending": "PENDING"}
        live = front.engine.orders
        assert [to_hex(left.order_hash) for left in live] == [book["pending"]["orderHash"]]
        assert await purged(front, token=to_checksum(front.world.usdc)) == (200, {"orders": 1, "after": ""})
        assert not len(live)


async def test_orders_that_another_process_runs_are_ended_in_the_store(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        book = await a_book(front)
        front.engine.orders.leave(())  # as if another process had taken all shards
        assert not len(front.engine.orders)
        assert await purged(front, unlisted=True) == (200, {"orders": 1, "after": ""})
        assert await purged(front, state="DRAFT") == (200, {"orders": 1, "after": ""})
        found = await states(front, book)
        assert found == {"pending": "PENDING", "short": "SUSPENDED", "draft": "EXPIRED", "fake": "EXPIRED"}


async def test_a_book_of_several_pages_is_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trade.otc.purge.OTC_LIVE_PURGE_ROWS_MAX", 2)
    monkeypatch.setattr("cambist.engine.trade.otc.purge.OTC_LIVE_PURGE_STEP_ROWS", 1)
    async with an_otc_front(tmp_path, runs=False) as front:
        stored = [await front.posted(front.an_order()) for _ in range(5)]
        assert await purged(front, state="PENDING", dryRun=True) == (
            200,
            {"orders": 2, "after": stored[1]["orderHash"]},
        )
        done = await command(front, "--maker", to_checksum(front.world.maker.address))
        assert (done.exit_code, done.stdout) == (0, "5 orders ended\n")
        assert {(await front.order(one))["state"] for one in stored} == {"EXPIRED"}


async def test_what_is_asked_is_checked_before_any_order_ends(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        book = await a_book(front)
        for body, said in (
            ({}, "maker: expected a maker, a token, a state or unlisted, got 'none of them'"),
            ({"chainId": 31_337}, "maker: expected a maker, a token, a state or unlisted"),
            ({"state": "EXPIRED"}, "state: expected DRAFT, PENDING, SUSPENDED, got 'EXPIRED'"),
            ({"maker": "0x12"}, "maker: expected"),
            ({"unlisted": True, "after": "0x12"}, "after: expected 0x and 64 hexadecimal digits, got '0x12'"),
            ({"unlistd": True}, "unlistd"),
        ):
            status, told = await purged(front, **body)
            assert (status, told["errorType"]) == (400, "InvalidInput")
            assert said in told["details"], told
        for headers in ({}, {"X-API-KEY": "another"}):
            status, told = await front.post(PURGE, {"unlisted": True}, headers)
            assert status in (401, 403), told
        done = await command(front)
        assert done.exit_code == 2
        assert "expected --maker, --token, --state or --unlisted" in done.stderr
        assert "EXPIRED" not in (await states(front, book)).values()
