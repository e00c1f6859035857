"""Bridged settlements in sentences: the chain stands for both ends, and FAR for the destination's id.

bridging = await a_bridging(market)
order = await world.a_delta_order(bridge=bridging.by_across())
settled = await market.settle(order, *market.agent_steps(FAIR))
filled = await bridging.fill(settled.receipt)
message = attested(settled.receipt, fee=7)
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cambist.codecs.bridges import across, cctp
from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    pack_terms,
)
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.contract_events import OrderBridged
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.chain.port import Receipt
from cambist.engine.dev.devnet.bridge_places import link_bridge
from support.chain.world import ATTESTER, DOMAIN, HOUR_S, NOBODY, World, a_token_messenger
from support.contracts.settling import Market, events

T = TypeVar("T")
FAR, FAR_DOMAIN = 10, 2
"""Chain id of the destination, and its domain of CCTP."""
FEE = BridgeFee(ppm=500, fixed=30_000)
"""0.05 % and 0.03 USDC."""
SET_LIMIT = selector("setMaxBurnAmountPerMessage(address,uint256)")
LINK_TOKENS = selector("linkTokenPair(address,uint32,bytes32)")
PAUSE_DEPOSITS, PAUSE_FILLS = selector("pauseDeposits(bool)"), selector("pauseFills(bool)")
TRANSMITTER = selector("localMessageTransmitter()")


class Bridging(msgspec.Struct, frozen=True):
    """A market on a chain whose bridges lead to FAR.

    Attributes:
        far_usdc: what USDC is at FAR; the relayer has a stock of it.
        far_messenger, far_transmitter: of CCTP at FAR.
    """

    market: Market
    far_usdc: bytes
    far_messenger: bytes
    far_transmitter: bytes

    @property
    def world(self) -> World:
        """The market's world."""
        return self.market.world

    @property
    def relayer(self) -> SigningKey:
        """The relayer of Across."""
        return self.world.taker

    # --- Terms ----------------------------------------------------------------------------------------

    def by_across(self, fee: BridgeFee = FEE, **changed: Any) -> DeltaBridge:
        """A bridge by Across, to be filled within the hour by any relayer."""
        return self._bridge(BridgeKind.ACROSS, AcrossTerms(fee, HOUR_S, NOBODY, 0), changed)

    def by_cctp(self, fee: BridgeFee = FEE, **changed: Any) -> DeltaBridge:
        """A bridge by CCTP, final."""
        return self._bridge(BridgeKind.CCTP, CctpTerms(fee, cctp.FINALITY_FINALIZED, FAR_DOMAIN), changed)

    def by(self, kind: BridgeKind, fee: BridgeFee = FEE, **changed: Any) -> DeltaBridge:
        """A bridge by either."""
        return self.by_across(fee, **changed) if kind is BridgeKind.ACROSS else self.by_cctp(fee, **changed)

    def _bridge(self, kind: BridgeKind, terms: BridgeTerms, changed: dict[str, Any]) -> DeltaBridge:
        """Changed members are those of the bridge or of the terms."""
        own = {name: changed.pop(name) for name in terms.__struct_fields__ if name in changed}
        data = pack_terms(msgspec.structs.replace(terms, **own))
        bridge = DeltaBridge(SELECTORS[kind], FAR, self.far_usdc, 0, data)
        return msgspec.structs.replace(bridge, **changed)

    # --- What has left --------------------------------------------------------------------------------

    def left(self, receipt: Receipt) -> OrderBridged:
        """The event of the one order that a transaction bridged."""
        (event,) = events(receipt, OrderBridged)
        return event

    async def keeps_nothing(self, *tokens: bytes) -> None:
        """Bridges has no token, and allows neither bridge any."""
        world, bridges = self.world, self.world.at.bridges
        for token in tokens or (world.usdc, world.weth, world.dai):
            assert await world.balance(token, bridges) == 0
            for bridge in (world.spoke_pool, world.token_messenger):
                assert await world.ask(token, calldata.allowance(bridges, bridge)) == 0

    # --- What arrives ---------------------------------------------------------------------------------

    async def fill(self, receipt: Receipt) -> across.FilledRelay:
        """The relayer pays what was deposited by a transaction."""
        world = self.world
        relay = deposit_of(receipt).relay(world.chain.chain_id)
        data = across.fill_relay(relay, world.chain.chain_id, address_word(self.relayer.address))
        receipt = await world.send(self.relayer, world.spoke_pool, data)
        (filled,) = _logs(receipt, across.decode_across_log, across.FilledRelay)
        assert filled.is_of(relay)
        return filled


def _logs(receipt: Receipt, decode: Callable[[Any, bytes], object], kind: type[T]) -> list[T]:
    decoded = (decode(log.topics, log.data) for log in receipt.logs)
    return [event for event in decoded if isinstance(event, kind)]


def deposit_of(receipt: Receipt) -> across.FundsDeposited:
    """The deposit of a transaction at Across's pool."""
    (deposited,) = _logs(receipt, across.decode_across_log, across.FundsDeposited)
    return deposited


def message_of(receipt: Receipt) -> cctp.CctpMessage:
    """The message of a transaction's burn."""
    (sent,) = _logs(receipt, cctp.decode_cctp_log, cctp.MessageSent)
    return cctp.parse_message(sent.message)


def attested(
    receipt: Receipt,
    *,
    fee: int = 0,
    finality: int = cctp.FINALITY_FINALIZED,
    expiration_block: int = 0,
    nonce: bytes = b"\x11" * 32,
    key: SigningKey = ATTESTER,
    **changed: Any,
) -> bytes:
    """Calldata that hands in the message of a transaction's burn, as the attester signs it."""
    message = msgspec.structs.replace(message_of(receipt), nonce=nonce, finality_executed=finality)
    burn = cctp.parse_burn(message.body)
    burn = msgspec.structs.replace(burn, fee_executed=fee, expiration_block=expiration_block)
    message = msgspec.structs.replace(message, **({"body": cctp.pack_burn(burn)} | changed))
    raw = cctp.pack_message(message)
    return cctp.receive_message(raw, to_65(*key.sign(keccak256(raw))))


async def a_bridging(market: Market) -> Bridging:
    """Link the world's messenger to one at FAR, and give the relayer a stock."""
    world = market.world
    far_usdc = await world.new_token(symbol="USDC", decimals=6)
    far_messenger = await a_token_messenger(world.chain, world.owner, FAR_DOMAIN)
    far_transmitter = (await world.ask(far_messenger, TRANSMITTER)).to_bytes(20, "big")
    near, chain, owner = world.token_messenger, world.chain, world.owner
    await link_bridge(chain, owner, near, (FAR_DOMAIN, far_messenger), [(world.usdc, far_usdc)])
    await world.send(owner, near, SET_LIMIT + address_word(world.usdc) + uint_word(10**12))
    await link_bridge(chain, owner, far_messenger, (DOMAIN, near), [(far_usdc, world.usdc)])
    bridging = Bridging(market, far_usdc, far_messenger, far_transmitter)
    await world.give(bridging.relayer, far_usdc, 10**6 * 10**6, world.spoke_pool)
    return bridging
