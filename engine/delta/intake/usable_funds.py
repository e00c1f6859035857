"""What the Delta contract could take of an account now: of each token the smaller of balance and allowance.

Source: interop.md 3, fillablebalance; engine/chain/holdings.
"""

from collections.abc import Sequence

from ....codecs.trading_token import NATIVE_TOKEN
from ...chain.holdings import HoldingQuestion, holdings
from ...served.served_chain import ServedChain


async def usable_of(place: ServedChain, user: bytes, tokens: Sequence[bytes]) -> dict[bytes, int]:
    """Token -> raw units, all of one block; 0 of a token whose contract does not tell.

    Args:
        tokens: 20 bytes each; of the native one the balance counts alone.

    Raises:
        ChainError: nobody answers.
    """
    others = [token for token in tokens if token != NATIVE_TOKEN]
    told = await holdings(place.chain, [HoldingQuestion(token, user, place.delta) for token in others])
    usable = {
        token: 0 if found is None else found.usable for token, found in zip(others, told.found, strict=True)
    }
    if NATIVE_TOKEN in tokens:
        usable[NATIVE_TOKEN] = await place.chain.balance(user, told.block_hash)
    return usable
