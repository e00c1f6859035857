"""Two worlds on two chains, and the dev bridges between them: relayer, attester and their service.

async def test_something(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(deposit))

The time is the test's: trio's clock since START_S, under a MockClock that jumps. A test on anvils, or with
real sockets, has the wall clock's time:

    chains = {CHAIN_ID: anvil_chain, OTHER_CHAIN_ID: other_anvil_chain}
    async with (await bridged(chains)).served_on_a_port() as two:

`AwayChain` is a chain whose node can be away, as its callers see it.
"""

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import trio

from cambist.codecs.bridges import across, cctp
from cambist.codecs.bridges.across import decode_across_log
from cambist.codecs.bridges.cctp import decode_cctp_log
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, decode_address, selector
from cambist.codecs.contracts.owner_calldata import ACCEPT_OWNER, propose_owner
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.transactions import SignedTransaction
from cambist.config.errors import NodeUnavailable
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import At, DevChain, EthCall, Header, LogFilter, Receipt
from cambist.engine.chain.transact import DEV_GAS, signed, transact
from cambist.engine.dev.bridge.attester import AttestEnd, DevAttester
from cambist.engine.dev.bridge.bridge_service import BridgeService
from cambist.engine.dev.bridge.lanes import LaneEnd, RelayedToken
from cambist.engine.dev.bridge.relayer import DevRelayer, RelayEnd
from cambist.engine.dev.devnet.bridge_places import BridgePlaces, fund_relayer, link_bridge
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.server.listener import Listener
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.chain.anvil import CHAIN_ID, OTHER_CHAIN_ID
from support.chain.world import ATTESTER, NATIVE, ONE, World, a_world, person
from support.delta.waiting_venue import SimulatedClock
from support.patience import PATIENCE_S
from support.server.server_harness import MemoryListener

T = TypeVar("T")
START_S = 1_800_000_000
DOMAINS = {CHAIN_ID: 7, OTHER_CHAIN_ID: 9}
"""Chain id -> domain of CCTP."""
OWNER, RELAYER, RECIPIENT = (person(number) for number in (80, 81, 82))
"""OWNER has the pools; the worlds' owner has everything else, and gets the fees of CCTP."""
STOCK = 100_000
"""Whole tokens of each kind that the relayer and the user have on each chain."""
DECIMALS = {"USDC": (6, 6), "DAI": (18, 18), "WETH": (18, 18), "USDT": (6, 18)}
"""Token -> decimals on the first chain and on the second."""
_GAS_MICRO = {"USDC": 20_000, "DAI": 20_000, "WETH": 10, "USDT": 20_000}
_TRANSMITTER = selector("localMessageTransmitter()")


