"""Funds, fills and contract takers as a node and the service tell them, over real sockets."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.http1 import encode_response
from cambist.config.errors import ChainError
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.maker.app import MakerApp
from cambist.engine.roles.maker.quoting.funds import FundsSettings, MakerFunds
from support.makers.maker_role import (
    CHAIN_ID,
    TAKER,
    USDC,
    USER,
    WETH,
    Venue,
    a_chain,
    firm_request,
    running_maker,
    settings_of,
)
from support.makers.scripted_node import ScriptedNode, node_at, node_that_says, scripted_node
from support.patience import PATIENCE, PATIENCE_S, until

ONE = 10**18
FUNDS = FundsSettings(
    maker=bytes.fromhex(USER[2:]),
    contract=bytes(20),
    caps={},
    processes=1,
    promise_s=165,
    every_s=1,
    stale_s=30,
    head_max_s=120,
)


def funded(node: ScriptedNode, **usdc: int) -> None:
    node.balances = {WETH: 100 * ONE, USDC: usdc.get("balance", 10**12)}
    node.allowances = {WETH: 100 * ONE, USDC: usdc.get("allowance", 10**12)}


def holdings(maker: MakerApp) -> dict[str, Any]:
    return {f"0x{holding.token.hex()}": holding for holding in maker.chains[CHAIN_ID].holdings}


async def reached(condition: Callable[[], object]) -> None:
    """Wait like that of `until`, while the test's clock stands still."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends
        await trio.lowlevel.checkpoint()


async def lists_read(node: ScriptedNode, count: int) -> None:
    """Return once the list of takers was asked for so many times more."""
    wanted = node.lists_asked + count
    await until(lambda: node.lists_asked >= wanted)


async def quote(venue: Venue, **request: Any) -> tuple[int, Any]:
    response = await venue.ask("POST", "/firm", firm_request(**request))
    return response.status, msgspec.json.decode(response.body)


async def test_funds_are_the_lesser_of_balance_and_allowance_and_the_cap(tmp_path: Path) -> None:
    async with scripted_node() as node:
        funded(node, balance=6_000_000_000, allowance=5_000_000_001)
        async with running_maker(tmp_path, settings_of(node_url=node.url, node_every_ms=10)) as (
            maker,
            venue,
        ):
            await until(lambda: not maker.chains[CHAIN_ID].desk.withheld)
            held = holdings(maker)
            assert held[USDC].funds == 5_000_000_001
            assert held[WETH].funds == 100 * ONE
            assert (await quote(venue))[0] == 200
            assert (await quote(venue))[0] == 200
            status, body = await quote(venue)
            assert (status, body["error"].startswith("Not enough funds")) == (400, True)
            node.balances[USDC] = node.allowances[USDC] = 10**15
            await until(lambda: held[USDC].funds == 250_000 * 10**6)  # the settings bound what the node tells
            assert (await quote(venue))[0] == 200
        assert node.tags == {hex(100)}


async def test_a_fill_releases_its_reservation_and_its_users_count(tmp_path: Path) -> None:
    async with scripted_node() as node:
        funded(node)
        settings = settings_of(node_url=node.url, node_every_ms=10, unused_quotes_max=1)
        async with running_maker(tmp_path, settings) as (maker, venue):
            await until(lambda: not maker.chains[CHAIN_ID].desk.withheld)
            assert (await quote(venue))[1]["order"]
            held = holdings(maker)[USDC]
            assert held.reserved == 2_500_000_000
            order_hash = maker.chains[CHAIN_ID].desk.ledger.promises()[0].order_hash
            node.remaining[order_hash] = 1_000_000_001
            node.balances[USDC] -= 1_500_000_000
            node.block += 1
            await until(lambda: held.reserved == 1_000_000_000)
            assert (await quote(venue))[1]["order"]
            node.remaining[order_hash] = 1
            await until(lambda: held.reserved == 2_500_000_000)


async def test_a_block_that_has_been_read_is_not_read_again(tmp_path: Path) -> None:
    """A round is then one question; the next block, and another one of the same height, are read."""
    async with scripted_node() as node:
        funded(node)
        settings = settings_of(node_url=node.url, node_every_ms=10)
        async with running_maker(tmp_path, settings) as (maker, venue):
            await until(lambda: not maker.chains[CHAIN_ID].desk.withheld)
            assert (await quote(venue))[1]["order"]
            node.asked.clear()
            await until(lambda: len(node.asked) > 5)
            assert {*node.asked} == {"eth_getBlockByNumber"}
            node.block += 1
            await until(lambda: "eth_call" in node.asked)
            node.balances[USDC] = 7
            await until(lambda: holdings(maker)[USDC].funds == 7)


async def test_a_node_that_does_not_answer_stops_firm_quotes_until_it_does(tmp_path: Path) -> None:
    async with scripted_node() as node:
        node.away = True
        settings = settings_of(node_url=node.url, node_every_ms=10, node_stale_s=PATIENCE)
        async with running_maker(tmp_path, settings) as (maker, venue):
            assert (await quote(venue))[0] == 503
            assert any("node" in reason for reason in maker.not_ready())
            funded(node)
            node.away = False
            await until(lambda: not maker.chains[CHAIN_ID].desk.withheld)
            assert (await quote(venue))[0] == 200
            node.reverting = True
            await until(lambda: bool(maker.chains[CHAIN_ID].desk.withheld))
            assert (await quote(venue))[0] == 503


