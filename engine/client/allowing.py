"""How a contract is allowed to take the source: an approval on chain, or a permit that goes with the trade.

An insufficient allowance is set to zero first where the token insists on that.
"""

from collections.abc import Callable
from enum import Enum

from ...codecs.contracts.calldata import approve
from ...config import limits
from ...config.errors import ChainError, Reverted
from ...crypto.addresses import to_checksum
from ...crypto.custody.transaction_policy import PolicedRelayKey
from ...crypto.secp256k1 import SigningKey
from ..chain.holdings import HoldingQuestion, holdings
from ..chain.port import Chain, EthCall
from .permits import permit_basis, permit_questions, sign_permit
from .sending import first_step
from .terms import TradedToken

_FALSE = bytes(32)


class Allowing(Enum):
    """How the spender is allowed to take the source."""

    EXACT = "approve the exact amount"
    MOST = "approve any amount"
    PERMIT = "sign a permit"


async def held(chain: Chain, token: TradedToken, owner: bytes, spender: bytes) -> tuple[int, int]:
    """(balance, allowance), in raw units; the native token needs no allowance.

    Raises:
        ChainError: it is no token.
    """
    if token.is_native:
        return await chain.balance(owner), 0
    (holding,) = (await holdings(chain, [HoldingQuestion(token.address, owner, spender)])).found
    if holding is None:
        raise ChainError(f"{to_checksum(token.address)} does not tell balances: it is no token")
    return holding.balance, holding.allowance


async def approve_spender(
    chain: Chain,
    key: PolicedRelayKey,
    token: bytes,
    spender: bytes,
    *,
    amount: int,
    allowance: int,
    any_amount: bool,
    tell: Callable[[str], None],
) -> None:
    """Let `spender` take `amount` of the key's tokens, or any amount.

    Args:
        allowance: what it may take already.

    Raises:
        StepFailedError: the approval failed on chain, or it is not known what became of it.
        ChainError: the token refuses it.
    """

    def approval(value: int) -> EthCall:
        return EthCall(token, approve(spender, value), key.address)

    wanted = approval(limits.UINT256_MAX if any_amount else amount)
    try:
        await _accepted(chain, wanted)
    except Reverted:
        if not allowance:
            raise
        await first_step(chain, key, "approval", approval(0), tell)
        await _accepted(chain, wanted)
    await first_step(chain, key, "approval", wanted, tell)


async def signed_permit(
    chain: Chain, key: SigningKey, token: bytes, spender: bytes, amount: int, deadline: int
) -> bytes:
    """224 bytes: `spender` may take `amount` of the key's tokens, once shown, until the deadline.

    Raises:
        ChainError: the token has no EIP-2612 permits, or of a domain that cannot be told.
    """
    answers = await chain.call_many(permit_questions(token, key.address))
    basis = permit_basis(answers, chain.chain_id, token)
    return sign_permit(basis, key, spender, amount, deadline)


async def _accepted(chain: Chain, approval: EthCall) -> None:
    if await chain.call(approval) == _FALSE:
        raise ChainError("the token refuses the approval")