class TwoChains:
    """See the module.

    Attributes:
        first, second: ids of the chains.
        worlds, chains, places: chain id -> what is there.
        tokens: symbol -> chain id -> address.
        client: reaches the service of relayer and attester.
        dial: opens a stream to the service that `served` runs.
        url: of the service that `served_on_a_port` runs.
    """

    def __init__(
        self, worlds: Mapping[int, World], usdt: Mapping[int, bytes], transmitters: Mapping[int, bytes]
    ) -> None:
        self.first, self.second = worlds
        self.worlds = worlds
        self.chains: dict[int, DevChain] = {one: world.chain for one, world in worlds.items()}
        self.places = {
            one: BridgePlaces(DOMAINS[one], world.spoke_pool, transmitters[one], world.token_messenger)
            for one, world in worlds.items()
        }
        self.tokens = {
            "USDC": {one: world.usdc for one, world in worlds.items()},
            "DAI": {one: world.dai for one, world in worlds.items()},
            "WETH": {one: world.weth for one, world in worlds.items()},
            "USDT": usdt,
        }
        bridged = tuple(
            RelayedToken(
                symbol,
                {one: LaneEnd(at[one], self.decimals(symbol, one)) for one in worlds},
                _GAS_MICRO[symbol],
            )
            for symbol, at in self.tokens.items()
        )
        relay_ends = {one: RelayEnd(world.chain, world.spoke_pool) for one, world in worlds.items()}
        attest_ends = {
            place.domain: AttestEnd(self.chains[one], place.transmitter) for one, place in self.places.items()
        }
        self.relayer = DevRelayer(relay_ends, bridged, RELAYER, OWNER)
        self.attester = DevAttester(attest_ends, ATTESTER)
        self.service = BridgeService(self.relayer, self.attester)
        self.user, self.stranger = worlds[self.first].user, worlds[self.first].stranger
        self._life = trio.CancelScope()
        self._nursery: trio.Nursery
        self.client: HttpClient
        self.dial: Callable[..., Awaitable[trio.abc.Stream]]
        self.url = ""

    def decimals(self, symbol: str, chain_id: int) -> int:
        """Decimals of a token on a chain."""
        return DECIMALS[symbol][list(self.worlds).index(chain_id)]

    # --- Chains -----------------------------------------------------------------------------------------

    async def send(self, chain_id: int, key: SigningKey, to: bytes, data: bytes, wei: int = 0) -> Receipt:
        """Mine a transaction."""
        return await transact(self.chains[chain_id], key, to, data, value_wei=wei, gas=DEV_GAS)

    async def balance(self, chain_id: int, symbol: str, who: SigningKey | bytes) -> int:
        """Raw units; ETH for native tokens."""
        address = who.address if isinstance(who, SigningKey) else who
        token = NATIVE if symbol == "ETH" else self.tokens[symbol][chain_id]
        return await self.worlds[chain_id].balance(token, address)

    async def now_s(self, chain_id: int) -> int:
        """The time of the next block."""
        return (await self.chains[chain_id].upcoming()).time_s

    def other(self, chain_id: int) -> int:
        """The other chain."""
        return self.second if chain_id == self.first else self.first

    # --- Across -----------------------------------------------------------------------------------------

    async def deposit(
        self, origin: int, amount: int, symbol: str = "USDC", output: int | None = None, **changes: Any
    ) -> across.FundsDeposited:
        """The user's deposit at the pool, for RECIPIENT, at the suggested fee; `changes` are of its call."""
        destination = self.other(origin)
        tokens = self.tokens[symbol]
        lane = self.relayer.lane((origin, tokens[origin]), (destination, tokens[destination]))
        assert lane is not None
        pool = self.places[origin].spoke_pool
        now_s = await self.now_s(origin)
        await self.send(origin, self.user, tokens[origin], calldata.approve(pool, amount))
        members: dict[str, Any] = {
            "depositor": self.user.address,
            "recipient": RECIPIENT.address,
            "input_token": tokens[origin],
            "output_token": tokens[destination],
            "input_amount": amount,
            "output_amount": lane.arriving(amount - lane.fee(amount, self.relayer.terms).total)
            if output is None
            else output,
            "destination_chain_id": destination,
            "quote_timestamp": now_s,
            "fill_deadline": now_s + 3_600,
        }
        receipt = await self.send(origin, self.user, pool, across.deposit_v3(**(members | changes)))
        event = decode_across_log(receipt.logs[-1].topics, receipt.logs[-1].data)
        assert isinstance(event, across.FundsDeposited)
        return event

    async def fills(self, deposit: across.FundsDeposited) -> list[across.FilledRelay]:
        """The fills of a deposit on its destination."""
        destination = deposit.destination_chain_id
        relay = deposit.relay(self.other(destination))
        return [fill for fill in await self.all_fills(destination) if fill.is_of(relay)]

    async def all_fills(self, destination: int, first: int = 0) -> list[across.FilledRelay]:
        """All fills on a chain, from a height on."""
        return await self._events(
            destination, self.places[destination].spoke_pool, across.FilledRelay, first=first
        )

    async def all_deposits(self, origin: int) -> list[across.FundsDeposited]:
        """All deposits at a chain's pool."""
        return await self._events(origin, self.places[origin].spoke_pool, across.FundsDeposited)

    async def fill(self, deposit: across.FundsDeposited, key: SigningKey) -> Receipt:
        """Fill a deposit from an account that has no tokens yet."""
        destination = deposit.destination_chain_id
        origin, world = self.other(destination), self.worlds[destination]
        token, pool = deposit.output_token[12:], self.places[destination].spoke_pool
        await world.give(key, token, deposit.output_amount, pool)
        return await self.send(
            destination,
            key,
            pool,
            across.fill_relay(deposit.relay(origin), origin, address_word(key.address)),
        )

    async def payouts(self, origin: int) -> list[across.ExecutedRelayerRefundRoot]:
        """Payouts of an origin's pool."""
        return await self._events(origin, self.places[origin].spoke_pool, across.ExecutedRelayerRefundRoot)

    async def all_minted(self, destination: int) -> list[cctp.MintAndWithdraw]:
        """All that was minted on a chain."""
        return await self._events(destination, self.places[destination].messenger, cctp.MintAndWithdraw)

    async def all_received(self, destination: int) -> list[cctp.MessageReceived]:
        """All messages that were taken on a chain."""
        return await self._events(destination, self.places[destination].transmitter, cctp.MessageReceived)

    async def arrived(self, chain_id: int, symbol: str, amount: int) -> None:
        """Wait until RECIPIENT has an amount."""
        while await self.balance(chain_id, symbol, RECIPIENT) != amount:  # noqa: ASYNC110  as below
            await trio.sleep(1)

    async def paid_out(self, origin: int) -> None:
        """Wait until an origin's pool has paid something out."""
        while not await self.payouts(origin):  # noqa: ASYNC110  nothing there can set an event
            await trio.sleep(1)

    # --- CCTP -------------------------------------------------------------------------------------------

    async def burn(self, origin: int, amount: int, **terms: int) -> bytes:
        """The user's burn of USDC, for RECIPIENT; its transaction's hash. For `terms` see `signed_burn`."""
        return await self.chains[origin].send_raw((await self.signed_burn(origin, amount, **terms)).raw)

    async def signed_burn(
        self, origin: int, amount: int, *, max_fee: int = 0, min_finality: int = cctp.FINALITY_FINALIZED
    ) -> SignedTransaction:
        """The burn before it is sent."""
        place, token = self.places[origin], self.tokens["USDC"][origin]
        await self.send(origin, self.user, token, calldata.approve(place.messenger, amount))
        domain = self.places[self.other(origin)].domain
        recipient = address_word(RECIPIENT.address)
        data = cctp.deposit_for_burn(amount, domain, recipient, token, max_fee, min_finality)
        return await signed(self.chains[origin], self.user, EthCall(place.messenger, data), DEV_GAS)

    async def attested(self, origin: int, tx_hash: bytes) -> tuple[bytes, bytes]:
        """Message and attestation of a burn, as the service gives them once they are complete."""
        target = f"/v2/messages/{self.places[origin].domain}?transactionHash=0x{tx_hash.hex()}"
        while True:
            status, body = await self.get(target)
            if status == 200 and body["messages"][0]["status"] == "complete":
                entry = body["messages"][0]
                return bytes.fromhex(entry["message"][2:]), bytes.fromhex(entry["attestation"][2:])
            await trio.sleep(0.1)

    async def receive(self, destination: int, message: bytes, attestation: bytes) -> Receipt:
        """Deliver a message, as anybody may."""
        transmitter = self.places[destination].transmitter
        return await self.send(
            destination, self.stranger, transmitter, cctp.receive_message(message, attestation)
        )

    # --- Service ----------------------------------------------------------------------------------------

    async def get(self, target: str) -> tuple[int, Any]:
        """Status and JSON of an answer of the bridges' HTTP service."""
        return await self._ask("GET", target)

    async def post(self, target: str) -> tuple[int, Any]:
        """As `get`, of a POST without a body."""
        return await self._ask("POST", target)

    async def control(self, method: str, *parameters: object) -> Any:
        """Answer of a JSON-RPC control: `result` or `error`."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        status, body = await self._ask("POST", "/", call)
        assert status == 200
        return body.get("result", body.get("error"))

    async def _ask(self, method: str, target: str, body: object = None) -> tuple[int, Any]:
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json")]
        answer = await self.client.request(
            method.encode(), target.encode(), headers, raw, deadline_s=PATIENCE_S
        )
        return answer.status, msgspec.json.decode(answer.body)

    async def _events(self, chain_id: int, contract: bytes, kind: type[T], *, first: int = 0) -> list[T]:
        chain = self.chains[chain_id]
        head = (await chain.upcoming()).head.number
        decode = decode_across_log if kind.__module__ == across.__name__ else decode_cctp_log
        logs = await chain.logs(LogFilter((contract,)), max(first, 0), head)
        events = [decode(log.topics, log.data) for log in logs]
        return [event for event in events if isinstance(event, kind)]

    # --- Life -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin anew: relayer and attester know what the chains tell them."""
        self._life = trio.CancelScope()
        await self._nursery.start(self._run)

    def stop(self) -> None:
        """End relayer and attester, wherever they are; the service still answers."""
        self._life.cancel()

    async def _run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self._life:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.relayer.run)
                await nursery.start(self.attester.run)
                task_status.started()

    @asynccontextmanager
    async def served(self) -> AsyncGenerator["TwoChains"]:
        """Relayer, attester and their service run; `dial` opens a stream in memory to the service."""
        listener = MemoryListener()

        async def dial(*_: object, **__: object) -> trio.abc.Stream:
            await trio.lowlevel.checkpoint()
            return listener.connect()

        self.dial = dial
        client = HttpClient("bridge.example", 80, connections_max=4, limits=Http1Limits(), dial=dial)
        async with self._served(listener, client):
            yield self

    @asynccontextmanager
    async def served_on_a_port(self) -> AsyncGenerator["TwoChains"]:
        """As `served`, at `url`."""
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        client = HttpClient("127.0.0.1", port, connections_max=4, limits=Http1Limits())
        async with self._served(listener, client):
            yield self

    @asynccontextmanager
    async def _served(self, listener: Listener, client: HttpClient) -> AsyncGenerator[None]:
        self.client = client
        async with trio.open_nursery() as self._nursery, client:
            await self._nursery.start(self.service.server.serve, listener)
            await self.start()
            yield
            self._nursery.cancel_scope.cancel()


