"""What has to be so before anything is signed for a contract: its code is this release's, and it tells its
signing domain.

A venue names contracts and is not believed. Whoever pins an address by an option vouches for its code.

Source: EIP-712; contracts/lib/Eip712.sol.
"""

from ...codecs.contracts.abi import WORD_BYTES, selector
from ...config.errors import ChainError, Reverted, VenueError
from ...crypto.addresses import to_checksum
from ..chain.deploy.verification import is_code_of
from ..chain.port import Chain, EthCall

_DOMAIN_SEPARATOR = selector("DOMAIN_SEPARATOR()")


async def trusted_separator(
    chain: Chain, artifact: str, contract: bytes, option: str, *, is_pinned: bool
) -> bytes:
    """The separator of a contract's signing domain, as it tells it, once the contract is trusted: 32 bytes.

    Args:
        artifact: whose code it has to have.
        option: pins an address, for the error.
        is_pinned: it was; then its code is not looked at.

    Raises:
        VenueError: other code stands there.
        ChainError: it does not tell its domain.
    """
    if not is_pinned and not is_code_of(artifact, await chain.code(contract)):
        raise VenueError(
            f"the code at {to_checksum(contract)} on chain {chain.chain_id} is not that of this release's "
            f"{artifact}: {option} pins an address that you trust"
        )
    try:
        separator = await chain.call(EthCall(contract, _DOMAIN_SEPARATOR))
    except Reverted:
        separator = b""
    if len(separator) != WORD_BYTES:
        raise ChainError(f"{to_checksum(contract)} does not tell its signing domain: DOMAIN_SEPARATOR()")
    return separator
