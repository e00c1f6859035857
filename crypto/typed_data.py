"""Hash typed-data documents as wallets exchange them: `{types, primaryType?, domain, message}`.

`types` may omit EIP712Domain; the domain type then has the members of `domain`. Without `primaryType` the
primary type is the only type that no other type refers to. A document whose primary type is EIP712Domain is
the domain alone, as in `eth_signTypedData_v4`.

Source: EIP-712, "Specification of the eth_signTypedData JSON RPC"; interop.md section 2 (toSign).
"""

from collections.abc import Mapping, Sequence

import msgspec

from ..config.errors import InvalidInput
from .eip712 import DOMAIN_TYPE, Members, Types, domain_members, signing_digest
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
