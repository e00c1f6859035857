"""A key's account on one chain, and the acts that precede every trade: an approval or a permit, the clock, a
transaction.

Each act signs with a key whose policy allows one contract, a capped fee and the named value only.
"""

import secrets
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ...config import limits
from ...crypto.addresses import to_checksum
from ...crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ...crypto.secp256k1 import SigningKey
from ..chain.port import Chain, EthCall, Receipt
from .allowing import Allowing, MissingAllowance, approve_spender, signed_permit
from .sending import first_step

_RANDOM_BYTES = 32


class Trader(Struct, frozen=True, kw_only=True):
    """A key's account on a chain, and how it acts.

    Attributes:
        wall_s: the wall clock, Unix seconds.
        tell: receives a line of progress; of a transaction, its hash before the wait for it.
        random32: 32 random bytes, new ones at each call.
        allowing: how a spender is allowed to take tokens that it may not take yet.
    """

    chain: Chain
    key: SigningKey
    wall_s: Callable[[], int]
    tell: Callable[[str], None]
    random32: Callable[[], bytes] = partial(secrets.token_bytes, _RANDOM_BYTES)
    allowing: Allowing = Allowing.EXACT

    @property
    def account(self) -> str:
        """The key's address, with its checksum."""
        return to_checksum(self.key.address)

    async def clock_s(self) -> int:
        """The later of two clocks, the trader's and the chain's, Unix seconds."""
        header = await self.chain.block()
        return max(self.wall_s(), header.time_s if header else 0)

    def approves(self, missing: MissingAllowance | None) -> bool:
        """Whether an approval is sent, since an allowance is missing and no permit stands for it."""
        return missing is not None and self.allowing is not Allowing.PERMIT

    async def approve(self, missing: MissingAllowance | None) -> None:
        """Approve a missing allowance, unless a permit stands for it.

        Raises:
            StepFailedError: the approval failed on chain, or its end is not known.
            ChainError: the token refuses the approval.
        """
        if missing is None or self.allowing is Allowing.PERMIT:
            return
        key = policed(self.key, self.chain.chain_id, missing.token)
        any_amount = self.allowing is Allowing.MOST
        await approve_spender(self.chain, key, missing, any_amount=any_amount, tell=self.tell)

    async def permit(self, missing: MissingAllowance | None, deadline: int) -> bytes:
        """The permit, 224 bytes, that stands for a missing allowance; empty where none is signed.

        Raises:
            ChainError: the token has no EIP-2612 permits, or tells no domain that fits it.
        """
        if missing is None or self.allowing is not Allowing.PERMIT:
            return b""
        self.tell("signing a permit")
        return await signed_permit(self.chain, self.key, missing, deadline)

    async def send(self, step: str, call: EthCall, *, value_max_wei: int = 0, gas: int = 0) -> Receipt:
        """Send a transaction and wait until it is mined.

        Args:
            value_max_wei: the most native tokens that the key lets go with the call.
            gas: as it was estimated; 0 estimates it.

        Raises:
            StepFailedError: the transaction reverted, or its end is not known.
            ChainError: the transaction would be refused or was not taken.
        """
        key = policed(self.key, self.chain.chain_id, call.to, value_max_wei)
        return await first_step(self.chain, key, step, call, self.tell, gas=gas)


def policed(key: SigningKey, chain_id: int, target: bytes, value_max_wei: int = 0) -> PolicedRelayKey:
    """A key that signs transactions to one contract, which carry at most `value_max_wei`."""
    policy = TransactionPolicy(
        contracts=frozenset(((chain_id, target),)),
        fee_max_wei=limits.RELAY_FEE_CAP_WEI,
        gas_max=limits.RELAY_GAS_MAX,
        value_max_wei=value_max_wei,
    )
    return PolicedRelayKey(key, policy)
