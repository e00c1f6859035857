"""Checks of a user's balance and allowance for a swap: at a single recent block, before any maker signs.

The checks also tell what the user has shown: a permit that the token accepts is the user's consent to the
swap, an allowance is a call that only the user can have made, and a native balance shows nothing.

Source: spec 1.14.5, 1.25.34, 1.25.36.
"""

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES
from ....codecs.contracts.calldata import balance_of
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import InsufficientBalance, ServiceUnavailable
from ....config.limits import CHAIN_TOKEN_GAS_MAX
from ...chain.port import Chain, EthCall, Header
from ...host.admission.budgets import Stake
from ..served.asking import Permit2s, at_recent_block
from ..served.permit_proof import Taking, check_taking, check_words, is_signed, needs_permit2, taking_calls
from .ticket import SwapTicket


class ShownFunds(Struct, frozen=True):
    """Balance of a user, and the proof that its funds give for a swap.

    Attributes:
        stake: whether an allowance or a permit lets the Router take the tokens.
        balance: raw units of the source token that the user has.
    """

    stake: Stake
    balance: int


class SwapFunds(Struct, frozen=True):
    """Checks that users can pay for swaps on a chain.

    Args:
        router: the Router contract, which takes the user's tokens; 20 bytes.
    """

    chain: Chain
    router: bytes
    permit2s: Permit2s

    async def check(self, ticket: SwapTicket) -> ShownFunds:
        """Refuse a swap that its user cannot pay; return what the user's funds show.

        Raises:
            InsufficientBalance, InsufficientAllowance: the user's funds do not suffice.
            InvalidInput: the permit names another owner or spender, or a value in the permit is out of range.
            ServiceUnavailable: the token's contract or Permit2 does not answer.
            ChainError: no node answers.
        """
        if ticket.src_token == NATIVE_TOKEN:
            balance = await self.chain.balance(ticket.user)
            _check_balance(balance, ticket.src_amount)
            return ShownFunds(stake=Stake.NOTHING, balance=balance)
        check_words(ticket.permit, ticket.user, self.router, "permit")
        permit2 = b""
        if needs_permit2(ticket.permit):
            permit2 = await self.permit2s.of(self.chain, self.router, "permit")
        return await at_recent_block(self.chain, lambda header: self._check_token(ticket, permit2, header))

    async def _check_token(self, ticket: SwapTicket, permit2: bytes, header: Header) -> ShownFunds:
        taking = Taking(
            permit=ticket.permit,
            token=ticket.src_token,
            owner=ticket.user,
            spender=self.router,
            permit2=permit2,
            whole=ticket.src_amount,
            part=ticket.src_amount,
            deadline=ticket.deadline,
            role="the Market router",
            owner_field="userAddress",
            permit_field="permit",
        )
        balance = EthCall(ticket.src_token, balance_of(ticket.user), gas_max=CHAIN_TOKEN_GAS_MAX)
        calls = {"balance": balance} | taking_calls(taking)
        answers = dict(zip(calls, await self.chain.call_many([*calls.values()], header.hash), strict=True))
        answer = answers["balance"]
        if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
            raise ServiceUnavailable("the source token has no balance or allowance of the user")
        held = int.from_bytes(answer[:WORD_BYTES], "big")
        _check_balance(held, ticket.src_amount)
        check_taking(taking, answers, now_s=header.time_s, has_part=True)
        stake = Stake.CONSENT if is_signed(ticket.permit, answers) else Stake.ALLOWANCE
        return ShownFunds(stake=stake, balance=held)


def _check_balance(has: int, needed: int) -> None:
    if has < needed:
        raise InsufficientBalance(field="userAddress", expected=f"at least {needed} of srcToken", got=has)
