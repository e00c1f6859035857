"""Hash typed-data documents as wallets exchange them: `{types, primaryType?, domain, message}`.

`types` may omit EIP712Domain; the domain type then has the members of `domain`. Without `primaryType` the
primary type is the only type that no other type refers to. A document whose primary type is EIP712Domain is
the domain alone, as in `eth_signTypedData_v4`.

Libraries read some domains differently, and a signature of one is none for the others; `check_domain` refuses
such domains.
Choice: `cambist typed-data` takes a domain only where ethers, viem and eth-account give the same digest. An
    EIP712Domain in `types` therefore has the members of the domain, in the order of EIP-712.
Choice: `cambist typed-data` refuses what one of the three refuses or leaves out: a null, a chainId as text
    without EIP712Domain, spaces and `+` in it, `0X`, an address that is all upper case.

Source: EIP-712, "Specification of the eth_signTypedData JSON RPC"; interop.md section 2 (toSign).
"""

from collections.abc import Mapping, Sequence

import msgspec

from ..config import limits
from ..config.errors import InvalidInput
from .addresses import checked_address, to_checksum
from .eip712 import DOMAIN_TYPE, Members, Types, domain_members, signing_digest
from .hexadecimal import to_hex
from .keccak import keccak256


class TypedDataHashes(msgspec.Struct, frozen=True):
    """All EIP-712 hashes of one document, 32 bytes each."""

    primary_type: str
    type_hash: bytes
    struct_hash: bytes
    domain_separator: bytes
    digest: bytes


def hash_typed_data(document: object) -> TypedDataHashes:
    """Hash a typed-data document.

    Args:
        document: parsed JSON. `message` may be named `value`, as in our `toSign`.

    Raises:
        InvalidInput: names the path at fault, the expected and the received value.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput(expected="an object with types, domain and message", got=document)
    structs = _struct_types(document.get("types"))
    domain = document.get("domain")
    if not isinstance(domain, Mapping):
        raise InvalidInput(field="domain", expected="an object", got=domain)
    # A set of its own: `types` may lack the domain's type, and that type may not refer to structs of `types`.
    domain_type = Types(
        {DOMAIN_TYPE: structs[DOMAIN_TYPE] if DOMAIN_TYPE in structs else domain_members(domain)}
    )
    separator = domain_type.hash_struct(DOMAIN_TYPE, domain, "domain")
    types = Types(structs)
    primary_type = document.get("primaryType")
    if primary_type is None:
        primary_type = types.primary_type()
    if not isinstance(primary_type, str):
        raise InvalidInput(field="primaryType", expected="a string", got=primary_type)
    if primary_type == DOMAIN_TYPE:
        type_hash = domain_type.type_hash(DOMAIN_TYPE)
        return TypedDataHashes(
            DOMAIN_TYPE, type_hash, separator, separator, keccak256(b"\x19\x01" + separator)
        )
    key = "message" if "message" in document else "value"
    if key not in document:
        raise InvalidInput(field="message", expected="an object", got="nothing")
    struct_hash = types.hash_struct(primary_type, document[key], key)
    return TypedDataHashes(
        primary_type,
        types.type_hash(primary_type),
        struct_hash,
        separator,
        signing_digest(separator, struct_hash),
    )


def check_domain(document: object) -> None:
    """Check that ethers, viem and eth-account read the domain of a typed-data document alike.

    A document without readable types and domain passes: `hash_typed_data` refuses it.

    Raises:
        InvalidInput: a member's value, or the type EIP712Domain of `types`, has not the same meaning for all.

    Source: ethers 6.17, viem 2.57 and eth-account 0.14, which tests ask for the digest of each case.
    """
    domain = document.get("domain") if isinstance(document, Mapping) else None
    types = document.get("types") if isinstance(document, Mapping) else None
    if not isinstance(domain, Mapping) or not isinstance(types, Mapping):
        return
    for name, value in domain.items():
        if value is None:
            expected = "a value, or no such member: ethers and viem leave a null out, eth-account does not"
            raise InvalidInput(field=f"domain.{name}", expected=expected, got=None)
        if isinstance(value, str) and value.startswith("0X") and name not in ("name", "version"):
            raise InvalidInput(field=f"domain.{name}", expected="0x in lower case", got=value)
    members = domain_members(domain)
    if DOMAIN_TYPE in types:
        _check_domain_type(_members(f"types.{DOMAIN_TYPE}", types[DOMAIN_TYPE]), members)
    else:
        _check_domain_without_type(domain)
    _check_domain_values(domain)


def _check_domain_type(given: Members, members: Members) -> None:
    if given != members:
        raise InvalidInput(
            "ethers and eth-account hash this domain type, viem the given one",
            field=f"types.{DOMAIN_TYPE}",
            expected=_shown(members),
            got=_shown(given),
        )


def _shown(members: Members) -> str:
    return f"({', '.join(f'{type_name} {name}' for name, type_name in members)})"


def _check_domain_without_type(domain: Mapping[str, object]) -> None:
    """Refuse values that viem takes for absent members where `types` has no EIP712Domain."""
    for name, is_absent, taken in (
        ("chainId", isinstance(domain.get("chainId"), str), "a number"),
        ("version", domain.get("version") == "", "text that is not empty"),
    ):
        if is_absent:
            expected = f"{taken}, or types.{DOMAIN_TYPE}: without that type viem leaves this value out"
            raise InvalidInput(field=f"domain.{name}", expected=expected, got=domain[name])


def _check_domain_values(domain: Mapping[str, object]) -> None:
    chain_id = domain.get("chainId")
    if isinstance(chain_id, int) and chain_id > limits.JSON_INT_MAX:
        expected = f"at most {limits.JSON_INT_MAX} as a number, which JavaScript keeps exact; more as text"
        raise InvalidInput(field="domain.chainId", expected=expected, got=chain_id)
    if "verifyingContract" in domain:
        text, field = domain["verifyingContract"], "domain.verifyingContract"
        address = checked_address(text, field)
        if text not in (to_hex(address), to_checksum(address)):
            raise InvalidInput(
                field=field, expected="lower case, or the EIP-55 checksum: viem refuses others", got=text
            )


def _struct_types(types: object) -> dict[str, Members]:
    if not isinstance(types, Mapping):
        raise InvalidInput(field="types", expected="an object of struct types", got=types)
    return {str(name): _members(f"types.{name}", members) for name, members in types.items()}


def _members(field: str, members: object) -> Members:
    if isinstance(members, str) or not isinstance(members, Sequence):
        raise InvalidInput(field=field, expected="an array of {name, type}", got=members)
    pairs: list[tuple[str, str]] = []
    for at, member in enumerate(members):
        name = member.get("name") if isinstance(member, Mapping) else None
        type_name = member.get("type") if isinstance(member, Mapping) else None
        if not isinstance(name, str) or not isinstance(type_name, str) or len(type_name) > 256:
            raise InvalidInput(field=f"{field}[{at}]", expected="{name, type}, both strings", got=member)
        pairs.append((name, type_name))
    return tuple(pairs)
