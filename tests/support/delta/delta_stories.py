"""Delta orders as their owners and agents live them: over HTTP, with agents on sockets, on a world's chain.

async with a_delta_story(world, tmp_path, "ann", "bob") as story:
    story.agents["ann"].gives = lambda order: 2_500 * USDC
    record, moved = await story.completed(await story.world.a_delta_order())
    assert moved["user", "USDC"] == 2_500 * USDC

The venue is the one that operators run; rounds last ROUND_S, or until all agents have answered. The user has
10 WETH, the taker 10,000 USDC, allowed to the Delta contract; agents deliver from one contract's stock.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import trio

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import DevChain, Receipt
from cambist.engine.store.queries import open_transactions
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import row_of
from cambist.engine.trader.client.order.order_following import SettledOnChain, Subject, proven
from cambist.engine.trader.client.order.order_safety import signed_order
from cambist.engine.trader.client.trusted_contract import SigningContract
from support.chain.world import NATIVE, ONE, Moved, World, moved
from support.contracts.delta_agents import StoryAgent, serving
from support.contracts.settling import Market, a_market
from support.patience import PATIENCE_S, ROUND_S, until, until_found
from support.venue.venue_fronts import StoryClock
from support.venue.venue_role import CHAIN_ID, ENVIRON, RunningVenue, asking, devnet_of, venue_on, venue_text

Record = dict[str, Any]

CONFIRMATIONS = 3
ENDED = frozenset({"COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"})
_STOCK_WETH = 100 * ONE
_MORE = """
[keys.relayer]
source = "env:RELAYER_KEY"
[relayers.{chain_id}]
key = "relayer"
{relayer}
[venue.delta]
{delta}
"""


class DeltaStory:
    """A venue, its agents, and who trades there.

    Attributes:
        web: the venue, as it is asked over HTTP.
        agents: by name.
        folder: of its state.
    """

    def __init__(
        self,
        market: Market,
        web: RunningVenue,
        clock: StoryClock,
        agents: dict[str, StoryAgent],
        folder: Path,
    ) -> None:
        self.market = market
        self.world = market.world
        self.web = web
        self.clock = clock
        self.agents = agents
        self.folder = folder
        world = market.world
        self.tokens = {"ETH": NATIVE, "WETH": world.weth, "USDC": world.usdc, "DAI": world.dai}
        self.people: dict[str, bytes] = {
            "user": world.user.address,
            "taker": world.taker.address,
            "partner": world.partner.address,
            "stranger": world.stranger.address,
            "agent": market.agent,
            "vault": world.at.fee_vault,
            "delta": world.at.delta,
            "executor": world.at.executor,
        }

    # --- Orders -----------------------------------------------------------------------------------------

    async def submit(self, order: Any, key: SigningKey | None = None, **changed: Any) -> tuple[int, Any]:
        """POST /v2/delta/orders: status and JSON of any answer."""
        return await self.web.post("/v2/delta/orders", self.world.delta_body(order, key, **changed))

    async def submitted(self, order: Any, key: SigningKey | None = None, **changed: Any) -> Record:
        """The record of an order that was taken."""
        status, told = await self.submit(order, key, **changed)
        assert status == 200, told
        return cast("Record", told)

    async def record(self, order_id: str) -> Record:
        """The order's present record."""
        return cast("Record", await self.web.get(f"/v2/delta/orders/{order_id}"))

    async def becomes(self, record: Record, *statuses: str, seconds: float = PATIENCE_S) -> Record:
        """The record once it has one of these statuses; it must not end in another."""
        ends = {*statuses, *ENDED}
        ask = partial(self.record, record["id"])
        now = await until_found(ask, lambda now: now["status"] in ends, seconds)
        assert now["status"] in statuses, (now, await self.explain(record))
        return now

    async def with_fills(self, record: Record, count: int) -> Record:
        """The record once it has so many fills."""
        ask = partial(self.record, record["id"])
        return await until_found(ask, lambda now: len(now["transactions"]) >= count)

    async def explain(self, record: Record) -> Any:
        """GET /v2/delta/orders/{id}/explain."""
        return await self.web.get(f"/v2/delta/orders/{record['id']}/explain")

    async def reasons(self, record: Record) -> dict[str, str]:
        """Code -> text of the reasons in `explain`."""
        return {reason["code"]: reason["text"] for reason in (await self.explain(record))["reasons"]}

    async def says(self, record: Record, code: str, beginning: str = "") -> str:
        """The text of a reason, once `explain` gives it and it begins so."""

        def is_told(told: dict[str, str]) -> bool:
            return code in told and told[code].startswith(beginning)

        return (await until_found(partial(self.reasons, record), is_told))[code]

    async def cancel(
        self, *records: Record, key: SigningKey | None = None, ids: list[str] | None = None
    ) -> tuple[int, Any]:
        """Sign and send a cancellation: status and JSON of any answer."""
        ids = [record["id"] for record in records] if ids is None else ids
        return await self.web.post("/v2/delta/orders/cancel", self.world.cancel_body(ids, key))

    # --- Balances ---------------------------------------------------------------------------------------

    async def balances(self) -> Moved:
        """Balances of all accounts in all tokens: (account, token) -> raw units."""
        return await self.world.held(self.people, self.tokens)

    async def moved_since(self, before: Moved) -> Moved:
        """Changes of balances since `before`, without zeros."""
        return moved(before, await self.balances())

    async def completed(
        self, order: Any, key: SigningKey | None = None, **changed: Any
    ) -> tuple[Record, Moved]:
        """Submit an order and follow it to its end: (its record, what has moved)."""
        before = await self.balances()
        record = await self.becomes(await self.submitted(order, key, **changed), "COMPLETED")
        return record, await self.moved_since(before)

    async def under_way(self, record: Record) -> None:
        """Wait until a settlement of an order waits for a block; blocks are made by hand from now on."""
        relayer = self.world.relayer.address
        nonce = await self.world.chain.nonce(relayer)
        waiting = self.web.app.delta.chains[CHAIN_ID]

        def is_handed_in() -> bool:
            return (
                waiting.relayer.statistics().pending > 0 and waiting.relayer.statistics().counts["handed"] > 0
            )

        await until(is_handed_in)
        assert await self.world.chain.nonce(relayer) == nonce
        live = self.web.app.delta.orders.get(self.hash_of(record))
        assert live is not None
        assert live.settling is not None

    async def waiting_transactions(self) -> list[bytes]:
        """Hashes of the relayer's signed transactions that are not mined."""
        sender = self.world.relayer.address
        (rows,) = await self.web.app.delta.store.read(open_transactions(CHAIN_ID, sender))
        return [row_of(CHAIN_TX, values).tx_hash for values in rows]

    async def hold(self) -> None:
        """No block is made until `mine`."""
        await self.world.chain.set_automine(on=False)

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks, and go on making one for each transaction."""
        await self.world.chain.set_automine(on=True)
        await self.world.chain.mine(blocks)

    async def first_in_block(self, key: SigningKey, to: bytes, data: bytes) -> None:
        """Hand in a transaction that is mined before all that waits."""
        await self.world.first_in_block(key, to, data)

    async def last_in_block(self, key: SigningKey, to: bytes, data: bytes) -> None:
        """Hand in what is mined behind all that waits, after `first_in_block` of the same account."""
        signed = await self.world.signed_tx(key, to, data, gas=1_000_000, tip_wei=1, waiting=1)
        await self.world.chain.send_raw(signed.raw)

    async def disallow(self, key: SigningKey, token: str) -> None:
        """Revoke an owner's allowance of a token to Delta, first in the next block."""
        data = calldata.approve(self.world.at.delta, 0)
        await self.first_in_block(key, self.tokens[token], data)

    async def give_up(self, key: SigningKey, *nonces: int) -> None:
        """Invalidate nonces on chain."""
        await self.world.send(key, self.world.at.delta, delta_calldata.invalidate_nonces(nonces))

    async def pass_time(self, seconds: int) -> None:
        """Let time pass for the venue, and then for the chain."""
        self.clock.passes(seconds)
        self.web.app.delta.scheduler.at(0, "time has passed", lambda: None)
        await self.world.pass_time(seconds)

    async def gives_up_first(self, key: SigningKey, *nonces: int) -> None:
        """Invalidate nonces with the next block, before anything else in it."""
        data = delta_calldata.invalidate_nonces(nonces)
        await self.first_in_block(key, self.world.at.delta, data)

    async def undone(self, record: Record) -> Record:
        """The record once the chain has taken its settlement back."""
        ask = partial(self.record, record["id"])
        now = await until_found(ask, lambda now: now["status"] != "COMPLETED")
        assert now["status"] == "ACTIVE", now
        return now

    async def is_final(self, record: Record) -> None:
        """Mine CONFIRMATIONS blocks once the venue's memory has an order's end: after these it is final."""
        orders, order_hash = self.web.app.delta.orders, self.hash_of(record)
        await until(lambda: (live := orders.get(order_hash)) is None or live.row.status in ENDED)
        await self.confirm()
        await until(lambda: orders.get(order_hash) is None)

    async def becomes_final(self, record: Record) -> None:
        """Mine blocks until an order is final, some blocks after the block at which the venue saw its end."""
        orders = self.web.app.delta.orders
        with trio.fail_after(PATIENCE_S):
            while orders.get(self.hash_of(record)) is not None:
                await self.world.chain.mine()
                await trio.sleep(0.01)  # as a chain makes its blocks

    async def confirm(self) -> None:
        """Mine CONFIRMATIONS blocks, so that earlier transactions become final."""
        for _ in range(CONFIRMATIONS):
            await self.world.chain.mine()

    async def last_auction(self, record: Record) -> Any:
        """The round that an order was in last."""
        rounds = (await self.explain(record))["lastRounds"]
        return await self.web.get(f"/v2/delta/auctions/{rounds[0]['auctionId']}")

    async def heard_of(self, agent: str, record: Record) -> None:
        """Wait until an agent was asked about an order."""
        story_agent = self.agents[agent]

        def is_asked() -> bool:
            asked = (order.order_hash for request in story_agent.requests for order in request.orders)
            return record["orderHash"] in asked

        await until(is_asked)

    async def receipt(self, record: Record, at: int = 0) -> Receipt:
        """Receipt of a settlement of an order."""
        found = await self.world.chain.receipt(bytes.fromhex(record["transactions"][at]["originTx"][2:]))
        assert found is not None
        return found

    async def proof(self, record: Record) -> SettledOnChain:
        """An order's end as `cambist order watch` finds it on the chain."""
        world = self.world
        contract = SigningContract(CHAIN_ID, world.at.delta, world.delta_separator)
        told = msgspec.json.decode(msgspec.json.encode(record), type=OrderRecord)
        return await proven(world.chain, Subject(world.at.delta, signed_order(told, contract)), told)

    def hash_of(self, record: Record) -> bytes:
        """Hash of an order, 32 bytes."""
        return bytes.fromhex(record["orderHash"][2:])

    async def heard(self, agent: str, record: Record, *notices: str) -> None:
        """Wait until an agent has received these notices of an order in sequence, with any others between."""

        def is_told() -> bool:
            told = iter([notice.value for notice in self.agents[agent].hears_of(self.hash_of(record))])
            return all(notice in told for notice in notices)

        await until(is_told)


