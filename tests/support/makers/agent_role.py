"""An agent on a loopback socket in this process, on a devnet with makers, and the venue that asks it.

async with running_agent(tmp_path) as agent:
    sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
    (bid,) = await agent.solve(sale)
    (settled,) = await agent.settle(bid)
    assert settled.received >= int(bid.parts[0].promised_amount)

Orders are signed by their owners, and settled by the relayer's transaction to the real contract. The user and
the stranger of `venue_role` have allowed their tokens to it; native tokens are deposited for each order.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import trio
from msgspec import Struct

from cambist.codecs.contracts import delta_calldata
from cambist.codecs.contracts.contract_events import OrderSettled, decode_event
from cambist.codecs.contracts.delta_calldata import (
    EXECUTOR,
    CrossedOrder,
    Execution,
    SettlementStep,
    agent_id,
)
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.codecs.http1 import Http1Limits, Response
from cambist.codecs.messages.agent_messages import (
    AuctionOrder,
    BidPart,
    NotifyRequest,
    SolverBid,
    SolveRequest,
    WholeOrder,
    decode_solve_response,
)
from cambist.codecs.messages.vocabulary import OnChainOrderType, Side
from cambist.config.chains import ChainSettings
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.hmac_auth import RequestSigner
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.transact import transact
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.agent.app import AgentApp, opened_agent
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.chain.world import World
from support.patience import FIRM_HARD_S, FIRM_SOFT_S, PATIENCE_S, ROUND_S, until
from support.server.scripted_server import scripted_server
from support.venue.venue_fronts import Front
from support.venue.venue_role import (
    CHAIN_ID,
    ENVIRON,
    GRIDS,
    MAKER_KEYS,
    RELAYER,
    STRANGER,
    USER,
    Devnet,
    running_makers,
    served_devnet,
    venue_text,
)

SECRET = "the secret of the venue"
AGENT_ENVIRON = ENVIRON | {"VENUE_SECRET": SECRET}
SETTLEMENT_GAS = 3_000_000
NAME = "agent"
ROUND_MS = round(1_000 * ROUND_S)
_AUTH = '[auth.domains.venue]\nkeys = [{ access_key = "key-1", secret = "env:VENUE_SECRET" }]\n'


class SignedOrder(Struct, frozen=True):
    """An order with its owner's signature, and what agents are shown of it."""

    order: DeltaOrder
    signature: bytes
    shown: AuctionOrder