async def test_the_services_list_of_takers_is_followed(tmp_path: Path) -> None:
    other = "0x" + "cd" * 20
    async with scripted_node() as node:
        node.takers = [other]
        settings = settings_of(takers_url=f"{node.url}/adapters/contract-takers", takers_every_s=0.02)
        async with running_maker(tmp_path, settings) as (maker, venue):
            desk = maker.chains[CHAIN_ID].desk
            await until(lambda: other in desk.takers)
            assert (await quote(venue, takerAddress=other))[0] == 200
            assert (await quote(venue, takerAddress=TAKER))[0] == 200  # of the settings
            node.away = True
            await lists_read(node, 2)
            assert (await quote(venue, takerAddress=other))[0] == 200  # the last list holds
            node.away = False
            node.takers = []
            await until(lambda: other not in desk.takers)
            assert (await quote(venue, takerAddress=other))[0] == 400
            node.takers = ["nonsense"]
            await lists_read(node, 2)
            assert (await quote(venue, takerAddress=TAKER))[0] == 200


async def test_urls_may_be_references_and_are_never_shown(tmp_path: Path) -> None:
    async with scripted_node() as node:
        funded(node)
        (tmp_path / "node-url").write_text(f"{node.url}/?key=hidden")
        async with running_maker(tmp_path, settings_of(node_url="file:node-url", node_every_ms=10)) as (
            maker,
            _,
        ):
            await until(lambda: not maker.chains[CHAIN_ID].desk.withheld)
            assert "hidden" not in repr(maker.chains[CHAIN_ID].settings)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"no json", "malformed"),
        (b"{}", "not a JSON-RPC answer"),
        (b"[]", "unanswered"),
        (b'{"id":1,"error":{"code":-32000,"message":"busy"}}', "busy"),
        (b'{"id":1,"result":5}', "not a block"),
        (b'{"id":1,"result":{"number":"zz","timestamp":"0x1"}}', "not a block"),
    ],
)
async def test_whatever_a_node_answers_is_a_chain_error(body: bytes, words: str) -> None:
    async with node_that_says(encode_response(200, body), "maker.chains.1.node_url") as node:
        with pytest.raises(ChainError) as caught:
            await node.head()
    assert words in caught.value.detail or words == "malformed"
    assert "secret" not in caught.value.detail + repr(node)
    assert caught.value.detail.startswith("maker.chains.1.node_url")


async def test_a_round_that_fails_changes_nothing() -> None:
    role = a_chain(node_url="http://127.0.0.1:1")
    async with scripted_node() as told, node_at(told.url, "node") as node:
        told.returned = b"\x12"
        with pytest.raises(ChainError, match="expected one word"):
            await MakerFunds(node, role.desk, role.holdings, FUNDS, WallClock().now_ms).read()
    assert [holding.funds for holding in role.holdings] == [0, 0, 0]


async def test_a_node_that_lags_is_not_believed_until_it_has_done_so_for_long(mock_clock: MockClock) -> None:
    """A round from an older block would show funds of before a fill, and the fill's promise is gone."""
    role = a_chain(node_url="http://127.0.0.1:1")
    held = next(holding for holding in role.holdings if holding.token.hex() == USDC[2:])
    settings = msgspec.structs.replace(FUNDS, every_s=1, stale_s=1)
    async with scripted_node() as node, node_at(node.url, "node") as asked, trio.open_nursery() as nursery:
        funded(node)
        funds = MakerFunds(asked, role.desk, role.holdings, settings, WallClock().now_ms)
        nursery.start_soon(funds.follow)
        await reached(lambda: not role.desk.withheld)
        node.block, node.balances[USDC] = 99, 1
        mock_clock.jump(1)
        await reached(lambda: role.desk.withheld)
        assert held.funds == 10**12
        mock_clock.jump(1)
        await reached(lambda: not role.desk.withheld)
        assert held.funds == 1  # the funds stay: the chain was rolled back
        node.balances[USDC] = 10**12
        mock_clock.jump(1)
        await reached(lambda: held.funds == 10**12)
        nursery.cancel_scope.cancel()


async def test_a_node_that_stands_still_is_not_believed(tmp_path: Path) -> None:
    async with scripted_node() as node:
        funded(node)
        settings = settings_of(node_url=node.url, node_every_ms=10, node_stale_s=PATIENCE)
        async with running_maker(tmp_path, settings) as (maker, venue):
            desk = maker.chains[CHAIN_ID].desk
            await until(lambda: not desk.withheld)
            node.behind_s = 121
            await until(lambda: bool(desk.withheld))
            assert (await quote(venue))[0] == 503
            node.behind_s = 0
            await until(lambda: not desk.withheld)


async def test_while_funds_are_unknown_nothing_is_shown(tmp_path: Path) -> None:
    async with scripted_node() as node:
        node.away = True
        settings = settings_of(node_url=node.url, node_every_ms=10)
        async with running_maker(tmp_path, settings) as (maker, venue):
            assert (await venue.get("/prices"))["prices"] == {"WETH/USDC": {}}
            funded(node)
            node.away = False
            await until(lambda: maker.chains[CHAIN_ID].board.pairs["WETH/USDC"].fragment != b"{}")
            assert (await venue.get("/prices"))["prices"] != {"WETH/USDC": {}}


async def test_the_zero_address_is_no_taker(tmp_path: Path) -> None:
    nobody, other = "0x" + "00" * 20, "0x" + "cd" * 20
    async with scripted_node() as node:
        node.takers = [other]
        settings = settings_of(takers_url=f"{node.url}/adapters/contract-takers", takers_every_s=0.02)
        async with running_maker(tmp_path, settings) as (maker, venue):
            desk = maker.chains[CHAIN_ID].desk
            await until(lambda: other in desk.takers)
            node.takers = [nobody]
            await lists_read(node, 2)
            assert nobody not in desk.takers
            assert other in desk.takers  # a list with it is refused, so the last one holds
            assert (await quote(venue, takerAddress=nobody))[0] == 400
