"""Allowances of a maker's account for the RFQ contract: given before the maker quotes, taken back to stop.

    steps     balance and allowance of each token -> the transactions that are missing
    perform   each transaction is simulated, signed and mined, one after the other

The key signs calls to the listed tokens alone, with a capped fee.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from ....codecs.amounts import format_units
from ....codecs.contracts.abi import decode_uint, selector
from ....codecs.contracts.calldata import allowance, approve, balance_of
from ....config import limits
from ....config.errors import ChainError
from ....crypto.addresses import to_checksum
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ....crypto.secp256k1 import SigningKey
from ...chain.port import Chain, EthCall, Receipt
from ...chain.transact import transact

_DEPOSIT = selector("deposit()")
_ENOUGH = 2**95  # raw units; some tokens, such as UNI and COMP, keep 96 bits of the largest allowance


class ApprovedToken(Struct, frozen=True):
    """A token that a maker sells, with the amount to wrap first.

    Attributes:
        address: 20 bytes.
        wrap_wei: wei of the native token that are wrapped into this token; 0 for none.
    """

    name: str
    address: bytes
    decimals: int
    wrap_wei: int = 0


class ApprovalStep(Struct, frozen=True):
    """A transaction of the maker's account.

    Attributes:
        text: what the transaction does, for the operator.
        call: the contract call that the transaction makes.
    """

    text: str
    call: EthCall


async def steps(
    chain: Chain, account: bytes, rfq: bytes, tokens: Sequence[ApprovedToken], *, revoke: bool = False
) -> tuple[list[str], list[ApprovalStep]]:
    """List a maker's balances and allowances, and the transactions that the maker still has to send.

    Args:
        account, rfq: addresses of the account that holds the funds and of the RFQ contract, 20 bytes each.
        revoke: whether allowances are taken back instead of given.

    Returns:
        (a line for each token, the missing transactions).

    Raises:
        ChainError: a token does not answer, or the account has too few native tokens to wrap.
    """
    lines, missing = [], []
    wrapped = sum(token.wrap_wei for token in tokens)
    if wrapped and await chain.balance(account) <= wrapped:
        raise ChainError(f"{to_checksum(account)} has too little to wrap {wrapped} wei and pay for gas")
    for token in tokens:
        has, allowed = await _numbers(chain, token, account, rfq)
        is_short = allowed < max(_ENOUGH, has)
        state = f"allowance {allowed} units" if is_short else "approved"
        lines.append(f"{token.name}: {format_units(has, token.decimals)}, {state}")
        if token.wrap_wei:
            call = EthCall(token.address, _DEPOSIT, account, token.wrap_wei)
            missing.append(ApprovalStep(f"wrap {format_units(token.wrap_wei, 18)} into {token.name}", call))
        if allowed and (revoke or is_short):  # some tokens change an allowance to and from zero alone
            call = EthCall(token.address, approve(rfq, 0), account)
            missing.append(ApprovalStep(f"revoke the allowance of {token.name}", call))
        if is_short and not revoke:
            call = EthCall(token.address, approve(rfq, limits.UINT256_MAX), account)
            missing.append(ApprovalStep(f"approve any amount of {token.name}", call))
    return lines, missing


async def perform(
    chain: Chain, key: SigningKey, plan: Sequence[ApprovalStep]
) -> AsyncIterator[tuple[ApprovalStep, Receipt]]:
    """Send the transactions one after the other, and yield each with its receipt.

    Raises:
        ChainError: a transaction would revert, was refused, or may still be mined.
    """
    for step in plan:
        call = step.call
        policy = TransactionPolicy(
            contracts=frozenset({(chain.chain_id, call.to)}),
            fee_max_wei=limits.RELAY_FEE_CAP_WEI,
            gas_max=limits.RELAY_GAS_MAX,
            value_max_wei=call.value_wei,
        )
        policed = PolicedRelayKey(key, policy)
        yield step, await transact(chain, policed, call.to, call.data, value_wei=call.value_wei)


def wrapped_amounts(wished: Mapping[str, int], tokens: Mapping[str, ApprovedToken]) -> list[ApprovedToken]:
    """Return a maker's tokens, each with the wei to wrap into the token.

    Args:
        wished: name of a token in `tokens` -> wei to wrap; a token without an entry gets 0.
    """
    return [
        ApprovedToken(token.name, token.address, token.decimals, wished.get(name, 0))
        for name, token in tokens.items()
    ]


async def _numbers(chain: Chain, token: ApprovedToken, account: bytes, rfq: bytes) -> tuple[int, int]:
    answers = await chain.call_many(
        [EthCall(token.address, balance_of(account)), EthCall(token.address, allowance(account, rfq))]
    )
    for answer in answers:
        if isinstance(answer, Exception) or not answer:
            raise ChainError(f"{token.name}: no token at {to_checksum(token.address)}")
    has, allowed = (decode_uint(answer) for answer in answers if isinstance(answer, bytes))
    return has, allowed
