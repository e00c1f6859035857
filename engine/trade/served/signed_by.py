"""Checks that an owner has signed a digest: by its key, its contract, or a transaction instead. Pure.

    read_signature   parse a signature, and find whether the owner's key made it; if not, the chain decides
    check_signer     refuse an owner that is neither a contract nor able to sign by a transaction
    probe_call       build the call that deploys an owner's wallet in simulation and asks it (ERC-6492)
    signature_call   build the call to the chain: EIP-1271 at the owner, or the pre-signature at the settling
                     contract
    signature_state  judge the answer: SIGNED, AWAITED (a contract that may still sign), or an error

A signature by the owner's key counts first, even if the account has code, as in the contracts
(contracts/lib/Signatures.sol). For any other signature:

                            empty signature                     other signature
    Delta                   pre-signature; not made: AWAITED    EIP-1271; not accepted: an error
    `is_awaited` (OTC)      EIP-1271; not accepted: AWAITED     EIP-1271; not accepted: AWAITED

AWAITED is for contracts alone: an owner without code gets an error.

Source: spec 1.17.4, 1.23, 2.5.14; interop.md 1 and 2; choices.md#otc-orders,
    choices.md#signatures-and-permits.
Choice: A key's signature is stored in its compact form, a contract's as it came.
Choice: An empty signature of a Delta order stands for the owner's call on chain. Until the owner makes that
    call, a contract's order waits, and an order of a key's account is refused.
Choice: A key's signature has 65 or 64 bytes, a contract's any number up to a limit.
Choice: Of an ERC-6492 signature the inner one counts, and is stored. The venue deploys no wallet: the refusal
    of one that is not deployed yet names the factory that its owner has to call first.
Choice: An OTC order of a wallet that is not deployed yet is a DRAFT until it is, if a simulated deployment
    shows that the wallet accepts the signature (ERC-6492).
"""

from enum import Enum

from msgspec import Struct

from ....codecs.contracts.delta_calldata import is_pre_signed
from ....codecs.contracts.signature_probe import is_probe_yes, signature_probe
from ....codecs.eip712_orders.signing_names import OrderDigests
from ....config.errors import InvalidSignature, Reverted
from ....config.limits import VENUE_DEPLOY_GAS_MAX, VENUE_SIGNATURE_BYTES_MAX, VENUE_SIGNATURE_GAS_MAX
from ....crypto.addresses import to_checksum
from ....crypto.eip1271 import WrappedSignature, is_magic_answer, is_valid_signature_calldata, unwrapped
from ....crypto.secp256k1 import recover_address
from ....crypto.signatures import parse_signature, parse_signature_text, to_compact64
from ...chain.port import EthCall

_KEY_LENGTHS = (64, 65)
_WORD_BYTES = 32
_NOT_DEPLOYED = "the owner has no contract; a wallet that is not deployed yet cannot sign"
_DEPLOY = "deploy it first, by the call to {factory} that the signature holds, and send the same signature"


class SignatureState(Enum):
    """State of a signature: valid (SIGNED), or to be accepted later by the owner's contract (AWAITED)."""

    SIGNED = "signed"
    AWAITED = "awaited"


class OwnerSignature(Struct, frozen=True):
    """A signature compared with the owner's key; if the key did not make it, the chain has to confirm it.

    Attributes:
        owner: the account that has to sign, 20 bytes.
        digest32: the digest to be signed.
        kept: bytes of the signature as stored and passed to contracts; 64 bytes if the owner's key signed.
        is_by_key: whether the owner's key made the signature; if not, the chain must confirm it.
        fault: reason why the signature is not by the owner's key; empty if the key made the signature.
        kind: class of the error to raise if the signature is refused.
        is_awaited: whether a contract that rejects the signature now may accept it later (OTC orders).
        wrapped: call that deploys the owner's wallet, of an ERC-6492 signature; None for another one.
    """

    owner: bytes
    digest32: bytes
    kept: bytes
    is_by_key: bool
    fault: str
    kind: type[InvalidSignature]
    is_awaited: bool
    wrapped: WrappedSignature | None = None

    @property
    def is_pre_signature(self) -> bool:
        """Whether the signature is empty because the owner signs by a transaction on chain instead."""
        return not self.kept and not self.is_awaited


