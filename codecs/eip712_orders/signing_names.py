"""Find the EIP-712 domain of a wrong signature, among domains that clients sign for by mistake. Pure.

A signature over another domain recovers to an unknown address. The domains that clients of this protocol
family use are few: the refusal tries each of them, and names the domain that the client signed for.

Source: interop.md 1 and 2.
Choice: The refusal of an owner's signature over another domain names that domain. The venue tries at most
    OTHER_DOMAINS_MAX domains: other known names at the same contract, then the venue's other chains.
"""

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from ...config import limits
from ...config.errors import InvalidSignature
from ...crypto.addresses import to_checksum
from ...crypto.eip712 import domain_separator, signing_digest
from ...crypto.signatures import signer
from .delta import delta_domain

RFQ_NAMES = (limits.RFQ_DOMAIN_NAME, "Cambist RFQ")
DELTA_NAMES = ((limits.DELTA_DOMAIN_NAME, limits.DELTA_DOMAIN_VERSION), ("Cambist Delta", "1"))


class NamedDomain(Struct, frozen=True):
    """The EIP-712 signing domain of a contract; `str` gives a description of the domain for errors.

    Attributes:
        contract: address of the verifying contract, 20 bytes.
    """

    name: str
    version: str
    chain_id: int
    contract: bytes

    @property
    def separator(self) -> bytes:
        """EIP-712 domain separator of this domain, 32 bytes; hashed anew at each access."""
        domain = delta_domain(self.name, self.version, self.chain_id, self.contract)
        return domain_separator(domain)

    def __str__(self) -> str:
        named = f"{self.name} version {self.version}"
        return f"{named}, chain {self.chain_id}, contract {to_checksum(self.contract)}"


class OrderDigests(Struct, frozen=True):
    """Struct hash of an order, its correct signing domain, and the domains that clients confuse with it.

    `other_of` finds the domain of a wrong signature, so that the refusal can name the client's mistake.

    Attributes:
        struct_hash32: EIP-712 struct hash of the order; the same in all domains.
        here: the correct signing domain of this order.
        others: domains that clients sign for by mistake.
    """

    struct_hash32: bytes
    here: NamedDomain
    others: tuple[NamedDomain, ...]

    def other_of(self, raw: bytes, owner: bytes) -> NamedDomain | None:
        """Find the domain in `others` that the owner signed the order for; None if the signature fits none.

        Args:
            raw: the signature, of 65 or 64 bytes.
            owner: address whose key should have signed, 20 bytes.
        """
        for other in islice(self.others, limits.OTHER_DOMAINS_MAX):
            try:
                by = signer(signing_digest(other.separator, self.struct_hash32), raw)
            except InvalidSignature:  # some signatures recover over one digest and not over another
                continue
            if by == owner:
                return other
        return None


def rfq_others(here: NamedDomain, served: Iterable[NamedDomain] = ()) -> tuple[NamedDomain, ...]:
    """List the domains that clients mistake for the domain of an RFQ contract.

    Args:
        here: domain of the RFQ contract; the list leaves it out.
        served: domains of the RFQ contracts on the venue's other chains.
    """
    return _others(here, [(name, limits.RFQ_DOMAIN_VERSION) for name in RFQ_NAMES], served)


def delta_others(here: NamedDomain, served: Iterable[NamedDomain] = ()) -> tuple[NamedDomain, ...]:
    """List the domains that clients mistake for the domain of a Delta contract.

    Args:
        here: domain of the Delta contract; the list leaves it out.
        served: domains of the Delta contracts on the venue's other chains.
    """
    return _others(here, DELTA_NAMES, served)


def _others(
    here: NamedDomain, names: Iterable[tuple[str, str]], served: Iterable[NamedDomain]
) -> tuple[NamedDomain, ...]:
    known = [NamedDomain(name, version, here.chain_id, here.contract) for name, version in names]
    return tuple(dict.fromkeys(domain for domain in (*known, *served) if domain != here))
