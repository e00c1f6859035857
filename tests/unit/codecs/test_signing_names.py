"""Wrong domains of signatures: names in use, other chains, and the number of domains that are tried."""

import pytest

from cambist.codecs.eip712_orders import signing_names
from cambist.codecs.eip712_orders.signing_names import NamedDomain, OrderDigests, delta_others, rfq_others
from cambist.config.limits import OTHER_DOMAINS_MAX
from cambist.crypto.eip712 import signing_digest
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import signer, to_65, to_compact64

KEY, OTHER = SigningKey(b"\7" * 32), SigningKey(b"\x08" * 32)
CONTRACT, STRUCT_HASH = b"\xc0" * 20, b"\x5a" * 32
RFQ = NamedDomain("AUGUSTUS RFQ", "1", 31_337, CONTRACT)
DELTA = NamedDomain("Portikus", "2.0.0", 31_337, CONTRACT)


def signed(domain: NamedDomain, key: SigningKey = KEY) -> bytes:
    return to_65(*key.sign(signing_digest(domain.separator, STRUCT_HASH)))


def test_the_domain_that_was_signed_for_is_found() -> None:
    former, elsewhere = (
        NamedDomain("Cambist RFQ", "1", 31_337, CONTRACT),
        NamedDomain("Own", "1", 1, b"\1" * 20),
    )
    signing = OrderDigests(STRUCT_HASH, RFQ, rfq_others(RFQ, [RFQ, elsewhere]))
    assert signing.others == (former, elsewhere)
    for domain in signing.others:
        assert signing.other_of(signed(domain), KEY.address) == domain
        assert signing.other_of(signed(domain, OTHER), KEY.address) is None
    rs64, recovery_id = KEY.sign(signing_digest(former.separator, STRUCT_HASH))
    assert signing.other_of(to_compact64(rs64, recovery_id), KEY.address) == former
    assert str(former).startswith("Cambist RFQ version 1, chain 31337, contract 0xC0")


def test_a_deployment_with_a_name_of_its_own_knows_the_names_of_clients() -> None:
    own = NamedDomain("Own", "7", 31_337, CONTRACT)
    assert [(one.name, one.version) for one in delta_others(own)] == [
        ("Portikus", "2.0.0"),
        ("Cambist Delta", "1"),
    ]
    assert [one.name for one in delta_others(DELTA)] == ["Cambist Delta"]


@pytest.mark.parametrize("raw", [b"", bytes(64), bytes(65), b"\xff" * 65, b"\x01" * 30])
def test_what_is_no_signature_is_nobodys(raw: bytes) -> None:
    assert OrderDigests(STRUCT_HASH, RFQ, rfq_others(RFQ)).other_of(raw, KEY.address) is None


def test_so_many_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counted(digest32: bytes, raw: bytes) -> bytes:
        tried.append(digest32)
        return signer(digest32, raw)

    monkeypatch.setattr(signing_names, "signer", counted)
    served = [NamedDomain("Own", "1", chain_id, CONTRACT) for chain_id in range(1, 100)]
    signing = OrderDigests(STRUCT_HASH, RFQ, rfq_others(RFQ, served))
    assert signing.other_of(signed(RFQ, OTHER), KEY.address) is None
    assert len(tried) == OTHER_DOMAINS_MAX
