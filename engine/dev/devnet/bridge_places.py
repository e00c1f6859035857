"""Deploy, link and fund the dev bridges' contracts on a development chain. Not for production.

    place_bridge    pool, transmitter and messenger; the address of each depends on owner and nonce alone
    link_bridge     to the messenger of another chain, for the tokens that are burned and minted
    fund_relayer    tokens of a relayer, which allows the pool to take them

The two CCTP contracts are created by plain transactions: their code holds the chain's domain, and their
addresses are to be the same on all chains of a devnet.
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.contracts import calldata
from ....codecs.contracts.abi import address_word, selector, uint_word
from ....config import limits
from ....config.errors import ChainError
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import artifact
from ...chain.deploy.deploy import create
from ...chain.port import DevChain
from ...chain.transact import DEV_GAS, transact

_ADD_MESSENGER = selector("addRemoteTokenMessenger(uint32,bytes32)")
_SET_LIMIT = selector("setMaxBurnAmountPerMessage(address,uint256)")
_LINK_PAIR = selector("linkTokenPair(address,uint32,bytes32)")
_MINT, _DEPOSIT = selector("mint(address,uint256)"), selector("deposit()")
_BURN_MAX = 10**30


class BridgePlaces(Struct, frozen=True):
    """Addresses of the bridges' contracts on a chain, 20 bytes each, and the chain's CCTP domain."""

    domain: int
    spoke_pool: bytes
    transmitter: bytes
    messenger: bytes


async def place_bridge(
    chain: DevChain, owner: SigningKey, *, weth: bytes, attester: bytes, domain: int
) -> BridgePlaces:
    """Create the bridges' contracts, which `owner` controls; the owner's account gets the fees of CCTP.

    Args:
        weth: the wrapped native token's address.
        attester: address of the key that signs messages.
    """
    account = address_word(owner.address)
    pool = await create(chain, owner, "DevSpokePool", address_word(weth) + account, gas=DEV_GAS)
    words = uint_word(domain) + address_word(attester)
    transmitter = await _created(chain, owner, "DevMessageTransmitter", words)
    words = address_word(transmitter) + account + account
    return BridgePlaces(domain, pool, transmitter, await _created(chain, owner, "DevTokenMessenger", words))


async def link_bridge(
    chain: DevChain,
    owner: SigningKey,
    messenger: bytes,
    remote: BridgePlaces,
    tokens: Sequence[tuple[bytes, bytes]],
) -> None:
    """Let a chain's messenger burn tokens for another chain, and mint those that are burned there.

    Args:
        messenger: the chain's own messenger.
        remote: the other chain's contracts.
        tokens: address on this chain and on the other chain of each token.
    """

    async def call(data: bytes) -> None:
        await transact(chain, owner, messenger, data, gas=DEV_GAS)

    await call(_ADD_MESSENGER + uint_word(remote.domain) + address_word(remote.messenger))
    for token, there in tokens:
        await call(_SET_LIMIT + address_word(token) + uint_word(_BURN_MAX))
        await call(_LINK_PAIR + address_word(token) + uint_word(remote.domain) + address_word(there))


async def fund_relayer(
    chain: DevChain,
    relayer: SigningKey,
    pool: bytes,
    tokens: Sequence[tuple[bytes, int]],
    *,
    weth: tuple[bytes, int] = (b"", 0),
) -> None:
    """Give a relayer tokens that anybody may mint, and let the pool take them.

    Args:
        tokens: address and raw units of each token; its contract lets anybody mint.
        weth: the wrapped native token, and wei that the relayer's account wraps; none by default.
    """
    for token, amount in tokens:
        words = address_word(relayer.address) + uint_word(amount)
        await transact(chain, relayer, token, _MINT + words, gas=DEV_GAS)
    if weth[0]:
        await transact(chain, relayer, weth[0], _DEPOSIT, value_wei=weth[1], gas=DEV_GAS)
    for token, _ in [*tokens, weth]:
        if token:
            approval = calldata.approve(pool, limits.UINT256_MAX)
            await transact(chain, relayer, token, approval, gas=DEV_GAS)


async def _created(chain: DevChain, owner: SigningKey, name: str, words: bytes) -> bytes:
    receipt = await transact(chain, owner, b"", artifact(name).init_code(words), gas=DEV_GAS)
    if receipt.contract is None:
        raise ChainError(f"{name} was not created")
    return receipt.contract
