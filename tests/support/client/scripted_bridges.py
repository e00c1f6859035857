"""A scripted venue whose orders may leave the world's chain for another one, by Across or CCTP.

async with a_bridge_trader(world) as trader:
    trader.venue.at_look = trader.venue.settle_and_deliver
    record, settled = await trader.settled(trader.bridging())

USDC leaves and USDC of the other chain arrives there. The relayer of Across is the far world's maker; anybody
hands in messages of CCTP. The bridge's fee is 0.05 % and 0.03 USDC.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.codecs.bridges import across, cctp
from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    input_of,
    output_of,
    pack_terms,
)
from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.contract_events import OrderBridged
from cambist.codecs.eip712_orders.delta import SAME_CHAIN, DeltaBridge
from cambist.codecs.http1 import Request
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.codecs.messages.vocabulary import Side
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Chain, Receipt
from cambist.engine.dev.devnet.bridge_places import link_bridge
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trade.delta.orders.terms import output_total, side_of
from cambist.engine.trade.delta.orders.transfers import bridge_of
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.following import Placed as PlacedOrder
from cambist.engine.trader.client.order.order_following import SettledOnChain, Subject, proven
from cambist.engine.trader.client.order.order_placing import OrderOffer
from cambist.engine.trader.client.order.order_safety import signed_order
from cambist.engine.trader.client.order_terms import BridgeWish, OrderWish
from cambist.engine.trader.client.safety import contract_events
from cambist.engine.trader.client.terms import TradedToken
from support.chain.anvil import OTHER_CHAIN_ID
from support.chain.world import DOMAIN, HOUR_S, NOBODY, USDC, World, a_token_messenger, a_world
from support.client.order_trader import OrderTrader
from support.client.scripted_orders import OrderVenue, Placed, endow
from support.client.scripted_venue import answered
from support.contracts.bridging import TRANSMITTER, attested, deposit_of

FEE = BridgeFee(ppm=500, fixed=30_000)
FAR_DOMAIN = 9
ACROSS = AcrossTerms(FEE, HOUR_S, NOBODY, 0)
CCTP = CctpTerms(FEE, cctp.FINALITY_FINALIZED, FAR_DOMAIN)


class Lane(msgspec.Struct, frozen=True):
    """The token that enters the bridge, the one that arrives, and the difference of their decimals."""

    near: bytes
    far: bytes
    scaling: int = 0


class BridgeVenue(OrderVenue):
    """See the module.

    Attributes:
        far: the other chain's world; far_messenger: its messenger of CCTP.
        terms, lane: of the bridge of the next quotes.
        deliveries: hash of a settlement -> receipt of its delivery, and the amount.
        refunds: `refunds` of each order's record, by its id.
        queries: of the quotes that were asked for.
    """

    far: World
    far_messenger: bytes
    lane: Lane
    terms: BridgeTerms = ACROSS

    def __init__(self, world: World, port: int = 0) -> None:
        super().__init__(world, port)
        self.deliveries: dict[bytes, tuple[Receipt, int]] = {}
        self.refunds: dict[str, list[dict[str, Any]]] = {}
        self.queries: list[dict[str, str]] = []

    async def served(self, request: Request) -> bytes:
        """As the scripted venue, with the tokens of the other chain."""
        path = request.path.decode().strip("/").split("/")
        if path == ["tokens", str(self.far.chain.chain_id)]:
            return answered(200, {}, self._far_tokens())
        return await super().served(request)

    @property
    def way(self) -> DeltaBridge:
        """The bridge that an order signs."""
        kind = BridgeKind.CCTP if isinstance(self.terms, CctpTerms) else BridgeKind.ACROSS
        data = pack_terms(self.terms)
        lane = self.lane
        return DeltaBridge(SELECTORS[kind], self.far.chain.chain_id, lane.far, lane.scaling, data)

    # --- Life -----------------------------------------------------------------------------------------

    async def settle(self, placed: Placed, amount: int | None = None) -> None:
        """As the scripted venue; a settled order across chains is BRIDGING."""
        if placed.status != "BRIDGING":
            await super().settle(placed, amount)
            if placed.status == "COMPLETED" and bridge_of(placed.order) != SAME_CHAIN:
                self.change(placed, "BRIDGING")

    async def settle_and_deliver(self, placed: Placed) -> None:
        """The order is settled at the first look, and delivered at the second."""
        if placed.status == "BRIDGING":
            for receipt in placed.receipts:
                await self.deliver(receipt)
            self.change(placed, "COMPLETED")
        elif placed.status != "COMPLETED":
            await self.settle(placed)

    async def settle_and_refund(self, placed: Placed) -> None:
        """The order is settled at the first look, fails at the second, and is refunded at the third."""
        if placed.status == "BRIDGING":
            self.change(placed, "REFUNDING")
        elif placed.status == "REFUNDING":
            for receipt in placed.receipts:
                await self.refund(placed, receipt)
            self.change(placed, "REFUNDED")
        elif placed.status != "REFUNDED":
            await self.settle(placed)

    async def deliver(self, receipt: Receipt, *, fee: int = 0) -> None:
        """The bridge of a settlement pays at the other chain.

        Args:
            fee: of CCTP, raw units.
        """
        bridged = self.bridged_in(receipt)
        if bridged.protocol_selector == SELECTORS[BridgeKind.CCTP]:
            to, data = await self._attested(receipt, fee)
            arriving = bridged.amount - fee
        else:
            relay = self.deposited(receipt).relay(self.chain_id)
            to, arriving = self.far.spoke_pool, relay.output_amount
            data = across.fill_relay(relay, self.chain_id, address_word(self.far.maker.address))
        self.deliveries[receipt.tx_hash] = await self.far.send(self.far.maker, to, data), arriving

    async def refund(self, placed: Placed, receipt: Receipt) -> None:
        """The origin's pool pays a deposit back."""
        world, deposit = self.world, self.deposited(receipt)
        owner, amount = deposit.depositor[-20:], deposit.input_amount
        leaf = across.execute_refund_leaf(
            deposit.deposit_id, self.chain_id, deposit.input_token[-20:], [(owner, amount)]
        )
        paid = await world.send(world.owner, world.spoke_pool, leaf)
        self.refunds.setdefault(placed.id, []).append(
            {
                "tx": to_hex(paid.tx_hash),
                "chainId": self.chain_id,
                "token": to_checksum(deposit.input_token[-20:]),
                "amount": str(amount),
            }
        )

    def bridged_in(self, receipt: Receipt) -> OrderBridged:
        """The transfer of a settlement."""
        (event,) = contract_events(receipt, self.world.at.delta, OrderBridged)
        return event

    def deposited(self, receipt: Receipt) -> across.FundsDeposited:
        """The deposit of a settlement at the pool."""
        return deposit_of(receipt)

    async def _attested(self, receipt: Receipt, fee: int) -> tuple[bytes, bytes]:
        transmitter = (await self.far.ask(self.far_messenger, TRANSMITTER)).to_bytes(20, "big")
        return transmitter, attested(receipt, fee=fee, nonce=keccak256(receipt.tx_hash))

    # --- Answers --------------------------------------------------------------------------------------

    def _far_tokens(self) -> dict[str, Any]:
        usdc = {"symbol": "USDC", "address": to_checksum(self.far.usdc), "decimals": 6}
        return {"tokens": [usdc | {"network": self.far.chain.chain_id}]}

    def _price(self, query: dict[str, str]) -> dict[str, Any]:
        if "destChainId" not in query:
            return super()._price(query)
        self.queries.append(query)
        amount, fee, lane = int(query["amount"]), self.terms.fee, self.lane
        is_sale = query["side"] == "SELL"
        entering = amount if is_sale else input_of(fee, lane.scaling, amount)
        block = super()._price(query | {"amount": str(entering), "destToken": to_checksum(lane.near)})
        origin, params = block["route"]["origin"], self.way
        middle = origin["output"]
        arriving = output_of(fee, lane.scaling, int(middle["amount"])) if is_sale else amount
        token = {"chainId": int(query["destChainId"]), "address": query["destToken"]}
        arrives = {"token": token, "amount": str(arriving), "amountUSD": middle["amountUSD"]}
        contract_params = {
            "protocolSelector": to_hex(params.protocol_selector),
            "outputToken": to_checksum(params.output_token),
            "scalingFactor": params.scaling_factor,
            "protocolData": to_hex(params.protocol_data),
        }
        kept = middle | {"amount": str(fee_of(fee, int(middle["amount"])))}
        route = block["route"] | {
            "destination": {"input": arrives, "output": arrives},
            "bridge": {
                "protocol": "cctp" if isinstance(self.terms, CctpTerms) else "across",
                "estimatedTimeMs": 30_000,
                "tags": ["recommended"],
                "contractParams": contract_params,
            },
            "fees": block["route"]["fees"] | {"bridge": [kept]},
        }
        return block | {"outputToken": token, "route": route}

    def _said(self, body: dict[str, Any]) -> dict[str, Any]:
        said, route = super()._said(body), body["route"]
        if route["bridge"] is None:
            return said
        params, end = route["bridge"]["contractParams"], route["destination"]["output"]["token"]
        bridge = DeltaBridge(
            parse_hex(params["protocolSelector"], "protocolSelector"),
            end["chainId"],
            parse_address(params["outputToken"]),
            params["scalingFactor"],
            parse_hex(params["protocolData"], "protocolData"),
        )
        return said | {"bridge": bridge}

    def _order(self, body: dict[str, Any]) -> Any:
        return super()._order(self._by_what_arrives(body))

    def _twap(self, body: dict[str, Any]) -> Any:
        return super()._twap(self._by_what_arrives(body))

    def _by_what_arrives(self, body: dict[str, Any]) -> dict[str, Any]:
        """A body whose origin gives the amount that arrives: destination amounts of an order are in it."""
        route = body["route"]
        origin = route["origin"]
        output = origin["output"] | {"amount": route["destination"]["output"]["amount"]}
        return body | {"route": route | {"origin": origin | {"output": output}}}

    def _record(self, placed: Placed) -> dict[str, Any]:
        record, bridge = super()._record(placed), bridge_of(placed.order)
        if bridge == SAME_CHAIN:
            return record
        executed = 0
        for row, receipt in zip(record["transactions"], placed.receipts, strict=True):
            found = self.deliveries.get(receipt.tx_hash)
            executed += 0 if found is None else found[1]
            row["destinationTx"] = None if found is None else to_hex(found[0].tx_hash)
            row["receivedAmount"] = None if found is None else str(found[1])
        output = record["output"] | {
            "chainId": bridge.destination_chain_id,
            "token": to_checksum(bridge.output_token),
        }
        total = str(output_total(placed.order))
        if side_of(placed.order) is Side.SELL:
            output |= {"executedAmount": str(executed) if executed else None, "minAmount": total}
        else:
            output["amount"] = total
        return record | {"output": output, "refunds": self.refunds.get(placed.id, [])}