class RunningAgent:
    """An agent that serves, and a venue's way to ask it.

    Attributes:
        fronts: what stands before each maker, by name.
    """

    def __init__(
        self,
        app: AgentApp,
        devnet: Devnet,
        client: HttpClient,
        port: int,
        fronts: Mapping[str, Front] | None = None,
    ) -> None:
        self.app = app
        self.fronts = fronts or {}
        self.devnet = devnet
        self.client = client
        self.port = port
        self.clock = WallClock()
        self.signer = RequestSigner("venue", "key-1", SECRET.encode())
        self._orders: dict[str, SignedOrder] = {}
        self._auctions = 0

    # --- Asking -----------------------------------------------------------------------------------------

    async def ask(
        self, method: str, path: str, body: bytes = b"", signer: RequestSigner | None = None
    ) -> Response:
        """Send a signed request."""
        signed = (signer or self.signer).headers(self.clock.now_ms(), method, path, body)
        headers = [(name.encode(), value.encode()) for name, value in signed.items()]
        return await self.client.request(method.encode(), path.encode(), headers, body, deadline_s=PATIENCE_S)

    def request(
        self, *orders: SignedOrder | AuctionOrder, round_ms: int = ROUND_MS, **changed: Any
    ) -> SolveRequest:
        """A round of these orders."""
        self._auctions += 1
        request = SolveRequest(
            auction_id=self._auctions,
            chain_id=CHAIN_ID,
            closes_at_ms=self.clock.now_ms() + round_ms,
            delta=self.devnet.text("delta"),
            executor=self.devnet.text("executor"),
            rfq=self.devnet.text("rfq"),
            wrapped_native=self.devnet.text("WETH"),
            gas_price_wei=str(10**9),
            caller=to_checksum(caller_of(self.devnet.at("delta"), NAME)),
            orders=tuple(order.shown if isinstance(order, SignedOrder) else order for order in orders),
        )
        return msgspec.structs.replace(request, **changed)

    async def solve(self, *orders: SignedOrder | AuctionOrder, **changed: Any) -> tuple[SolverBid, ...]:
        """The bids; none for 204."""
        body = msgspec.json.encode(self.request(*orders, **changed))
        response = await self.ask("POST", "/solve", body)
        if response.status == 204:
            assert response.body == b""
            return ()
        assert response.status == 200, response.body
        return decode_solve_response(response.body).bids

    async def notify(self, notice: NotifyRequest) -> Response:
        """Tell it."""
        return await self.ask("POST", "/notify", msgspec.json.encode(notice))

    # --- Orders -----------------------------------------------------------------------------------------

    async def sells(self, amount: int, src: str, dest: str, *, least: int, **more: Any) -> SignedOrder:
        """A sale of raw units of a token; see `_signed`."""
        return await self._signed(src, dest, KIND_SELL, (amount, least), **more)

    async def buys(self, amount: int, dest: str, src: str, *, most: int, **more: Any) -> SignedOrder:
        """A purchase of raw units of a token; see `_signed`."""
        return await self._signed(src, dest, KIND_BUY, (most, amount), **more)

    async def _signed(
        self,
        src: str,
        dest: str,
        kind: int,
        amounts: tuple[int, int],
        *,
        owner: SigningKey = USER,
        expected: int = 0,
        partner_and_fee: int = 0,
        part_min: int = 0,
    ) -> SignedOrder:
        devnet, now_s = self.devnet, self.clock.now_ms() // 1_000
        order = DeltaOrder(
            owner=owner.address,
            beneficiary=owner.address,
            src_token=devnet.at(src),
            dest_token=devnet.at(dest),
            src_amount=amounts[0],
            dest_amount=amounts[1],
            expected_amount=expected,
            deadline=now_s + 3_600,
            kind=kind,
            nonce=secrets.randbits(64),
            partner_and_fee=partner_and_fee,
            permit=b"",
            metadata=b"",
            bridge=SAME_CHAIN,
        )
        chain = ChainSettings(name="devnet")
        separator = delta_domain_separator(
            chain.delta_domain_name, chain.delta_domain_version, CHAIN_ID, devnet.at("delta")
        )
        digest: bytes = ORDER.compiled.digest_for(separator)(order)
        if src == "ETH":
            deposit = delta_calldata.deposit_native_and_pre_sign(digest)
            await transact(devnet.chain, owner, devnet.at("delta"), deposit, value_wei=order.src_amount)
        shown = AuctionOrder(
            order_hash=to_hex(digest),
            order_type=OnChainOrderType.ORDER,
            side=Side.BUY if kind == KIND_BUY else Side.SELL,
            owner=to_hex(owner.address),
            src_token=devnet.text(src),
            dest_token=devnet.text(dest),
            src_amount=str(order.src_amount),
            dest_amount=str(order.dest_amount),
            expected_amount=str(expected),
            partner_and_fee=str(partner_and_fee),
            deadline=order.deadline,
            part_min=str(part_min) if part_min else "",
            whole=WholeOrder(str(order.src_amount), str(order.dest_amount), str(expected))
            if part_min
            else None,
        )
        signed = SignedOrder(order, to_compact64(*owner.sign(digest)), shown)
        self._orders[shown.order_hash] = signed
        return signed

    # --- Settling ---------------------------------------------------------------------------------------

    async def settle(self, bid: SolverBid) -> list[OrderSettled]:
        """Settle a bid; the event of each order, in the bid's order. Reverted if the contract refuses."""
        parts = [(self._orders[part.order_hash], part) for part in bid.parts]
        if len(parts) == 1:
            ((signed, part),) = parts
            amount = int(part.amount or _amount(signed))
            data = delta_calldata.settle(signed.order, signed.signature, amount, _execution(part))
        else:
            data = delta_calldata.settle_crossed(
                [
                    CrossedOrder(
                        signed.order,
                        signed.signature,
                        _amount(signed),
                        _execution(part),
                        int(part.paid),
                        int(part.traded),
                    )
                    for signed, part in parts
                ]
            )
        devnet = self.devnet
        receipt = await transact(devnet.chain, RELAYER, devnet.at("delta"), data, gas=SETTLEMENT_GAS)
        events = [decode_event(log.topics, log.data) for log in receipt.logs]
        return [event for event in events if isinstance(event, OrderSettled)]


