"""Whether an owner has signed a digest: its key, its contract, or a call instead of a signature. Pure.

    read_signature   text -> what the key alone proves, or the question that the chain has to answer
    signature_call   that question: EIP-1271 at the owner, or its pre-signature at the Delta contract
    signature_state  the answer: SIGNED, AWAITED (a contract that may still sign by a call), or a refusal

A key's own signature counts first, also where the account has code, as the contract has it
(contracts/lib/Signatures.sol).

Source: document 1, "Authentication"; interop.md 2; choices.md 33.
Choice: the signature of a key is kept in its compact form, that of a contract as it came.
Choice: an empty signature is awaited of contracts only: of a key's account it is refused, unless that has
    signed the order by a call already.
"""

from enum import Enum

from msgspec import Struct

from ....codecs.delta_calldata import is_pre_signed
from ....config.errors import InvalidSignature
from ....config.limits import VENUE_SIGNATURE_BYTES_MAX, VENUE_SIGNATURE_GAS_MAX
from ....crypto.addresses import to_checksum
from ....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from ....crypto.secp256k1 import recover_address
from ....crypto.signatures import parse_signature, parse_signature_text, to_compact64
from ...chain.port import Call

_KEY_LENGTHS = (64, 65)
_WORD_BYTES = 32
_NOT_DEPLOYED = "there is no contract at the owner; one that is not deployed yet cannot sign"


class SignatureState(Enum):
    """What a signature is worth."""

    SIGNED = "signed"
    AWAITED = "awaited"


class OwnerSignature(Struct, frozen=True):
    """A signature, held against its digest.

    Attributes:
        owner: 20 bytes.
        digest32: what was to be signed.
        kept: as it is stored, and given to the contract.
        is_by_key: the owner's key made it; else the chain is asked.
        fault: why it is not the key's.
        kind: the error that refuses it.
    """

    owner: bytes
    digest32: bytes
    kept: bytes
    is_by_key: bool
    fault: str
    kind: type[InvalidSignature]


def read_signature(
    text: str, digest32: bytes, owner: bytes, kind: type[InvalidSignature] = InvalidSignature
) -> OwnerSignature:
    """A signature of a request.

    Args:
        text: `0x` and hexadecimal digits: 64 or 65 bytes of a key, any of a contract, none for a
            pre-signature.

    Raises:
        InvalidSignature: `kind`; it is not hexadecimal, or longer than any is taken.
    """
    try:
        raw = parse_signature_text(text)
    except InvalidSignature as error:
        raise kind(_reason(error)) from None
    if len(raw) > VENUE_SIGNATURE_BYTES_MAX:
        raise kind(
            field="signature", expected=f"at most {VENUE_SIGNATURE_BYTES_MAX} bytes", got=f"{len(raw)} bytes"
        )
    if len(raw) not in _KEY_LENGTHS:
        fault = "it is empty" if not raw else f"a key's has 64 or 65 bytes, this one has {len(raw)}"
        return OwnerSignature(owner, digest32, raw, is_by_key=False, fault=fault, kind=kind)
    try:
        rs64, recovery_id = parse_signature(raw)
        signer = recover_address(digest32, rs64, recovery_id)
    except InvalidSignature as error:
        return OwnerSignature(owner, digest32, raw, is_by_key=False, fault=_reason(error), kind=kind)
    if signer == owner:
        kept = to_compact64(rs64, recovery_id)
        return OwnerSignature(owner, digest32, kept, is_by_key=True, fault="", kind=kind)
    fault = f"{to_checksum(signer)} signed this, not the owner {to_checksum(owner)}"
    return OwnerSignature(owner, digest32, raw, is_by_key=False, fault=fault, kind=kind)


def signature_call(signature: OwnerSignature, delta: bytes) -> Call | None:
    """What the chain is asked; None where the key alone proves it."""
    if signature.is_by_key:
        return None
    owner, digest32 = signature.owner, signature.digest32
    if not signature.kept:
        return Call(delta, is_pre_signed(owner, digest32))
    data = is_valid_signature_calldata(digest32, signature.kept)
    return Call(owner, data, delta, gas_max=VENUE_SIGNATURE_GAS_MAX)


def signature_state(
    signature: OwnerSignature,
    answer: bytes | Exception | None,
    *,
    has_code: bool,
) -> SignatureState:
    """What the chain's answer makes of a signature.

    Args:
        answer: to `signature_call`, at the block at which `has_code` says that the owner is a contract.

    Raises:
        InvalidSignature: it is nobody's, or not the owner's.
    """
    if signature.is_by_key:
        return SignatureState.SIGNED
    if not signature.kept:
        if isinstance(answer, bytes) and any(answer[:_WORD_BYTES]):
            return SignatureState.SIGNED
        if has_code:
            return SignatureState.AWAITED
    elif has_code:
        if isinstance(answer, bytes) and is_magic_answer(answer):
            return SignatureState.SIGNED
        raise signature.kind(f"{signature.fault}, and the owner's contract does not accept it")
    raise signature.kind(f"{signature.fault}; {_NOT_DEPLOYED}")


def _reason(error: InvalidSignature) -> str:
    return error.detail.removeprefix(f"{error.message}: ")
