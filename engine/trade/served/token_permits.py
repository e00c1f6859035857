"""Checks of permits that a contract submits to the token itself, in EIP-2612 or DAI form. Pure.

    check_named     refuse a permit that names another owner or spender
    permit_calls    build calls to the token: a trial of the permit, and one of the same permit, forged
    granted         compute from the answers the amount that the spender may take by the permit
    is_over         whether the permit's own deadline has passed, so that the token would refuse it

    EIP-2612  224 bytes   owner, spender, value, deadline, v, r, s
    DAI       256 bytes   holder, spender, nonce, expiry (0 never), allowed, v, r, s

The trial alone tells whether a token takes a permit: domains have other members than those of EIP-2612,
functions for nonces other names.

Source: interop.md 1 and 2; contracts/lib/Permits.sol.
Choice: A token that accepts a permit with a forged signature takes no permits of its own: wrapped native
    tokens and others answer any call and do nothing.
"""

from collections.abc import Mapping

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES, selector
from ....codecs.contracts.permit import PermitForm
from ....config.errors import InvalidInput, Reverted
from ....config.limits import UINT256_MAX, VENUE_PERMIT_GAS_MAX
from ....crypto.addresses import ADDRESS_BYTES, to_checksum
from ...chain.port import EthCall

Answers = Mapping[str, bytes | Exception]
"""Name of a contract call -> answer of the chain, or the error with which the call failed."""

_EIP2612 = selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")
_DAI = selector("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)")
PERMIT_TRIALS = ("permit", "forged")
"""Names of the calls of `permit_calls`, in order."""


class Granted(Struct, frozen=True):
    """Amount of a token that a permit lets its spender take.

    Attributes:
        amount: raw units; None if the token refuses the permit.
        reason: reason for a refusal; else empty.
    """

    amount: int | None
    reason: str


def check_named(permit: bytes, owner: bytes, spender: bytes, whose: str, field: str) -> None:
    """Check that a permit of 224 or 256 bytes names the expected owner and spender.

    Args:
        whose: name of the owner's role in errors, such as `owner` or `maker`.
        field: member of the request that holds the permit, for errors.

    Raises:
        InvalidInput: the permit names another owner or spender; the error shows the address.
    """
    for at, role, wanted in ((0, whose, owner), (1, "spender", spender)):
        word = word_of(permit, at)
        if word != int.from_bytes(wanted, "big"):
            got = word.to_bytes(WORD_BYTES, "big")[WORD_BYTES - ADDRESS_BYTES :]
            raise InvalidInput(
                field=field, expected=f"the {role} {to_checksum(wanted)}", got=to_checksum(got)
            )


def permit_calls(permit: bytes, token: bytes, spender: bytes) -> dict[str, EthCall]:
    """Build the calls whose answers `granted` needs, by name: a trial of the permit, and of a forged one.

    The forged permit differs by a bit of its signature.
    """
    forged = permit[:-1] + bytes([permit[-1] ^ 1])
    name = _EIP2612 if _is_eip2612(permit) else _DAI
    return {
        trial: EthCall(token, name + shown, spender, gas_max=VENUE_PERMIT_GAS_MAX)
        for trial, shown in zip(PERMIT_TRIALS, (permit, forged), strict=True)
    }


def granted(permit: bytes, answers: Answers) -> Granted:
    """Compute from the answers to the calls of `permit_calls` the raw units that the spender may take."""
    tried = answers["permit"]
    refused = refusal(tried)
    if isinstance(tried, Reverted) and not tried.reason:  # as a contract without such a function does
        refused = "the token takes none, or refuses this one without a reason"
    elif not refused and not refusal(answers["forged"]):
        refused = "the token takes none"
    if refused:
        return Granted(None, f"the permit is refused: {refused}")
    if _is_eip2612(permit):
        return Granted(word_of(permit, 2), "")
    return Granted(UINT256_MAX if word_of(permit, 4) else 0, "")


def deadline_of(permit: bytes) -> int | None:
    """Last second in which a permit is valid, Unix seconds; None for a DAI permit without an expiry."""
    deadline = word_of(permit, 3)
    return deadline if deadline or _is_eip2612(permit) else None


def is_over(permit: bytes, now_s: int) -> bool:
    """Whether a permit's deadline is before `now_s`, Unix seconds."""
    deadline = deadline_of(permit)
    return deadline is not None and deadline < now_s


def refusal(answer: bytes | Exception) -> str:
    """Return the contract's reason to refuse a permit in a trial call; empty if the call succeeded.

    Args:
        answer: answer of the contract to the trial call.
    """
    if isinstance(answer, Reverted):
        return answer.reason or "without a reason"
    return str(answer) if isinstance(answer, Exception) else ""


def word_of(permit: bytes, at: int) -> int:
    """Return the 32-byte word number `at` of a permit, counted from 0, as an integer."""
    return int.from_bytes(permit[at * WORD_BYTES : (at + 1) * WORD_BYTES], "big")


def _is_eip2612(permit: bytes) -> bool:
    return len(permit) == PermitForm.EIP2612.value