@asynccontextmanager
async def two_chains() -> AsyncGenerator[TwoChains]:
    """Two embedded chains, on trio's clock."""
    clock = SimulatedClock(START_S)
    async with (await bridged(embedded_chains(clock.now_s))).served() as two:
        yield two


def embedded_chains(now_s: Callable[[], int] = lambda: int(time.time())) -> dict[int, DevChain]:
    """Two chains without any contracts.

    Args:
        now_s: their clock, Unix seconds.
    """
    ids = CHAIN_ID, OTHER_CHAIN_ID
    return {chain_id: EmbeddedChain(chain_id, now_s, {}, known_errors()) for chain_id in ids}


async def bridged(chains: Mapping[int, DevChain]) -> TwoChains:
    """Make a world on each of two empty chains; link and fund the bridges between them."""
    worlds: dict[int, World] = {}
    usdt: dict[int, bytes] = {}
    transmitters: dict[int, bytes] = {}
    for number, (chain_id, chain) in enumerate(chains.items()):
        world = worlds[chain_id] = await a_world(chain, DOMAINS[chain_id])
        usdt[chain_id] = await world.new_token(symbol="USDT", decimals=DECIMALS["USDT"][number])
        for key in (OWNER, RELAYER, world.user, world.stranger):
            await chain.set_balance(key.address, 10 * STOCK * ONE)
        await world.send(world.owner, world.spoke_pool, propose_owner(OWNER.address))
        await world.send(OWNER, world.spoke_pool, ACCEPT_OWNER)
        transmitter = await chain.call(EthCall(world.token_messenger, _TRANSMITTER))
        transmitters[chain_id] = decode_address(transmitter)
    two = TwoChains(worlds, usdt, transmitters)
    for chain_id, world in worlds.items():
        other = two.other(chain_id)
        usdc = two.tokens["USDC"][chain_id], two.tokens["USDC"][other]
        remote = DOMAINS[other], worlds[other].token_messenger
        await link_bridge(world.chain, world.owner, world.token_messenger, remote, [usdc])
        stock = [
            (at[chain_id], STOCK * 10 ** two.decimals(symbol, chain_id)) for symbol, at in two.tokens.items()
        ]
        await fund_relayer(world.chain, RELAYER, world.spoke_pool, world.weth, stock)
        for token, amount in stock:
            await world.mint(token, world.user, amount)
    return two


class AwayChain:
    """Passes calls on to a chain; while `is_away`, each call is refused as if its node did not answer.

    Attributes:
        asked: number of refused calls.
        shown: height above which no block is shown by its number, as by a node that is behind the node which
            answers for logs and the head; hidden: number of answers without such a block.
    """

    def __init__(self, chain: Any, *, is_away: bool = False) -> None:
        self._chain = chain
        self.is_away = is_away
        self.asked = self.hidden = 0
        self.shown = math.inf

    async def block(self, at: At = None) -> Header | None:
        if isinstance(at, int) and at > self.shown and not self.is_away:
            self.hidden += 1
            await trio.lowlevel.checkpoint()
            return None
        found: Header | None = await self.__getattr__("block")(at)
        return found

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._chain, name)

        async def asked(*given: Any, **named: Any) -> Any:
            if self.is_away:
                self.asked += 1
                raise NodeUnavailable("away")
            return await found(*given, **named)

        return asked if callable(found) else found
