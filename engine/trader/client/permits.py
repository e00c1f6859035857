"""Permits in place of approvals, as a token takes them: its domain, its type, the signature. Pure.

    permit_questions   the calls to a token that ask for its domain and the owner's nonce
    permit_bases       their answers -> domain separators and nonces that may be the token's
    sign_permit        a basis -> a permit, in one of FORMS
    accepted           answers to trials of permits -> the permit that the token takes

A domain follows from the token's name, its address and this chain, in one of `_SHAPES`: the chain is a member
or the salt; some tokens have no version. A separator that the token returns selects among the domains, and no
other domain is signed, since a wallet could not show it. A token that returns none (UNI) decides by trials.

A permit of DAI's kind allows any amount. It is tried, and so shown to the node, only where the token refuses
the permits of the exact amount.

Source: EIP-2612; EIP-712; EIP-5267; interop.md 1 (224 and 256 bytes: the words of the token's own call).
Choice: Names of a permit's domain are those of the token's `eip712Domain()` and `name()`; versions are those
    of `eip712Domain()`, `version()` and `EIP712_VERSION()`, then "1" and "2".
Choice: A permit is signed only if the token accepts it in a trial, and refuses it with a forged signature.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ....codecs.contracts.abi import (
    WORD_BYTES,
    address_word,
    decode_bytes,
    decode_uint,
    selector,
    uint_word,
)
from ....codecs.contracts.permit import PermitForm
from ....config.errors import ChainError, InvalidInput
from ....crypto.addresses import to_checksum
from ....crypto.eip712 import Types, domain_separator, signing_digest
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.port import EthCall
from ...trade.served.token_permits import PERMIT_TRIALS, Answers, Granted, granted, permit_calls

FORMS = (PermitForm.EIP2612, PermitForm.DAI)
"""Forms of permits, in the order in which a token is asked for them."""

_NONCES = ("nonces(address)", "_nonces(address)")
_SEPARATORS = (
    "DOMAIN_SEPARATOR()",
    "getDomainSeperator()",
)  # the second as Polygon's bridged tokens spell it
_VERSIONS = ("version()", "EIP712_VERSION()")
_NAME, _DOMAIN = "name()", "eip712Domain()"
_COMMON_VERSIONS = ("1", "2")
_SHAPES = (
    ("name", "version", "chainId", "verifyingContract"),
    ("name", "chainId", "verifyingContract"),
    ("name", "version", "verifyingContract", "salt"),
    ("name", "verifyingContract", "salt"),
)
_TEXT_BYTES_MAX = 128
_DOMAIN_NAME, _DOMAIN_VERSION = 1, 2  # words of the answer to `eip712Domain()` that hold its texts' offsets
_PARTIES = (("owner", "address"), ("spender", "address"))
_TYPES = {
    PermitForm.EIP2612: Types(
        {"Permit": (*_PARTIES, ("value", "uint256"), ("nonce", "uint256"), ("deadline", "uint256"))}
    ),
    PermitForm.DAI: Types(
        {
            "Permit": (
                ("holder", "address"),
                ("spender", "address"),
                ("nonce", "uint256"),
                ("expiry", "uint256"),
                ("allowed", "bool"),
            )
        }
    ),
}


class PermitBasis(Struct, frozen=True):
    """Data of a token that a permit's signature needs.

    Attributes:
        separator: EIP-712 domain separator of the token, 32 bytes.
        nonce: nonce of the owner's next permit.
    """

    separator: bytes
    nonce: int


class PermitWish(Struct, frozen=True):
    """Allowance that a permit gives.

    Attributes:
        token, spender: 20 bytes each.
        value: maximum that the spender may take, raw units; a permit of DAI's kind allows any amount.
        deadline: Unix seconds.
    """

    token: bytes
    spender: bytes
    value: int
    deadline: int


def permit_questions(token: bytes, owner: bytes) -> dict[str, EthCall]:
    """The calls to a token that ask for its signing domain and the owner's nonce, by the functions' names;
    `permit_bases` reads the answers."""
    own = {name: EthCall(token, selector(name) + address_word(owner)) for name in _NONCES}
    return own | {name: EthCall(token, selector(name)) for name in (*_SEPARATORS, _NAME, *_VERSIONS, _DOMAIN)}


def permit_bases(answers: Answers, chain_id: int, token: bytes) -> list[PermitBasis]:
    """The data of a token that its permits may need, the likeliest first, from its answers to the calls of
    `permit_questions`.

    Raises:
        ChainError: the token has no permits, or its signing domain is not recognised.
    """
    nonces = [answer for name in _NONCES if (answer := _word(answers[name])) is not None]
    names = [_text(answers[_DOMAIN], _DOMAIN_NAME), _text(answers[_NAME])]
    if not nonces or all(isinstance(answers[name], Exception) for name in (_NAME, _DOMAIN)):
        raise ChainError(
            f"{to_checksum(token)} takes no EIP-2612 permits: use an approval in place of --permit"
        )
    told = {separator for name in _SEPARATORS if (separator := _word(answers[name])) is not None}
    versions = [_text(answers[_DOMAIN], _DOMAIN_VERSION), *(_text(answers[name]) for name in _VERSIONS)]
    known = [name for name in names if name is not None]
    tried = [version for version in (*versions, *_COMMON_VERSIONS) if version is not None]
    found = dict.fromkeys(_separators(known, tried, chain_id, token))
    separators = [separator for separator in found if not told or separator in told]
    if not separators:
        raise ChainError(
            f"the permit domain of {to_checksum(token)} does not follow from its name, chain and address: "
            "use an approval in place of --permit"
        )
    return [PermitBasis(separator, decode_uint(nonces[0])) for separator in separators]


def sign_permit(basis: PermitBasis, key: SigningKey, wish: PermitWish, form: PermitForm) -> bytes:
    """Sign a permit, which lets the spender take the key's tokens until the deadline.

    Args:
        form: one of FORMS.

    Returns:
        224 bytes of EIP-2612, or 256 of DAI's kind: the words of the token's own call.
    """
    owner, spender = to_checksum(key.address), to_checksum(wish.spender)
    parties = address_word(key.address) + address_word(wish.spender)
    if form is PermitForm.EIP2612:
        message: dict[str, object] = {
            "owner": owner,
            "spender": spender,
            "value": wish.value,
            "nonce": basis.nonce,
            "deadline": wish.deadline,
        }
        words = uint_word(wish.value) + uint_word(wish.deadline)
    else:
        message = {
            "holder": owner,
            "spender": spender,
            "nonce": basis.nonce,
            "expiry": wish.deadline,
            "allowed": True,
        }
        words = uint_word(basis.nonce) + uint_word(wish.deadline) + uint_word(1)
    digest32 = signing_digest(basis.separator, _TYPES[form].hash_struct("Permit", message, "permit"))
    rs64, recovery_id = key.sign(digest32)
    return b"".join((parties, words, uint_word(27 + recovery_id), rs64))


def trial_calls(permits: Sequence[bytes], token: bytes, spender: bytes) -> list[EthCall]:
    """The calls that try permits, as if the spender showed each; `accepted` reads the answers."""
    return [call for permit in permits for call in permit_calls(permit, token, spender).values()]


def accepted(permits: Sequence[bytes], answers: Sequence[bytes | Exception]) -> tuple[bytes, str]:
    """The first of the permits that the token accepts, and the reason to refuse the first if it accepts none.

    Args:
        answers: answers to the calls of `trial_calls`, in the same order.
    """
    found = [_granted(permit, answers, at) for at, permit in enumerate(permits)]
    for permit, result in zip(permits, found, strict=True):
        if result.amount is not None:
            return permit, ""
    return b"", found[0].reason


def is_unlimited(permit: bytes) -> bool:
    """Whether a permit allows any amount, as a permit of DAI's kind does."""
    return len(permit) == PermitForm.DAI.value


