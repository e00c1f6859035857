"""Create cambist's contracts on a chain and set them up.

    creations   the contracts to create, in order, with the address that each will have
    provisions  the settings that follow: callers, relayers, caps, whether trading is open

With the CREATE2 factory, which most chains have, addresses follow from the code, its arguments and a salt: a
second run changes nothing. Without the factory, addresses follow from the owner's nonce: a second run creates
all contracts anew.

Source: ARCHITECTURE.md, "Contracts"; EIP-1014.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ....codecs.contracts import owner_calldata as owner
from ....codecs.contracts.abi import address_word, bytes_tail, decode_uint, encode
from ....codecs.transactions import contract_address, create2_address
from ....config.errors import ChainError
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.custody.transaction_policy import PolicedRelayKey
from ....crypto.secp256k1 import SigningKey
from ..artifacts import artifact
from ..port import Chain, EthCall
from ..transact import transact
from .create2_factory import FACTORY


class DeploymentPlan(Struct, frozen=True, kw_only=True):
    """Parameters of a deployment of all contracts on a chain.

    Attributes:
        owner: account that may pause contracts, set caps and appoint relayers; the account also sends the
            deployment's transactions.
        protocol: account that gets the protocol's share of surplus, and the fees of orders without a partner,
            until the owner names another account.
        relayers: accounts that may settle Delta orders.
        pauser: account that may only stop Delta and the Router; empty keeps the present pauser.
        caps: token -> most raw units that users may sell or spend by one call of the Router, or by all
            settlements of Delta in an hour; a token without a cap cannot be sold at all.
        is_open: whether trading is allowed.
        spoke_pool: Across's contract on the chain; zero if no order leaves the chain by Across.
        token_messenger: CCTP's contract on the chain; zero if no order leaves the chain by CCTP.
        salt32: salt of the CREATE2 addresses; another salt gives other addresses.
    """

    owner: bytes
    weth: bytes
    permit2: bytes
    protocol: bytes
    rfq_name: str
    delta_name: str
    delta_version: str
    relayers: tuple[bytes, ...] = ()
    pauser: bytes = b""
    caps: Mapping[bytes, int] = {}
    is_open: bool = False
    spoke_pool: bytes = ZERO_ADDRESS
    token_messenger: bytes = ZERO_ADDRESS
    salt32: bytes = bytes(32)


SETTLERS = ("SwapSettler", "TwapSettler", "ProductiveSettler", "ExternalSettler")
"""Contracts with the code of each kind of order, in the sequence of Delta's constructor."""


class DeployedContracts(Struct, frozen=True):
    """Addresses of one chain's contracts, 20 bytes each."""

    rfq: bytes
    fee_vault: bytes
    executor: bytes
    bridges: bytes
    swap_settler: bytes
    twap_settler: bytes
    productive_settler: bytes
    external_settler: bytes
    delta: bytes
    router: bytes
    arrivals: bytes


class Creation(Struct, frozen=True):
    """A contract to create.

    Attributes:
        init_code: creation code with the constructor's arguments.
        address: address that the contract will have, 20 bytes.
    """

    name: str
    init_code: bytes
    address: bytes


class Provision(Struct, frozen=True):
    """A setting of a deployed contract, and the call that makes the setting.

    Attributes:
        question: calldata that reads the setting.
        wanted: number that `question` returns once the setting is made.
        change: calldata of the transaction that makes the setting.
    """

    contract: bytes
    question: bytes
    wanted: int
    change: bytes


def creations(plan: DeploymentPlan, address_of: Callable[[int, bytes], bytes]) -> list[Creation]:
    """List the contracts to create, in order, with their addresses.

    Args:
        address_of: (position in the order of creation, from 0; creation code with arguments) -> the
            contract's address.
    """
    made: list[Creation] = []

    def create(name: str, arguments: bytes) -> bytes:
        init_code = artifact(name).init_code(arguments)
        made.append(Creation(name, init_code, address_of(len(made), init_code)))
        return address_word(made[-1].address)

    # The order binds: a constructor takes addresses of contracts before it, `contracts_of` reads the list as
    # the fields of DeployedContracts, and without the factory a contract's place decides its address.
    owner_word, weth, permit2, protocol = map(
        address_word, (plan.owner, plan.weth, plan.permit2, plan.protocol)
    )
    rfq = create("Rfq", encode(bytes_tail(plan.rfq_name.encode())))
    vault = create("FeeVault", owner_word)
    executor = create("RfqExecutor", rfq + owner_word)
    bridges = create("Bridges", address_word(plan.spoke_pool) + address_word(plan.token_messenger))
    places = executor + vault + weth + permit2
    names = bytes_tail(plan.delta_name.encode()), bytes_tail(plan.delta_version.encode())
    settlers = [create(name, encode(*names, places + bridges)) for name in SETTLERS]
    delta = create("Delta", encode(*names, places + bridges, protocol, owner_word, *settlers))
    create("Router", places + protocol + owner_word)
    create("Arrivals", delta + executor + weth)
    return made