def _amount(signed: SignedOrder) -> int:
    return signed.order.dest_amount if signed.order.kind == KIND_BUY else signed.order.src_amount


def _execution(part: BidPart) -> Execution:
    steps = [
        SettlementStep(parse_hex(step.target, "target"), step.gas, parse_hex(step.data, "data"))
        for step in part.steps
    ]
    return Execution(
        int(part.promised_amount),
        int(part.given),
        tuple(steps),
        tuple(parse_hex(token, "leftovers") for token in part.leftovers),
        agent_id(NAME),
        parse_hex(part.receiver, "receiver") if part.receiver else EXECUTOR,
    )


def _front(name: str, devnet: Devnet, port: int) -> Front:
    world = SimpleNamespace(at=SimpleNamespace(rfq=devnet.at("rfq")))
    return Front(name, cast("World", world), port, MAKER_KEYS[name])


def own_module(folder: Path, text: str) -> str:
    """The name of a module of a folder, which no test before has imported."""
    name = f"own_{secrets.token_hex(8)}"
    (folder / f"{name}.py").write_text(text)
    return name


def agent_text(devnet: Devnet, ports: Mapping[str, int], more: str = "") -> str:
    """The settings of an agent on a chain, with makers at these ports; `more` is TOML below [agent]."""
    text = venue_text(devnet, ports, streaming=frozenset(), has_relayer=False).replace(
        "venue.makers", "agent.makers"
    )
    head, _, rest = text.partition("[venue]\n")
    makers = (
        rest[rest.index("[agent.makers") :] if "[agent.makers" in rest else rest[rest.index("[[tokens") :]
    )
    return f"{head}[agent]\n{more}{makers}{_AUTH}"


@asynccontextmanager
async def running_agent(
    folder: Path,
    *,
    grids: Mapping[str, Mapping[str, Any]] = GRIDS,
    more: str | Callable[[Devnet], Awaitable[str]] = "",
    owners: Sequence[SigningKey] = (USER, STRANGER),
    health_listener: socket | None = None,
) -> AsyncIterator[RunningAgent]:
    """Chain, makers and agent, once every book is live; drained in the end.

    Args:
        folder: for state, price files and strategies.
        grids: what each maker quotes.
        more: TOML below [agent], or what makes it once there is a chain.
        owners: who have allowed their tokens to the Delta contract.
        health_listener: of its health.
    """
    async with served_devnet(folder) as devnet, running_makers(folder, devnet, grids) as makers:
        for owner in owners:
            for token in ("WETH", "USDC", "DAI", "WBTC"):
                await devnet.allow(owner, token, "delta")
        fronts = {name: _front(name, devnet, port) for name, (_, port) in makers.items()}
        async with AsyncExitStack() as owned:
            ports = {
                name: await owned.enter_async_context(scripted_server(front.script))
                for name, front in fronts.items()
            }
            below = more if isinstance(more, str) else await more(devnet)
            if "firm =" not in below:
                below = f"firm = {{ soft_s = {FIRM_SOFT_S}, hard_s = {FIRM_HARD_S} }}\n{below}"
            settings = parse_settings(agent_text(devnet, ports, below), AGENT_ENVIRON, folder)
            app = await owned.enter_async_context(
                opened_agent(settings, environ=AGENT_ENVIRON, folder=folder, clock=WallClock())
            )
            listener = listen("127.0.0.1", 0)
            port = listener.getsockname()[1]
            expected = sum(len(pairs) for pairs in grids.values())
            async with trio.open_nursery() as nursery:
                await nursery.start(app.run, listener, health_listener)
                index = app.chains[CHAIN_ID].makers.index
                await until(lambda: len(list(index.books())) == expected)
                async with HttpClient("127.0.0.1", port, connections_max=8, limits=Http1Limits()) as client:
                    yield RunningAgent(app, devnet, client, port, fronts)
                app.drain()
            assert app.drained