def _granted(permit: bytes, answers: Sequence[bytes | Exception], at: int) -> Granted:
    some = answers[at * len(PERMIT_TRIALS) : (at + 1) * len(PERMIT_TRIALS)]
    return granted(permit, dict(zip(PERMIT_TRIALS, some, strict=True)))


def _separators(
    names: Sequence[str], versions: Sequence[str], chain_id: int, token: bytes
) -> Iterator[bytes]:
    """Separators of the domains of a token, the likeliest first, some of them twice."""
    for shape in _SHAPES:
        for name in names:
            for version in versions:
                members = {
                    "name": name,
                    "version": version,
                    "chainId": chain_id,
                    "verifyingContract": to_checksum(token),
                    "salt": to_hex(uint_word(chain_id)),
                }
                yield domain_separator({member: members[member] for member in shape})


def _word(answer: bytes | Exception) -> bytes | None:
    """A token's answer if it is one word; else None."""
    return answer if not isinstance(answer, Exception) and len(answer) == WORD_BYTES else None


def _text(answer: bytes | Exception, at_word: int = 0) -> str | None:
    """The string in a token's answer whose offset is in a word of it; None if it is invalid or too long."""
    try:
        raw = None if isinstance(answer, Exception) else decode_bytes(answer, at_word)
        return None if raw is None or len(raw) > _TEXT_BYTES_MAX else raw.decode()
    except (InvalidInput, UnicodeDecodeError):
        return None