def contracts_of(made: list[Creation]) -> DeployedContracts:
    """Collect the addresses of all contracts from `made`, which has to be in the order of `creations`."""
    return DeployedContracts(*(creation.address for creation in made))


def provisions(plan: DeploymentPlan, at: DeployedContracts) -> Iterator[Provision]:
    """Yield the settings to make on the contracts, in order; caps are set before trading is allowed."""
    for user in (at.delta, at.router, at.arrivals):
        yield Provision(at.executor, owner.is_caller(user), 1, owner.set_caller(user, allowed=True))
    for user in (at.delta, at.router):
        yield Provision(at.fee_vault, owner.is_collector(user), 1, owner.set_collector(user, allowed=True))
    for relayer in plan.relayers:
        yield Provision(at.delta, owner.is_relayer(relayer), 1, owner.set_relayer(relayer, allowed=True))
    for railed in (at.delta, at.router):
        if plan.pauser:
            wanted = int.from_bytes(plan.pauser, "big")
            yield Provision(railed, owner.PAUSER, wanted, owner.set_pauser(plan.pauser))
        for token, cap in plan.caps.items():
            yield Provision(railed, owner.cap_of(token), cap, owner.set_cap(token, cap))
        paused = not plan.is_open
        yield Provision(railed, owner.IS_PAUSED, int(paused), owner.set_paused(paused=paused))


async def planned(chain: Chain, plan: DeploymentPlan) -> list[Creation]:
    """List the contracts to create on a chain, with their addresses.

    The addresses follow from CREATE2 if the chain has the factory, else from the owner's next nonces.
    """
    has_factory = bool(await chain.code(FACTORY))
    nonce = await chain.nonce(plan.owner)

    def address_of(number: int, init_code: bytes) -> bytes:
        if has_factory:
            return create2_address(FACTORY, plan.salt32, init_code)
        return contract_address(plan.owner, nonce + number)

    return creations(plan, address_of)


async def deploy(
    chain: Chain,
    key: SigningKey | PolicedRelayKey,
    plan: DeploymentPlan,
    say: Callable[[str], None] = lambda _: None,
    *,
    gas: int = 0,
) -> DeployedContracts:
    """Create the missing contracts on a chain, and change the settings that differ from the plan.

    Args:
        key: the owner's key; its account pays.
        say: called with a line about each step, for people.
        gas: gas limit of each transaction; 0 for an estimate.

    Raises:
        ChainError: `key` is not the owner's, or a step failed. With the CREATE2 factory, another run repeats
            no step that succeeded.
    """
    if key.address != plan.owner:
        raise ChainError(f"the owner {to_checksum(plan.owner)} deploys, not {to_checksum(key.address)}")
    has_factory = bool(await chain.code(FACTORY))
    made = await planned(chain, plan)
    # All creations in order, and no other transaction before the last: without the factory, the planned
    # addresses are those of the owner's next nonces.
    for creation in made:
        if await chain.code(creation.address):
            say(f"{creation.name} is at {to_checksum(creation.address)}")
            continue
        to, prefix = (FACTORY, plan.salt32) if has_factory else (b"", b"")
        await transact(chain, key, to, prefix + creation.init_code, gas=gas)
        # Without the factory, another transaction of the owner meanwhile shifts the nonces and the addresses.
        if not await chain.code(creation.address):
            raise ChainError(f"{creation.name} is not at {to_checksum(creation.address)}, where it belongs")
        say(f"{creation.name} created at {to_checksum(creation.address)}")
    at = contracts_of(made)
    for provision in provisions(plan, at):
        answer = await chain.call(EthCall(provision.contract, provision.question))
        if decode_uint(answer) != provision.wanted:
            await transact(chain, key, provision.contract, provision.change, gas=gas)
    say("callers, relayers, pauser, caps and pause are as planned")
    return at


async def create(
    chain: Chain,
    key: SigningKey | PolicedRelayKey,
    name: str,
    arguments: bytes = b"",
    salt32: bytes = bytes(32),
    *,
    gas: int = 0,
) -> bytes:
    """Create a contract by the CREATE2 factory, unless it exists, and return its address.

    Args:
        name: name of the compiled contract.
        arguments: encoded arguments of the constructor.
        salt32: salt of the CREATE2 address; another salt gives another address.
        gas: gas limit of the transaction; 0 for an estimate.

    Raises:
        ChainError: the transaction failed, or the chain has no CREATE2 factory.
    """
    address = factory_address(name, arguments, salt32)
    if not await chain.code(address):
        await transact(chain, key, FACTORY, salt32 + artifact(name).init_code(arguments), gas=gas)
        # A transaction to an address without code succeeds and creates nothing.
        if not await chain.code(address):
            raise ChainError(f"{name} was not created: the chain has no factory at {to_checksum(FACTORY)}")
    return address


def factory_address(name: str, arguments: bytes = b"", salt32: bytes = bytes(32)) -> bytes:
    """Address of a contract created by the CREATE2 factory (see `create`), the same on every chain."""
    return create2_address(FACTORY, salt32, artifact(name).init_code(arguments))
