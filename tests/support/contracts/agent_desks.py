"""Desks of agents (contracts/examples/AgentDesk.sol), stocked, and the steps that trade with them."""

from dataclasses import dataclass
from typing import Any

import msgspec

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.agent_desk import DeskTerms, terms_digest, trade
from cambist.codecs.contracts.delta_calldata import SettlementStep, agent_caller, agent_id
from cambist.codecs.eip712_orders.delta import AnyDeltaOrder
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import ONE, USDC, World, person
from support.contracts.settling import STEP_GAS

FAIR = 2_500 * USDC
STOCK = 50_000 * USDC
SIGNER = person(11)


@dataclass(frozen=True)
class Desk:
    """Desk of the agent ann, stocked with USDC."""

    world: World
    address: bytes

    def terms(self, order: AnyDeltaOrder, **changed: Any) -> DeskTerms:
        """Terms of a trade in the settlement of an order: a WETH for 2,500 USDC."""
        world = self.world
        terms = DeskTerms(
            order_hash=world.delta_hash(order),
            takes=world.weth,
            taken=ONE,
            gives=world.usdc,
            given=FAIR,
            receiver=world.at.delta,
            deadline=order.deadline,
            nonce=0,
        )
        return msgspec.structs.replace(terms, **changed)

    def steps(self, terms: DeskTerms, key: SigningKey = SIGNER) -> tuple[SettlementStep, SettlementStep]:
        """The caller allows what the desk takes, and has it trade."""
        signature = to_65(*key.sign(terms_digest(terms, self.world.chain.chain_id, self.address)))
        allow = SettlementStep(terms.takes, STEP_GAS, calldata.approve(self.address, terms.taken))
        return allow, SettlementStep(self.address, STEP_GAS, trade(terms, signature))

    async def stock(self) -> dict[bytes, int]:
        """Balances of the desk: token -> raw units, without zeros."""
        held = await self.world.balances(self.address)
        return {token: amount for (token, _), amount in held.items() if amount}


async def a_desk(world: World) -> Desk:
    """Deployed for the agent that the venue calls ann, with 50,000 USDC."""
    caller = (await world.ask(world.at.delta, agent_caller(agent_id("ann")))).to_bytes(20)
    words = map(address_word, (caller, SIGNER.address, world.owner.address))
    desk = await create(world.chain, world.owner, "AgentDesk", b"".join(words))
    await world.mint(world.usdc, desk, STOCK)
    return Desk(world, desk)
