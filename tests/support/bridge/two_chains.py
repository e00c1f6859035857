"""Two development chains with tokens, the bridges' dev contracts, a relayer and an attester between them.

async def test_something(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(deposit))

On embedded chains the time is the test's: trio's clock since START_S, under a MockClock that jumps. On anvils
it is the wall clock's.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from cambist.codecs.contracts import across, calldata, cctp
from cambist.codecs.contracts.abi import address_word, bytes_tail, decode_uint, encode, selector, uint_word
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.transactions import SignedTransaction
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import DevChain, EthCall, LogFilter, Receipt
from cambist.engine.chain.transact import DEV_GAS, signed, transact
from cambist.engine.dev.bridge.attester import AttestEnd, DevAttester
from cambist.engine.dev.bridge.bridge_contracts import BridgePlaces, fund_relayer, link_bridge, place_bridge
from cambist.engine.dev.bridge.bridge_service import BridgeService
from cambist.engine.dev.bridge.lanes import BridgedToken, LaneEnd
from cambist.engine.dev.bridge.relayer import DevRelayer, RelayEnd
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.feeds.net.http_client import HttpClient
from support.chain.anvil import CHAIN_ID, OTHER_CHAIN_ID
from support.chain.world import ONE, person
from support.delta.waiting_venue import SimulatedClock
from support.patience import PATIENCE_S
from support.server.server_harness import MemoryListener

START_S = 1_800_000_000
DOMAINS = {CHAIN_ID: 7, OTHER_CHAIN_ID: 9}
"""Chain id -> domain of CCTP."""
OWNER, RELAYER, ATTESTER, DEPLOYER = (person(number) for number in (80, 81, 90, 83))
"""OWNER has the pools and messengers, and the fees of CCTP; DEPLOYER the tokens."""
USER, RECIPIENT, STRANGER = (person(number) for number in (84, 85, 86))
STOCK = 100_000
"""Whole tokens of each kind that the relayer and the user have on each chain."""
DECIMALS = {"USDC": (6, 6), "USDT": (6, 18), "WETH": (18, 18)}
"""Token -> decimals on the first chain and on the second."""
_GAS_MICRO = {"USDC": 20_000, "USDT": 20_000, "WETH": 10}
_MINT, _DEPOSIT = selector("mint(address,uint256)"), selector("deposit()")


class TwoChains:
    """See the module.

    Attributes:
        first, second: ids of the chains.
        chains, places: chain id -> the chain, and its bridge contracts.
        tokens: symbol -> chain id -> address.
        client: reaches the service of relayer and attester.
    """

    def __init__(
        self,
        chains: Mapping[int, DevChain],
        places: Mapping[int, BridgePlaces],
        tokens: Mapping[str, Mapping[int, bytes]],
    ) -> None:
        self.first, self.second = chains
        self.chains = chains
        self.places = places
        self.tokens = tokens
        bridged = tuple(
            BridgedToken(
                symbol,
                {chain_id: LaneEnd(at[chain_id], self.decimals(symbol, chain_id)) for chain_id in chains},
                _GAS_MICRO[symbol],
            )
            for symbol, at in tokens.items()
        )
        relay_ends = {one: RelayEnd(chain, places[one].spoke_pool) for one, chain in chains.items()}
        attest_ends = {
            places[one].domain: AttestEnd(chain, places[one].transmitter) for one, chain in chains.items()
        }
        self.relayer = DevRelayer(relay_ends, bridged, RELAYER, OWNER)
        self.attester = DevAttester(attest_ends, ATTESTER)
        self.service = BridgeService(self.relayer, self.attester)
        self._life = trio.CancelScope()
        self._nursery: trio.Nursery
        self.client: HttpClient

    def decimals(self, symbol: str, chain_id: int) -> int:
        """Decimals of a token on a chain."""
        return DECIMALS[symbol][list(self.chains).index(chain_id)]

    # --- Chains -----------------------------------------------------------------------------------------

    async def send(self, chain_id: int, key: SigningKey, to: bytes, data: bytes, wei: int = 0) -> Receipt:
        """Mine a transaction."""
        return await transact(self.chains[chain_id], key, to, data, value_wei=wei)

    async def balance(self, chain_id: int, symbol: str, who: SigningKey | bytes) -> int:
        """Raw units; ETH for native tokens."""
        address = who.address if isinstance(who, SigningKey) else who
        if symbol == "ETH":
            return await self.chains[chain_id].balance(address)
        call = EthCall(self.tokens[symbol][chain_id], calldata.balance_of(address))
        return decode_uint(await self.chains[chain_id].call(call))

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
        await self.send(origin, USER, tokens[origin], calldata.approve(pool, amount))
        members: dict[str, Any] = {
            "depositor": USER.address,
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
        receipt = await self.send(origin, USER, pool, across.deposit_v3(**(members | changes)))
        event = across.decode_across_log(receipt.logs[-1].topics, receipt.logs[-1].data)
        assert isinstance(event, across.FundsDeposited)
        return event

    async def fills(self, deposit: across.FundsDeposited) -> list[across.FilledRelay]:
        """The fills of a deposit on its destination."""
        destination = deposit.destination_chain_id
        relay = deposit.relay(self.other(destination))
        found = await self._events(
            destination, self.places[destination].spoke_pool, across.FILLED_RELAY.topic
        )
        fills = [across.decode_across_log(topics, data) for topics, data in found]
        return [fill for fill in fills if isinstance(fill, across.FilledRelay) and fill.is_of(relay)]

    async def payouts(self, origin: int) -> list[across.ExecutedRelayerRefundRoot]:
        """What an origin's pool has paid out."""
        pool = self.places[origin].spoke_pool
        found = await self._events(origin, pool, across.EXECUTED_REFUND_ROOT.topic)
        payouts = [across.decode_across_log(topics, data) for topics, data in found]
        return [one for one in payouts if isinstance(one, across.ExecutedRelayerRefundRoot)]

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
        await self.send(origin, USER, token, calldata.approve(place.messenger, amount))
        domain = self.places[self.other(origin)].domain
        recipient = address_word(RECIPIENT.address)
        data = cctp.deposit_for_burn(amount, domain, recipient, token, max_fee, min_finality)
        return await signed(self.chains[origin], USER, EthCall(place.messenger, data), DEV_GAS)

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
        return await self.send(destination, STRANGER, transmitter, cctp.receive_message(message, attestation))

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

    async def _events(self, chain_id: int, contract: bytes, topic: bytes) -> list[Any]:
        chain = self.chains[chain_id]
        head = (await chain.upcoming()).head.number
        logs = await chain.logs(LogFilter((contract,), ((topic,),)), 0, head)
        return [(log.topics, log.data) for log in logs]

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
        """Relayer, attester and their service run; the service is reached over streams in memory."""
        listener = MemoryListener()

        async def dial(*_: object, **__: object) -> trio.abc.Stream:
            await trio.lowlevel.checkpoint()
            return listener.connect()

        self.client = HttpClient("bridge.example", 80, connections_max=4, limits=Http1Limits(), dial=dial)
        async with trio.open_nursery() as self._nursery, self.client:
            await self._nursery.start(self.service.server.serve, listener)
            await self.start()
            yield self
            self._nursery.cancel_scope.cancel()