@asynccontextmanager
async def a_delta_story(
    world: World,
    folder: Path,
    *names: str,
    delta: str = "",
    relayer: str = "",
    chain: str = "",
    more: str = "",
    market: Market | None = None,
) -> AsyncGenerator[DeltaStory]:
    """A story whose venue serves.

    Args:
        folder: for its state; a second story in the same folder is a restart.
        names: of the agents.
        delta: TOML of `[venue.delta]`; relayer: of the relayer; chain: of the chain; more: of the venue.
        market: of an earlier story on the same world.
    """
    market = market or await stocked(world)
    agents = {name: StoryAgent(name, market) for name in names}
    async with running_delta(
        market, folder, agents, delta=delta, relayer=relayer, chain=chain, more=more
    ) as story:
        yield story


async def stocked(world: World) -> Market:
    """A market whose agents have WETH, too."""
    market = await a_market(world)
    await world.chain.set_balance(world.owner.address, 1_000 * ONE)
    await world.give(world.owner, world.weth, _STOCK_WETH, world.at.rfq)
    await world.send(world.owner, world.weth, calldata.transfer(market.agent, _STOCK_WETH))
    return market


@asynccontextmanager
async def running_delta(
    market: Market,
    folder: Path,
    agents: dict[str, StoryAgent],
    *,
    delta: str = "",
    relayer: str = "",
    chain: str = "",
    more: str = "",
    environ: Mapping[str, str] | None = None,
    chains: Mapping[int, DevChain] | None = None,
) -> AsyncGenerator[DeltaStory]:
    """A venue with these agents, on the market's chain, or on `chains` as it sees them."""
    world = market.world
    clock = StoryClock(await world.now_s())
    devnet = devnet_of(world, folder)
    environ = ENVIRON | dict(environ or {}) | {"RELAYER_KEY": world.relayer.secret32().hex()}
    chain = f"confirmations = {CONFIRMATIONS}\n{chain}"
    text = venue_text(devnet, {}, has_relayer=False, chain=chain)
    usual = {"round_s": ROUND_S, "gather_s": 0.02, "again_s": 0.1, "again_s_max": 0.3}
    own = "\n".join(f"{name} = {value}" for name, value in usual.items() if name not in delta)
    text += _MORE.format(chain_id=CHAIN_ID, delta=f"{own}\n{delta}", relayer=relayer) + more
    async with AsyncExitStack() as owned:
        for name, agent in agents.items():
            port = await owned.enter_async_context(serving(agent))
            environ[f"{name.upper()}_SECRET"] = agent.secret
            text += asking(name, f"http://127.0.0.1:{port}/agent")
        web = await owned.enter_async_context(venue_on(devnet, folder, text, environ, clock, chains))
        await until(lambda: web.app.chains[CHAIN_ID].gas.is_fresh)
        yield DeltaStory(market, web, clock, agents, folder)