def read_signature(
    text: str,
    digest32: bytes,
    owner: bytes,
    kind: type[InvalidSignature] = InvalidSignature,
    *,
    is_awaited: bool = False,
    signing: OrderDigests | None = None,
) -> OwnerSignature:
    """Parse the signature in a request and compare it with the owner's key.

    Args:
        text: `0x` and hexadecimal digits; 64 or 65 bytes by a key, any number by a contract, none for a
            pre-signature.
        kind: class of the error for a refused signature.
        is_awaited: True for OTC orders: the owner's contract may accept the signature later, and an empty
            signature is no pre-signature (OTC orders have none).
        signing: other digests that the owner may have signed by mistake; used only if its key has not signed
            `digest32`.

    Raises:
        InvalidSignature: raised as `kind` if the text is not hexadecimal, is too long, or is the owner's
            signature over another domain, which the error names.
    """
    try:
        raw = parse_signature_text(text)
    except InvalidSignature as error:
        raise kind(_reason(error)) from None
    if len(raw) > VENUE_SIGNATURE_BYTES_MAX:
        raise kind(
            field="signature", expected=f"at most {VENUE_SIGNATURE_BYTES_MAX} bytes", got=f"{len(raw)} bytes"
        )
    wrapped = unwrapped(raw)
    raw = raw if wrapped is None else wrapped.signature
    kept, fault = _of_key(raw, digest32, owner)
    if signing is not None and not kept and (other := signing.other_of(raw, owner)):
        raise kind(f"the owner signed for the domain {other}; expected {signing.here}", field="signature")
    return OwnerSignature(
        owner=owner,
        digest32=digest32,
        kept=kept or raw,
        is_by_key=bool(kept),
        fault=fault,
        kind=kind,
        is_awaited=is_awaited,
        wrapped=wrapped,
    )


def signature_call(signature: OwnerSignature, asker: bytes) -> EthCall | None:
    """Build the contract call that confirms an owner's signature; None if the owner's key made the signature.

    Args:
        asker: the contract that settles the order, 20 bytes. It is the sender of a call to the owner's
            contract, and the target of a call that reads a pre-signature.
    """
    if signature.is_by_key:
        return None
    owner, digest32 = signature.owner, signature.digest32
    if signature.is_pre_signature:
        return EthCall(asker, is_pre_signed(owner, digest32))
    data = is_valid_signature_calldata(digest32, signature.kept)
    return EthCall(owner, data, asker, gas_max=VENUE_SIGNATURE_GAS_MAX)


def probe_call(signature: OwnerSignature) -> EthCall | None:
    """Build the call that deploys an owner's wallet in simulation and asks it; None without a wallet."""
    if signature.wrapped is None:
        return None
    code = signature_probe(signature.wrapped, signature.owner, signature.digest32)
    return EthCall(b"", code, gas_max=VENUE_DEPLOY_GAS_MAX)


def is_probed(answer: bytes | Exception) -> bool:
    """Whether the answer to `probe_call` says that the owner's wallet accepts the signature."""
    return isinstance(answer, Reverted) and is_probe_yes(answer.data)


def check_signer(signature: OwnerSignature, *, has_code: bool) -> None:
    """Check that the owner's key has signed, or that the owner can sign as a contract or by a transaction.

    Raises:
        InvalidSignature: the owner's key has not signed, and the owner can sign in no other way.
    """
    if not (signature.is_by_key or signature.is_pre_signature or has_code):
        raise _nobody(signature)


def signature_state(
    signature: OwnerSignature,
    answer: bytes | Exception | None,
    *,
    has_code: bool,
) -> SignatureState:
    """Judge by a contract's answer whether an owner has signed (SIGNED), or may still sign (AWAITED).

    Args:
        answer: answer to the call of `signature_call`; None without a call.
        has_code: whether the owner is a contract, at the block of the answer.

    Raises:
        InvalidSignature: the owner has not signed and cannot sign later.
    """
    if signature.is_by_key or _is_yes(signature, answer, has_code=has_code):
        return SignatureState.SIGNED
    if not has_code:
        raise _nobody(signature)
    if signature.is_pre_signature or signature.is_awaited:
        return SignatureState.AWAITED
    raise signature.kind(f"{signature.fault}, and the owner's contract does not accept it")


def _of_key(raw: bytes, digest32: bytes, owner: bytes) -> tuple[bytes, str]:
    """Check a signature against the owner's key. Returns (compact form, "") if valid, else (b"", reason)."""
    if len(raw) not in _KEY_LENGTHS:
        return b"", "it is empty" if not raw else f"a key's has 64 or 65 bytes, this one has {len(raw)}"
    try:
        rs64, recovery_id = parse_signature(raw)
        signer = recover_address(digest32, rs64, recovery_id)
    except InvalidSignature as error:
        return b"", _reason(error)
    if signer != owner:
        return b"", f"{to_checksum(signer)} signed this, not the owner {to_checksum(owner)}"
    return to_compact64(rs64, recovery_id), ""


def _is_yes(signature: OwnerSignature, answer: bytes | Exception | None, *, has_code: bool) -> bool:
    """Whether the contract's answer confirms that the owner has signed."""
    if not isinstance(answer, bytes):
        return False
    if signature.is_pre_signature:
        return any(answer[:_WORD_BYTES])
    return has_code and is_magic_answer(answer)


def _nobody(signature: OwnerSignature) -> InvalidSignature:
    wrapped = signature.wrapped
    way = "" if wrapped is None else f": {_DEPLOY.format(factory=to_checksum(wrapped.factory))}"
    return signature.kind(f"{signature.fault}; {_NOT_DEPLOYED}{way}")


def _reason(error: InvalidSignature) -> str:
    return error.detail.removeprefix(f"{error.message}: ")