@asynccontextmanager
async def two_chains() -> AsyncGenerator[TwoChains]:
    """Two embedded chains, on trio's clock."""
    clock = SimulatedClock(START_S)
    chains = {
        chain_id: EmbeddedChain(chain_id, clock.now_s, {}, known_errors())
        for chain_id in (CHAIN_ID, OTHER_CHAIN_ID)
    }
    async with (await bridged(chains)).served() as two:
        yield two


async def bridged(chains: Mapping[int, DevChain]) -> TwoChains:
    """Deploy, link and fund the bridge's contracts on two chains without any contracts."""
    tokens: dict[str, dict[int, bytes]] = {symbol: {} for symbol in DECIMALS}
    places: dict[int, BridgePlaces] = {}
    for number, (chain_id, chain) in enumerate(chains.items()):
        for key in (OWNER, RELAYER, DEPLOYER, USER, STRANGER):
            await chain.set_balance(key.address, 10 * STOCK * ONE)
        for symbol, decimals in DECIMALS.items():
            tokens[symbol][chain_id] = await _token(chain, symbol, decimals[number])
        places[chain_id] = await place_bridge(
            chain,
            OWNER,
            weth=tokens["WETH"][chain_id],
            attester=ATTESTER.address,
            domain=DOMAINS[chain_id],
        )
    for chain_id, chain in chains.items():
        (other,) = (one for one in chains if one != chain_id)
        usdc = (tokens["USDC"][chain_id], tokens["USDC"][other])
        await link_bridge(chain, OWNER, places[chain_id].messenger, places[other], [usdc])
    two = TwoChains(chains, places, tokens)
    for chain_id, chain in chains.items():
        stock = [
            (tokens[symbol][chain_id], STOCK * 10 ** two.decimals(symbol, chain_id))
            for symbol in ("USDC", "USDT")
        ]
        weth = tokens["WETH"][chain_id], STOCK * ONE
        await fund_relayer(chain, RELAYER, places[chain_id].spoke_pool, stock, weth=weth)
        for token, amount in stock:
            words = address_word(USER.address) + uint_word(amount)
            await transact(chain, DEPLOYER, token, _MINT + words, gas=DEV_GAS)
        await transact(chain, USER, weth[0], _DEPOSIT, value_wei=STOCK * ONE, gas=DEV_GAS)
    return two


async def _token(chain: DevChain, symbol: str, decimals: int) -> bytes:
    if symbol == "WETH":
        return await create(chain, DEPLOYER, "DevWeth", gas=DEV_GAS)
    words = encode(bytes_tail(symbol.encode()), bytes_tail(symbol.encode()), uint_word(decimals))
    return await create(chain, DEPLOYER, "DevToken", words, gas=DEV_GAS)
