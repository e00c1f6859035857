"""Checks that a contract may take an owner's source tokens: by an allowance, or by a permit. Pure.

    permit, bytes     calls to the chain                            amount that may be taken
    none              allowance                                     the allowance
    224, 256          trials of the permit, the allowance           the greater of grant and allowance
    1, of Permit2     Permit2's allowance, the token's for Permit2  the smaller one
    192, of Permit2   the same, and a trial of the permit           the greater of grant and allowance
    96, of Permit2    a trial of the transfer, the allowance        the whole amount, or 0

A token refuses a permit that was used before, although the allowance from that permit is set. A refusal
therefore counts only if the allowance is too small. Nor does a permit take an allowance away: the contract
submits none that grants no more than the allowance (contracts/lib/Permits.sol).

Source: interop.md 2 (`permit` by byte length); spec 1.3.8 to 1.3.13, 1.25.34.
Choice: A permit names owner and spender and stays within Permit2's bounds of amount and time; else it is 400
    before the chain is asked.
Choice: A permit never lowers an allowance: of the grant of a permit and the present allowance the greater
    counts.
Choice: The length alone tells the form of a permit for Delta or the Router; a length of no form is refused.
    The spender of a permit is the contract that uses the permit. A permit beside `limitAmount`, or on a limit
    order or TWAP, is refused.
"""

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES, address_word, bytes_tail, encode, selector, uint_word
from ....codecs.contracts.calldata import allowance
from ....codecs.contracts.permit import PermitForm, permit_form
from ....config.errors import InsufficientAllowance, InvalidInput, ServiceUnavailable
from ....config.limits import VENUE_PERMIT_GAS_MAX
from ....crypto.addresses import to_checksum
from ...chain.port import EthCall
from .token_permits import Answers, check_named, granted, permit_calls, refusal, word_of

PERMIT2_OF = selector("permit2()")
_PERMIT2_ALLOWANCE = selector("allowance(address,address,address)")
_PERMIT2_PERMIT = selector("permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)")
_PERMIT2_TRANSFER = selector(
    "permitTransferFrom(((address,uint256),uint256,uint256),(address,uint256),address,bytes)"
)
_UINT160_MAX, _UINT48_MAX = (1 << 160) - 1, (1 << 48) - 1
_PERMIT2_FORMS = frozenset(
    {PermitForm.PERMIT2_EXISTING, PermitForm.PERMIT2_TRANSFER, PermitForm.PERMIT2_ALLOWANCE}
)


class Taking(Struct, frozen=True):
    """A planned transfer of an owner's tokens to a contract that settles an order or swap.

    Attributes:
        token: source token; not the native one.
        spender, permit2: addresses of the contract that settles and of Permit2, 20 bytes; `permit2` is empty
            if the permit is not for Permit2.
        whole: raw units that all settlements of the order or swap transfer together.
        part: raw units that the first settlement transfers.
        deadline: deadline in a signed Permit2 transfer, Unix seconds.
        held_name: description of the token in error messages.
        role: description of the spender in error messages, such as "the Delta contract".
        owner_field, permit_field: names of members of the request, for errors about the owner and the permit.
    """

    permit: bytes
    token: bytes
    owner: bytes
    spender: bytes
    permit2: bytes
    whole: int
    part: int
    deadline: int
    held_name: str = "srcToken"
    role: str = "the Delta contract"
    owner_field: str = "order.owner"
    permit_field: str = "order.permit"


class _Granted(Struct, frozen=True):
    """Raw units that a spender may take of an owner's token, and the reason why the amount is not larger."""

    amount: int
    reason: str


def needs_permit2(permit: bytes) -> bool:
    """Whether a permit is addressed to the Permit2 contract, not to the token itself."""
    return permit_form(permit) in _PERMIT2_FORMS


def check_words(permit: bytes, owner: bytes, spender: bytes, field: str = "order.permit") -> None:
    """Check that a permit names the owner and the spender, and that its values fit their integer types.

    Raises:
        InvalidInput: a value of the permit is wrong; the error names the value.
    """
    form = permit_form(permit, field)
    if form in (PermitForm.EIP2612, PermitForm.DAI):
        check_named(permit, owner, spender, "owner", field)
    elif form is PermitForm.PERMIT2_ALLOWANCE:
        bounds = ("amount", _UINT160_MAX), ("expiration", _UINT48_MAX), ("nonce", _UINT48_MAX)
        for at, (name, most) in enumerate(bounds):
            if word_of(permit, at) > most:
                raise InvalidInput(field=field, expected=f"{name} of at most {most}", got=word_of(permit, at))


def taking_calls(taking: Taking) -> dict[str, EthCall]:
    """Build the calls whose answers `check_taking` needs, by name: allowances, and a trial of the permit."""
    token, owner, spender = taking.token, taking.owner, taking.spender
    form = permit_form(taking.permit)
    if form not in _PERMIT2_FORMS:
        calls = {"allowance": EthCall(token, allowance(owner, spender))}
        return calls if form is PermitForm.NONE else calls | permit_calls(taking.permit, token, spender)
    calls = {"allowance for Permit2": EthCall(token, allowance(owner, taking.permit2))}
    if form is PermitForm.PERMIT2_TRANSFER:
        data = _transfer(taking)
        calls["permit"] = EthCall(taking.permit2, data, spender, gas_max=VENUE_PERMIT_GAS_MAX)
        return calls
    at_permit2 = b"".join(map(address_word, (owner, token, spender)))
    calls["allowance at Permit2"] = EthCall(taking.permit2, _PERMIT2_ALLOWANCE + at_permit2)
    if form is PermitForm.PERMIT2_ALLOWANCE:
        data = _single(taking)
        calls["permit"] = EthCall(taking.permit2, data, spender, gas_max=VENUE_PERMIT_GAS_MAX)
    return calls


