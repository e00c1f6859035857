"""Create, link and fund the contracts of two bridges on a development chain. Not for production.

    place_bridge    creates Across's pool, CCTP's transmitter and CCTP's messenger
    link_bridge     lets the messenger burn tokens for another chain, and mint tokens that are burned there
    approve_all     lets a contract take an account's tokens
    fund_relayer    gives tokens to a relayer, and lets the pool take the tokens

Plain transactions create the two CCTP contracts: their code holds the chain's domain, and yet their addresses
have to be the same on all chains of a devnet, like the addresses of the other contracts.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from ....codecs.contracts import calldata
from ....codecs.contracts.abi import address_word, decode_uint, selector, uint_word
from ....config import limits
from ....config.errors import ChainError
from ....crypto.keccak import keccak256
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import artifact
from ...chain.deploy.deploy import create
from ...chain.port import DevChain, EthCall
from ...chain.transact import DEV_GAS, transact

_ADD_MESSENGER = selector("addRemoteTokenMessenger(uint32,bytes32)")
_SET_LIMIT = selector("setMaxBurnAmountPerMessage(address,uint256)")
_LINK_PAIR = selector("linkTokenPair(address,uint32,bytes32)")
_MINT, _DEPOSIT = selector("mint(address,uint256)"), selector("deposit()")
_BURN_MAX = 10**30
_DOMAINS = 1_000


class BridgePlaces(Struct, frozen=True):
    """Addresses of the bridges' contracts on a chain, 20 bytes each, and the chain's CCTP domain."""

    domain: int
    spoke_pool: bytes
    transmitter: bytes
    messenger: bytes


class BridgeKeys(NamedTuple):
    """Keys of a devnet's bridges: Across's relayer, the owner of Across's pools, CCTP's attester."""

    relayer: SigningKey
    pool_owner: SigningKey
    attester: SigningKey


def bridge_keys(owner: SigningKey) -> BridgeKeys:
    """Derive the keys of a devnet's bridges from the key of its first account.

    Each derived key is the hash of the first account's key and the derived key's name. The accounts of
    derived keys have no other users, and therefore no other sender takes their nonces.
    """
    names = BridgeKeys._fields
    return BridgeKeys(*(SigningKey(keccak256(owner.secret32() + name.encode())) for name in names))


def devnet_domain(chain_id: int) -> int:
    """CCTP domain of a devnet's chain: the last three digits of its id."""
    return chain_id % _DOMAINS


async def place_bridge(
    chain: DevChain, deployer: SigningKey, keys: BridgeKeys, *, weth: bytes, domain: int
) -> BridgePlaces:
    """Create the bridges' contracts; `deployer` owns the messenger, and its account gets the fees of CCTP.

    Args:
        weth: the wrapped native token's address.
    """
    words = address_word(weth) + address_word(keys.pool_owner.address)
    pool = await create(chain, deployer, "DevSpokePool", words, gas=DEV_GAS)
    words = uint_word(domain) + address_word(keys.attester.address)
    transmitter = await _created(chain, deployer, "DevMessageTransmitter", words)
    words = address_word(transmitter) + 2 * address_word(deployer.address)
    messenger = await _created(chain, deployer, "DevTokenMessenger", words)
    return BridgePlaces(domain, pool, transmitter, messenger)


async def link_bridge(
    chain: DevChain,
    owner: SigningKey,
    messenger: bytes,
    remote: tuple[int, bytes],
    tokens: Sequence[tuple[bytes, bytes]],
) -> None:
    """Let a chain's messenger burn tokens for another chain, and mint the tokens that are burned there.

    Args:
        owner: key of the messenger's owner.
        messenger: the chain's own messenger.
        remote: the other chain's domain and messenger.
        tokens: address on this chain and on the other chain of each token.
    """

    async def call(data: bytes) -> None:
        await transact(chain, owner, messenger, data, gas=DEV_GAS)

    domain = uint_word(remote[0])
    await call(_ADD_MESSENGER + domain + address_word(remote[1]))
    for token, there in tokens:
        await call(_SET_LIMIT + address_word(token) + uint_word(_BURN_MAX))
        await call(_LINK_PAIR + address_word(token) + domain + address_word(there))


async def approve_all(chain: DevChain, key: SigningKey, spender: bytes, tokens: Iterable[bytes]) -> None:
    """Approve a contract for an account's tokens without limit; skip tokens that are approved already."""
    for token in tokens:
        allowed = decode_uint(await chain.call(EthCall(token, calldata.allowance(key.address, spender))))
        if allowed < limits.UINT256_MAX // 2:
            await transact(chain, key, token, calldata.approve(spender, limits.UINT256_MAX), gas=DEV_GAS)


async def fund_relayer(
    chain: DevChain, relayer: SigningKey, pool: bytes, weth: bytes, stock: Sequence[tuple[bytes, int]]
) -> None:
    """Give a relayer tokens, and let the pool take them.

    Args:
        weth: the wrapped native token, which the relayer gets for native tokens; anybody may mint the other
            tokens.
        stock: address and raw units of each token.
    """
    for token, amount in stock:
        if token == weth:
            await transact(chain, relayer, token, _DEPOSIT, value_wei=amount, gas=DEV_GAS)
        else:
            words = address_word(relayer.address) + uint_word(amount)
            await transact(chain, relayer, token, _MINT + words, gas=DEV_GAS)
    await approve_all(chain, relayer, pool, [token for token, _ in stock])


async def _created(chain: DevChain, deployer: SigningKey, name: str, words: bytes) -> bytes:
    receipt = await transact(chain, deployer, b"", artifact(name).init_code(words), gas=DEV_GAS)
    if receipt.contract is None:
        raise ChainError(f"{name} was not created")
    return receipt.contract