class BridgeTrader(OrderTrader):
    """The user's side of a venue whose orders may leave the chain."""

    venue: BridgeVenue

    @property
    def far_usdc(self) -> TradedToken:
        """USDC of the other chain."""
        return TradedToken(self.venue.far.usdc, "USDC", 6)

    def bridging(self, **changed: Any) -> OrderWish:
        """The user sells one WETH for USDC on the other chain."""
        bridging = BridgeWish(chain_id=OTHER_CHAIN_ID, fee_bps_max=20, via=self.usdc)
        return self.wish(**({"dest": self.far_usdc, "bridging": bridging} | changed))

    async def proven(
        self, offer: OrderOffer, placed: PlacedOrder[OrderRecord], record: OrderRecord
    ) -> SettledOnChain:
        return await self.proven_by(self.venue.far.chain, offer, record)

    async def proven_by(self, there: Chain | None, offer: OrderOffer, record: OrderRecord) -> SettledOnChain:
        """As `proven`, with another node of the destination chain, or none."""
        subject = Subject(offer.contract.address, signed_order(record, offer.contract), there)
        return await proven(self.world.chain, subject, record)


async def link(venue: BridgeVenue, chain: EmbeddedChain) -> None:
    """Give the venue the world of another chain, and link the bridges of both."""
    near, far = venue.world, await a_world(chain)
    far.usdc = await far.new_token(symbol="USDC", decimals=6)  # at another address than on the first chain
    venue.far, venue.far_messenger = far, await a_token_messenger(chain, far.owner, FAR_DOMAIN)
    venue.lane = Lane(near.usdc, far.usdc)
    ends = (DOMAIN, near, near.token_messenger), (FAR_DOMAIN, far, venue.far_messenger)
    for (_, here, messenger), (domain, there, remote) in (ends, ends[::-1]):
        tokens = [(here.usdc, there.usdc)]
        await link_bridge(here.chain, here.owner, messenger, (domain, remote), tokens)
    await far.give(far.maker, far.usdc, 100_000 * USDC, far.spoke_pool)


def another_chain() -> EmbeddedChain:
    """An embedded chain beside that of a world."""
    return EmbeddedChain(OTHER_CHAIN_ID, lambda: int(time.time()), {}, known_errors())


@asynccontextmanager
async def a_bridge_trader(world: World) -> AsyncGenerator[BridgeTrader]:
    """See the module."""
    await endow(world)
    async with BridgeVenue.opened(world) as venue, VenueClient.open(venue.url) as client:
        await link(venue, another_chain())
        venue.at_look = venue.settle_and_deliver
        yield BridgeTrader(venue, client)