def check_taking(taking: Taking, answers: Answers, *, now_s: int, has_part: bool) -> None:
    """Check that the spender may take the planned amount of the owner's token, by allowance or permit.

    Args:
        answers: answers to the calls of `taking_calls`.
        now_s: time of the block of the answers, Unix seconds.
        has_part: whether the owner's balance covers the first settlement. If not, a trial transfer fails in
            any case, and its failure does not count as a refusal of the permit.

    Raises:
        InsufficientAllowance: the spender may not take the amount; the error gives the reason why a permit
            does not count.
        ServiceUnavailable: the token or Permit2 does not answer.
    """
    form = permit_form(taking.permit)
    if form in _PERMIT2_FORMS:
        # First: Permit2 itself takes the tokens, and without this allowance no permit at Permit2 helps.
        for_permit2 = f"for Permit2 {to_checksum(taking.permit2)}"
        _check_at_least(_number(answers, "allowance for Permit2"), taking, for_permit2)
        if form is PermitForm.PERMIT2_TRANSFER:
            refused = refusal(answers["permit"])
            if refused and has_part:
                raise InsufficientAllowance(f"the permit is refused: {refused}", field=taking.permit_field)
            return
        granted = _at_permit2(taking, answers, now_s)
        way = "by the permit" if form is PermitForm.PERMIT2_ALLOWANCE else "at Permit2"
    else:
        granted = _by_token(taking, form, answers)
        way = "" if form is PermitForm.NONE else "by the permit"
    if granted.amount < taking.whole:
        for_spender = f"for {taking.role} {to_checksum(taking.spender)} {way}".strip()
        _check_at_least(granted.amount, taking, for_spender, granted.reason)


def is_signed(permit: bytes, answers: Answers) -> bool:
    """Whether the token, or Permit2, accepts a permit, so that its owner has signed it and not used it yet.

    A token that takes no permits may answer a call of `permit` all the same (WETH9 does): it does not count.
    """
    form = permit_form(permit)
    if form is PermitForm.NONE:
        return False
    if form in _PERMIT2_FORMS:
        return "permit" in answers and not refusal(answers["permit"])
    return granted(permit, answers).amount is not None


def _check_at_least(amount: int, taking: Taking, whom: str, reason: str = "") -> None:
    if amount < taking.whole:
        expected = f"at least {taking.whole} of {taking.held_name} {whom}"
        raise InsufficientAllowance(reason, field=taking.owner_field, expected=expected, got=amount)


def _by_token(taking: Taking, form: PermitForm, answers: Answers) -> _Granted:
    """Compute the amount that the token lets the spender take after the permit, if any, is applied."""
    allowed = _number(answers, "allowance")
    if form is PermitForm.NONE:
        return _Granted(allowed, "")
    found = granted(taking.permit, answers)
    return _Granted(max(allowed, found.amount or 0), found.reason)


def _at_permit2(taking: Taking, answers: Answers, now_s: int) -> _Granted:
    """Compute the amount that Permit2 lets the spender take after the permit, if any, is applied."""
    answer = answers["allowance at Permit2"]
    if isinstance(answer, Exception) or len(answer) < 2 * WORD_BYTES:
        raise ServiceUnavailable("Permit2 does not return its allowance")
    there = _within(word_of(answer, 0), word_of(answer, 1), now_s)
    if permit_form(taking.permit) is not PermitForm.PERMIT2_ALLOWANCE:
        return there
    refused = refusal(answers["permit"])
    if refused:
        return _Granted(there.amount, f"the permit is refused: {refused}")
    amount, expiration = word_of(taking.permit, 0), word_of(taking.permit, 1) or now_s
    return max(_within(amount, expiration, now_s), there, key=lambda found: found.amount)


def _within(amount: int, expiration: int, now_s: int) -> _Granted:
    if expiration < now_s:
        return _Granted(0, f"the allowance at Permit2 has expired at {expiration}")
    return _Granted(amount, "")


def _transfer(taking: Taking) -> bytes:
    """Encode the call with which the spender makes the signed transfer through Permit2."""
    words = (
        address_word(taking.token),
        uint_word(taking.whole),
        taking.permit[:WORD_BYTES],
        uint_word(taking.deadline),
        address_word(taking.spender),
        uint_word(taking.part),
        address_word(taking.owner),
    )
    return _PERMIT2_TRANSFER + encode(*words, bytes_tail(taking.permit[WORD_BYTES:]))


def _single(taking: Taking) -> bytes:
    """Encode the call with which the spender submits a 192-byte permit to the Permit2 contract."""
    amount, expiration, nonce, deadline = (
        taking.permit[at : at + WORD_BYTES] for at in range(0, 4 * WORD_BYTES, WORD_BYTES)
    )
    details = address_word(taking.token) + amount + expiration + nonce
    single = details + address_word(taking.spender) + deadline
    return _PERMIT2_PERMIT + encode(
        address_word(taking.owner), single, bytes_tail(taking.permit[4 * WORD_BYTES :])
    )


def _number(answers: Answers, name: str) -> int:
    answer = answers[name]
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        raise ServiceUnavailable("the source token does not return its allowance")
    return int.from_bytes(answer[:WORD_BYTES], "big")
