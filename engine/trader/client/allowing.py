"""Allowances for the contract that takes a trade's source token: an approval on chain, or a permit within the
trade; `trader` gives them.
"""

from enum import Enum

from msgspec import Struct

from ....config.errors import ChainError
from ....crypto.addresses import to_checksum
from ...chain.holdings import HoldingQuestion, holdings
from ...chain.port import Chain
from .terms import TradedToken, amount_text


class Allowing(Enum):
    """The way in which a trader allows the spender, the contract of the trade, to take the source token."""

    EXACT = "approve the exact amount"
    MOST = "approve any amount"
    PERMIT = "sign a permit"

    def approves(self, missing: "MissingAllowance | None") -> bool:
        """Whether an approval transaction must be sent: an allowance is missing, and no permit is signed in
        its place."""
        return missing is not None and self is not Allowing.PERMIT


class MissingAllowance(Struct, frozen=True):
    """An allowance that a trade needs and the spender lacks.

    Attributes:
        token, spender: 20 bytes each.
        amount: raw units that the trade takes.
        allowed: raw units that the spender may take already.
    """

    token: bytes
    spender: bytes
    amount: int
    allowed: int


class Held(Struct, frozen=True):
    """An account's balance of a token and its allowance for a spender on chain, before a trade.

    Attributes:
        owner, spender: 20 bytes each.
        balance, allowance: raw units; the native token needs no allowance.
    """

    token: TradedToken
    owner: bytes
    spender: bytes
    balance: int
    allowance: int

    def missing(self, amount: int) -> MissingAllowance | None:
        """The allowance that a trade of `amount` raw units needs and lacks; None if it lacks none."""
        if self.token.is_native or self.allowance >= amount:
            return None
        return MissingAllowance(self.token.address, self.spender, amount, self.allowance)

    def check_balance(self, needed: int) -> None:
        """Check that the balance covers the raw units that a trade needs.

        Raises:
            ChainError: the balance is too low.
        """
        if self.balance < needed:
            raise ChainError(
                f"{to_checksum(self.owner)} has {amount_text(self.balance, self.token)}, "
                f"and {amount_text(needed, self.token)} is needed"
            )


async def held(chain: Chain, token: TradedToken, owner: bytes, spender: bytes) -> Held:
    """The owner's balance of a token and its allowance for the spender; the native token's allowance is 0.

    Raises:
        ChainError: `token` is no token contract.
    """
    if token.is_native:
        return Held(token, owner, spender, await chain.balance(owner), 0)
    # At the latest block: an approval that was given a moment ago is not given, and paid for, once more.
    (holding,) = (await holdings(chain, [HoldingQuestion(token.address, owner, spender)])).found
    if holding is None:
        raise ChainError(f"{to_checksum(token.address)} has no balanceOf: it is no token")
    return Held(token, owner, spender, holding.balance, holding.allowance)
