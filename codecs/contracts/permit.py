"""Token permits attached to orders; the length of a permit's bytes alone determines its form.

Delta orders take six forms, the RFQ contract two; any other length is refused on Delta. A permit of 224 or
256 bytes is the ABI words of the token's own permit call. A permit of 96 or 192 bytes, for Permit2, ends with
a compact signature.

Source: interop.md sections 1 and 2; spec 1.3.
"""

from enum import Enum

from ...config.errors import InvalidInput
from ...config.limits import UINT256_MAX
from ...crypto.hexadecimal import parse_hex
from .abi import WORD_BYTES


class PermitForm(Enum):
    """Form of a token permit; each member's value is the length in bytes that identifies the form."""

    NONE = 0
    PERMIT2_EXISTING = 1  # an allowance that Permit2 already holds
    PERMIT2_TRANSFER = 96  # nonce (32) and compact signature (64)
    PERMIT2_ALLOWANCE = 192
    EIP2612 = 224
    DAI = 256


RFQ_FORMS = frozenset({PermitForm.EIP2612, PermitForm.DAI})
"""Permit forms that the RFQ contract applies; it ignores any other length (interop.md section 1)."""

_SPENDER_WORD = {PermitForm.EIP2612: 1, PermitForm.DAI: 1}


def parse_permit(text: object, field: str = "permit") -> bytes:
    """Parse a Delta order's permit from hexadecimal text; its length has to be that of a `PermitForm`.

    Args:
        text: 0x and an even number of hexadecimal digits.

    Raises:
        InvalidInput: not hexadecimal, or of no known length.
    """
    raw = parse_hex(text, field)
    permit_form(raw, field)
    return raw


def permit_form(raw: bytes, field: str = "permit") -> PermitForm:
    """Determine the form of a permit payload from its length.

    Raises:
        InvalidInput: no form has this length.
    """
    try:
        return PermitForm(len(raw))
    except ValueError:
        lengths = ", ".join(str(form.value) for form in PermitForm)
        raise InvalidInput(field=field, expected=f"{lengths} bytes", got=f"{len(raw)} bytes") from None


def permit_spender(raw: bytes) -> bytes | None:
    """Read the spender that a permit names; None if the permit's form states no spender.

    EIP-2612 and DAI-style payloads start with two ABI words: owner (holder) and spender.

    Raises:
        InvalidInput: no form has the length of `raw`.
    """
    word = _SPENDER_WORD.get(permit_form(raw))
    return None if word is None else raw[word * WORD_BYTES + 12 : (word + 1) * WORD_BYTES]


def rfq_permit_amount(raw: bytes, owner: bytes, spender: bytes) -> int:
    """Read from a permit of an RFQ order the amount that `spender` may take from `owner`.

    Args:
        raw: bytes of the permit.
        owner, spender: accounts of 20 bytes each.

    Returns:
        Raw units; 0 if the contract ignores the permit, or if the permit names another owner or spender.

    Not guaranteed: that the token accepts the permit.
    """
    words = [raw[at : at + WORD_BYTES] for at in range(0, len(raw), WORD_BYTES)]
    named = [account.rjust(WORD_BYTES, b"\0") for account in (owner, spender)]
    if len(raw) not in (PermitForm.EIP2612.value, PermitForm.DAI.value) or words[:2] != named:
        return 0
    if len(raw) == PermitForm.EIP2612.value:
        return int.from_bytes(words[2], "big")
    return UINT256_MAX if any(words[4]) else 0
