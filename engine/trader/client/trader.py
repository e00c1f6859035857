"""A key's account on one chain, and the steps of every trade: approval or permit, clock, transaction.

Each transaction is signed with a key whose policy allows one contract, a capped fee and the named value only.
"""

import secrets
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ....codecs.contracts.calldata import approve
from ....codecs.eip712_orders.swap_consent import SWAP_CONSENT, SwapConsent, consent_separator
from ....config import limits
from ....config.errors import ChainError, PolicyError, Reverted
from ....config.timeouts import RECENT_BLOCK_S
from ....crypto.addresses import to_checksum
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_65
from ...chain.port import Chain, EthCall, Receipt
from ...chain.transact import send_step
from .allowing import Allowing, MissingAllowance
from .client import VenueClient
from .permits import (
    FORMS,
    PermitWish,
    accepted,
    is_unlimited,
    permit_bases,
    permit_questions,
    sign_permit,
    trial_calls,
)

_RANDOM_BYTES = 32
_FALSE = bytes(32)


class Trader(Struct, frozen=True, kw_only=True):
    """A key's account on a chain, with the functions and settings that its trades need.

    Attributes:
        wall_s: returns the time of the wall clock, Unix seconds.
        tell: receives lines of progress, such as a transaction's hash before the wait for its receipt.
        random32: returns 32 new random bytes at each call.
        allowing: the way in which a trade gives a missing allowance to the spender.
    """

    chain: Chain
    key: SigningKey
    wall_s: Callable[[], int]
    tell: Callable[[str], None]
    random32: Callable[[], bytes] = partial(secrets.token_bytes, _RANDOM_BYTES)
    allowing: Allowing = Allowing.EXACT

    @property
    def account(self) -> str:
        """The key's address in its checksum spelling."""
        return to_checksum(self.key.address)

    def check_chain(self, chain_id: int) -> None:
        """Check that the chain of a trade is the trader's.

        Raises:
            PolicyError: the two chains differ.
        """
        if chain_id != self.chain.chain_id:
            raise PolicyError(f"the wish is of chain {chain_id}, the trader of chain {self.chain.chain_id}")

    async def clock_s(self) -> int:
        """The time from which deadlines count, Unix seconds: the later of the trader's clock and the
        chain's."""
        header = await self.chain.recent_block(RECENT_BLOCK_S)
        return max(self.wall_s(), header.time_s)

    async def approve(self, missing: MissingAllowance | None) -> None:
        """Approve a missing allowance, unless a permit replaces it; an insufficient allowance is set to zero
        first if the token requires that.

        Raises:
            StepFailedError: the approval failed on chain, or may still be mined.
            ChainError: the token refuses the approval.
        """
        if missing is None or not self.allowing.approves(missing):
            return
        wanted = limits.UINT256_MAX if self.allowing is Allowing.MOST else missing.amount
        call = self._approval(missing, wanted)
        try:
            await self._check_accepted(call)
        except Reverted:
            if not missing.allowed:
                raise
            await self.send("approval", self._approval(missing, 0), missing.token)
            await self._check_accepted(call)
        await self.send("approval", call, missing.token)

    async def permit(self, missing: MissingAllowance | None, deadline: int) -> bytes:
        """Sign the permit, 224 or 256 bytes, that replaces a missing allowance; empty if not needed.

        The token has accepted the permit in a trial. A permit of DAI's kind allows any amount; it is signed
        only if the token takes no permit of the exact amount.

        Raises:
            ChainError: the token has no permits, its signing domain is not recognised, or it refuses each
                permit.
        """
        if missing is None or self.allowing is not Allowing.PERMIT:
            return b""
        self.tell("signing a permit")
        token, spender = missing.token, missing.spender
        # The latest block, one for all questions: a permit that was used a moment ago has used its number.
        header = await self.chain.block()
        at = None if header is None else header.hash
        questions = permit_questions(token, self.key.address)
        told = dict(zip(questions, await self.chain.call_many([*questions.values()], at), strict=True))
        bases = permit_bases(told, self.chain.chain_id, token)
        wish = PermitWish(token, spender, missing.amount, deadline)
        reasons = []
        for form in FORMS:
            permits = [sign_permit(basis, self.key, wish, form) for basis in bases]
            answers = await self.chain.call_many(trial_calls(permits, token, spender), at)
            permit, reason = accepted(permits, answers)
            if permit:
                if is_unlimited(permit):
                    self.tell("the token's permits allow any amount")
                return permit
            reasons.append(reason)
        raise ChainError(f"{to_checksum(token)}: {reasons[0]}: use an approval in place of --permit")

    def consent(self, consent: SwapConsent, router: bytes) -> bytes:
        """Sign a consent to a Market swap, 65 bytes; it moves no tokens.

        Args:
            router: the trusted Router, 20 bytes.
        """
        separator = consent_separator(self.chain.chain_id, router)
        return to_65(*self.key.sign(SWAP_CONSENT.compiled.digest_for(separator)(consent)))

    async def send(
        self, step: str, call: EthCall, contract: bytes, *, value_max_wei: int = 0, gas: int = 0
    ) -> Receipt:
        """Send a transaction and wait until it is mined.

        Args:
            contract: 20 bytes, the trusted contract; the key signs a call to no other.
            value_max_wei: maximum native tokens of the call that the key's policy allows.
            gas: gas limit in units; 0 estimates it.

        Raises:
            StepFailedError: the transaction reverted, or may still be mined.
            ChainError: the transaction would revert, or the node refused it.
            PolicyError: the call is to another contract, or carries more than `value_max_wei`.
        """
        key = policed(self.key, self.chain.chain_id, contract, value_max_wei=value_max_wei)
        return await send_step(self.chain, key, step, call, self.tell, gas=gas)

    def _approval(self, missing: MissingAllowance, value: int) -> EthCall:
        return EthCall(missing.token, approve(missing.spender, value), self.key.address)

    async def _check_accepted(self, approval: EthCall) -> None:
        if await self.chain.call(approval) == _FALSE:
            raise ChainError("the token refuses the approval")


class VenueTrader:
    """Base class for the trades of one key on one chain through one venue.

    Args:
        trader: the key's account; its `allowing` says how the contract of the trade gets a missing allowance.
    """

    def __init__(self, trader: Trader, venue: VenueClient) -> None:
        self._trader = trader
        self._chain = trader.chain
        self._venue = venue
        self._tell = trader.tell


def policed(key: SigningKey, chain_id: int, *contracts: bytes, value_max_wei: int = 0) -> PolicedRelayKey:
    """Restrict a key to signing transactions that call the given contracts of a chain.

    The limits of relayed transactions on the fee and on gas apply too.

    Args:
        contracts: addresses, 20 bytes each.
        value_max_wei: maximum native tokens that a transaction may carry.
    """
    policy = TransactionPolicy(
        contracts=frozenset((chain_id, contract) for contract in contracts),
        fee_max_wei=limits.RELAY_FEE_CAP_WEI,
        gas_max=limits.RELAY_GAS_MAX,
        value_max_wei=value_max_wei,
    )
    return PolicedRelayKey(key, policy)
