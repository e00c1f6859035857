"""Compare a chain with a deployment's plan: contracts that exist, and settings still to change.

The operator gets the result as a report, before and after the deployment.

Source: ARCHITECTURE.md, "Contracts"; EIP-1014.
"""

from msgspec import Struct

from ....codecs.contracts.abi import decode_uint
from ....codecs.transactions import create2_address
from ....config import limits
from ....config.errors import ChainError, ConfigError
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ....crypto.secp256k1 import SigningKey
from ..port import Chain, EthCall
from .create2_factory import FACTORY
from .deploy import (
    Creation,
    DeployedContracts,
    DeploymentPlan,
    Provision,
    contracts_of,
    creations,
    provisions,
)
from .verification import is_code_of


class Rollout(Struct, frozen=True):
    """State of a deployment on a chain.

    Attributes:
        made: (planned contract, whether the contract exists on the chain), in the order of creation.
        changes: planned settings that the chain does not have yet, such as all those of a missing contract.
    """

    made: list[tuple[Creation, bool]]
    changes: list[Provision]

    @property
    def is_done(self) -> bool:
        """Whether every planned contract exists and every setting is as planned."""
        return not self.changes and all(is_there for _, is_there in self.made)

    @property
    def contracts(self) -> DeployedContracts:
        """Addresses of the planned contracts, whether they exist or not."""
        return contracts_of([creation for creation, _ in self.made])


def predicted(plan: DeploymentPlan) -> list[Creation]:
    """List the contracts with the addresses that the CREATE2 factory gives them, the same on every chain."""
    return creations(plan, lambda _, init_code: create2_address(FACTORY, plan.salt32, init_code))


async def look(chain: Chain, plan: DeploymentPlan) -> Rollout:
    """Compare a chain with a deployment's plan, without changing the chain.

    Raises:
        ConfigError: the chain lacks a contract on which addresses depend: the CREATE2 factory, WETH, Permit2,
            or a bridge's contract.
        ChainError: another contract's code is at a planned address.
    """
    needed = {
        "CREATE2 factory": FACTORY,
        "WETH": plan.weth,
        "Permit2": plan.permit2,
        "spoke pool": plan.spoke_pool,
        "token messenger": plan.token_messenger,
    }
    for name, address in needed.items():
        if address != ZERO_ADDRESS and not await chain.code(address):
            raise ConfigError(f"chain {chain.chain_id}", f"has no {name} at {to_checksum(address)}")
    made = [(creation, await _is_there(chain, creation)) for creation in predicted(plan)]
    there = {creation.address for creation, is_there in made if is_there}
    changes: list[Provision] = []  # filled below, within `rollout`, which gives the planned addresses
    rollout = Rollout(made, changes)
    # A contract that is not there answers nothing: all of its settings are still to be made.
    for provision in provisions(plan, rollout.contracts):
        if provision.contract in there:
            answer = await chain.call(EthCall(provision.contract, provision.question))
            if decode_uint(answer) == provision.wanted:
                continue
        changes.append(provision)
    return rollout


def policed(key: SigningKey, chain_id: int, plan: DeploymentPlan) -> PolicedRelayKey:
    """Restrict a key to transactions to the plan's contracts and the CREATE2 factory, with capped fees."""
    targets = {FACTORY, *(creation.address for creation in predicted(plan))}
    policy = TransactionPolicy(
        contracts=frozenset((chain_id, target) for target in targets),
        fee_max_wei=limits.RELAY_FEE_CAP_WEI,
        gas_max=limits.RELAY_GAS_MAX,
    )
    return PolicedRelayKey(key, policy)


async def _is_there(chain: Chain, creation: Creation) -> bool:
    code = await chain.code(creation.address)
    if code and not is_code_of(creation.name, code):
        raise ChainError(
            f"the code at {to_checksum(creation.address)} is not that of {creation.name}: nothing was done"
        )
    return bool(code)
