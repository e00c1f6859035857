"""Initial state of a devnet: deployed contracts and tokens, and accounts with balances of each token.

Every address depends only on the mnemonic and the code: both chains have the same addresses at every start.
The state includes the contracts of two bridges; CCTP burns and mints USDC.

    account 0    owner of the contracts; receives the protocol's share of surplus
    account 1    relayer, which may settle Delta orders
    the others   no role
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.contracts import calldata
from ....codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from ....config import limits
from ....config.chains import DEVNET_CHAINS, ChainSettings
from ....crypto.addresses import to_checksum
from ....crypto.secp256k1 import SigningKey
from ...chain.deploy.address_book import DeployedChain, DeployedToken, chain_entry
from ...chain.deploy.deploy import DeploymentPlan, create, deploy
from ...chain.port import DevChain
from ...chain.transact import DEV_GAS, transact
from .bridge_places import BridgePlaces, bridge_keys, devnet_domain, link_bridge, place_bridge

ETHER = 10**18
BALANCE_WEI = 10_000 * ETHER
ROLES = ("owner, protocol", "relayer")
"""Roles of the first two accounts of a devnet, in order, as texts for display."""

_DEPOSIT, _MINT = selector("deposit()"), selector("mint(address,uint256)")
_WRAPPED_EACH = 100 * ETHER
_PURSE_WEI = 1_000_000 * ETHER  # the owner's balance during deployment


class DevToken(Struct, frozen=True):
    """Test token of a devnet, whose contract lets anyone mint.

    Attributes:
        each: whole tokens that each account of the devnet receives.
        contract: name of the compiled contract.
    """

    symbol: str
    name: str
    decimals: int
    each: int
    contract: str = "DevToken"


TOKENS = (
    DevToken("USDC", "USD Coin", 6, 1_000_000),
    DevToken("DAI", "Dai Stablecoin", 18, 1_000_000),
    DevToken("WBTC", "Wrapped BTC", 8, 100),
    DevToken("USDT", "Tether USD", 6, 1_000_000, "DevTokenWithoutReturn"),
)


async def furnish(chain: DevChain, keys: Sequence[SigningKey], settings: ChainSettings) -> DeployedChain:
    """Deploy contracts and tokens on an empty development chain, and fund the accounts.

    Args:
        keys: keys of the accounts: first the contracts' owner's, second the relayer's.
        settings: settings of the chain, which give the names of the contracts' EIP-712 domains.

    Returns:
        the addresses of the contracts and tokens.
    """
    owner, relayer = keys[:2]
    await chain.set_balance(owner.address, _PURSE_WEI)
    weth, permit2, multicall = [
        await create(chain, owner, name, gas=DEV_GAS) for name in ("DevWeth", "DevPermit2", "DevMulticall")
    ]
    tokens = {token: await _created(chain, owner, token) for token in TOKENS}
    usdc = tokens[TOKENS[0]]
    words = encode(address_word(usdc), bytes_tail(b"USDC Vault"), bytes_tail(b"vUSDC"))
    vault = await create(chain, owner, "DevVault", words, gas=DEV_GAS)
    # Two addresses of the bridges follow from the owner's nonce at this place: all chains have to make the
    # same number of the owner's transactions before, so that the addresses are the same.
    bridge = await _bridge(chain, owner, weth, usdc)
    plan = DeploymentPlan(
        owner=owner.address,
        weth=weth,
        permit2=permit2,
        protocol=owner.address,
        rfq_name=settings.rfq_domain_name,
        delta_name=settings.delta_domain_name,
        delta_version=settings.delta_domain_version,
        relayers=(relayer.address,),
        caps=dict.fromkeys((weth, vault, *tokens.values()), limits.UINT256_MAX),
        is_open=True,
        spoke_pool=bridge.spoke_pool,
        token_messenger=bridge.messenger,
    )
    at = await deploy(chain, owner, plan, gas=DEV_GAS)
    await _hand_out(chain, owner, [key.address for key in keys], weth, tokens)
    entries = {
        token.symbol: DeployedToken(to_checksum(address), token.decimals) for token, address in tokens.items()
    }
    return chain_entry(
        settings.name,
        at,
        wrappedNative=to_checksum(weth),
        permit2=to_checksum(permit2),
        multicall=to_checksum(multicall),
        vault=to_checksum(vault),
        spokePool=to_checksum(bridge.spoke_pool),
        tokenMessenger=to_checksum(bridge.messenger),
        messageTransmitter=to_checksum(bridge.transmitter),
        tokens={"WETH": DeployedToken(to_checksum(weth), 18), **entries},
    )


async def _bridge(chain: DevChain, owner: SigningKey, weth: bytes, usdc: bytes) -> BridgePlaces:
    """Create the bridges' contracts, and link them to the other chains of a devnet."""
    keys, domain = bridge_keys(owner), devnet_domain(chain.chain_id)
    bridge = await place_bridge(chain, owner, keys, weth=weth, domain=domain)
    for other in DEVNET_CHAINS:
        if other != chain.chain_id:  # where the contracts have the same addresses
            remote = devnet_domain(other), bridge.messenger
            await link_bridge(chain, owner, bridge.messenger, remote, [(usdc, usdc)])
    return bridge


async def _created(chain: DevChain, owner: SigningKey, token: DevToken) -> bytes:
    words = encode(
        bytes_tail(token.name.encode()), bytes_tail(token.symbol.encode()), uint_word(token.decimals)
    )
    return await create(chain, owner, token.contract, words, gas=DEV_GAS)


async def _hand_out(
    chain: DevChain,
    owner: SigningKey,
    accounts: list[bytes],
    weth: bytes,
    tokens: dict[DevToken, bytes],
) -> None:
    await transact(chain, owner, weth, _DEPOSIT, value_wei=_WRAPPED_EACH * len(accounts), gas=DEV_GAS)
    for account in accounts:
        await transact(chain, owner, weth, calldata.transfer(account, _WRAPPED_EACH), gas=DEV_GAS)
        for token, address in tokens.items():
            words = address_word(account) + uint_word(token.each * 10**token.decimals)
            await transact(chain, owner, address, _MINT + words, gas=DEV_GAS)
    for account in accounts:
        await chain.set_balance(account, BALANCE_WEI)
