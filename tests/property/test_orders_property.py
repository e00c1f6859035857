"""A many random orders of every kind: digests and signatures are those of eth-account, ethers, viem."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import ORDER_TYPES, order_type_of
from cambist.codecs.eip712_orders.nonce_and_meta import (
    firm_user,
    firm_word,
    pack_firm,
    pack_otc,
    taker_from_meta,
)
from cambist.codecs.eip712_orders.partner_and_fee import (
    PartnerAndFee,
    pack_partner_and_fee,
    unpack_partner_and_fee,
)
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, address_words, digest_of_words_for
from cambist.codecs.eip712_orders.typed_struct import TypedStruct
from cambist.config.errors import InvalidInput
from cambist.crypto.eip712 import domain_separator
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import signer, to_65, to_compact64
from cambist.crypto.typed_data import hash_typed_data
from support.examples import examples
from support.oracles import Oracle
from support.typed_data import DOMAIN, SIGNED_TYPE_IDS, SIGNED_TYPES, orders, typed_data_of, with_domain_type

SEPARATOR = domain_separator(DOMAIN)
each_type = pytest.mark.parametrize("order_type", SIGNED_TYPES, ids=SIGNED_TYPE_IDS)
many = settings(
    max_examples=examples(40),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.oracle
@each_type
@many
@given(data=st.data())
def test_digest_and_signature_equal_eth_account(
    eth_account: Oracle, order_type: TypedStruct[Any], data: st.DataObject
) -> None:
    order = data.draw(orders(order_type))
    key = SigningKey(data.draw(st.integers(1, 2**255)).to_bytes(32, "big"))
    digest32 = order_type.compiled.digest_for(SEPARATOR)(order)
    answer = eth_account.ask(
        ask="typed_data",
        document=with_domain_type(typed_data_of(order_type, order)),
        key=key.secret32().hex(),
    )
    assert digest32.hex() == answer["digest"]
    assert to_65(*key.sign(digest32)).hex() == answer["signature"]


@given(order=orders(RFQ_ORDER))
def test_a_digest_of_words_is_that_of_the_order(order: RfqOrder) -> None:
    digest_of = digest_of_words_for(SEPARATOR)
    digest32 = digest_of(
        order.nonce_and_meta.to_bytes(32, "big"),
        order.expiry.to_bytes(32, "big"),
        address_words(order.maker_asset, order.taker_asset, order.maker, order.taker),
        order.maker_amount,
        order.taker_amount,
    )
    assert digest32 == RFQ_ORDER.compiled.digest_for(SEPARATOR)(order)


@given(user=st.binary(min_size=20, max_size=20), random12=st.binary(min_size=12, max_size=12))
def test_a_firm_word_is_the_packed_number(user: bytes, random12: bytes) -> None:
    packed = pack_firm(user, int.from_bytes(random12, "big"))
    assert firm_word(user, random12) == packed.to_bytes(32, "big")


@pytest.mark.oracle
@each_type
@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_ethers_and_viem_sign_the_same(
    javascript: Oracle, order_type: TypedStruct[Any], data: st.DataObject
) -> None:
    order = data.draw(orders(order_type))
    key = SigningKey(data.draw(st.integers(1, 2**255)).to_bytes(32, "big"))
    digest32 = order_type.compiled.digest_for(SEPARATOR)(order)
    document = typed_data_of(order_type, order)
    answer = javascript.ask(
        domain=document["domain"],
        types=document["types"],
        primaryType=document["primaryType"],
        value=document["message"],
        key="0x" + key.secret32().hex(),
    )
    signature = "0x" + to_65(*key.sign(digest32)).hex()
    assert answer == {
        "inferredPrimaryType": order_type.name,
        "ethersDigest": "0x" + digest32.hex(),
        "viemDigest": "0x" + digest32.hex(),
        "ethersSignature": signature,
        "viemSignature": signature,
        "compactSignature": "0x" + to_compact64(*key.sign(digest32)).hex(),
    }


@each_type
@given(data=st.data())
def test_wire_form_round_trips_through_json(order_type: TypedStruct[Any], data: st.DataObject) -> None:
    order = data.draw(orders(order_type))
    wire = msgspec.json.decode(msgspec.json.encode(order_type.to_wire(order)))
    assert order_type.from_wire(wire) == order
    assert hash_typed_data(typed_data_of(order_type, order)).digest == order_type.compiled.digest_for(
        SEPARATOR
    )(order)


@each_type
@given(data=st.data())
def test_any_changed_member_changes_the_signer(order_type: TypedStruct[Any], data: st.DataObject) -> None:
    one, other = data.draw(orders(order_type)), data.draw(orders(order_type))
    digest_of = order_type.compiled.digest_for(SEPARATOR)
    key = SigningKey(bytes(31) + b"\1")
    signature = to_65(*key.sign(digest_of(one)))
    assert (signer(digest_of(other), signature) == key.address) is (one == other)


@pytest.mark.parametrize("order_type", ORDER_TYPES, ids=[order_type.name for order_type in ORDER_TYPES])
@given(data=st.data())
def test_the_kind_is_told_by_the_members_in_any_order(
    order_type: TypedStruct[Any], data: st.DataObject
) -> None:
    wire = order_type.to_wire(data.draw(orders(order_type)))
    members = list(wire.items())
    random.Random(0).shuffle(members)
    assert order_type_of(dict(members)) is order_type
    lacking = data.draw(st.sampled_from(sorted(wire)))
    with pytest.raises(InvalidInput, match="the members of"):
        order_type_of({name: value for name, value in wire.items() if name != lacking})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0x", "0x12", "1e18", "-1", "9" * 90, "NaN", "\ud800", 2**256, -(2**255)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@each_type
@given(data=st.data())
def test_any_damaged_order_is_read_or_refused_and_what_is_read_hashes(
    order_type: TypedStruct[Any], data: st.DataObject
) -> None:
    wire = order_type.to_wire(data.draw(orders(order_type)))
    for member in data.draw(st.lists(st.sampled_from(sorted(wire)), min_size=1, max_size=3)):
        wire[member] = data.draw(JSON)
    try:
        order = order_type.from_wire(wire)
    except InvalidInput as refusal:
        assert len(refusal.detail) < 500  # noqa: PT017  either outcome is right
    else:
        assert len(order_type.compiled.hash_struct(order)) == 32


addresses = st.binary(min_size=20, max_size=20)
low96 = st.integers(0, 2**96 - 1)


@given(addresses, addresses, addresses, low96)
def test_both_nonce_layouts(user: bytes, maker: bytes, taker: bytes, low: int) -> None:
    firm = pack_firm(user, low)
    assert firm < 2**256
    assert (firm_user(firm), firm >> 160) == (user, low)
    otc = pack_otc(maker, low)
    assert (otc >> 96).to_bytes(20, "big") == maker
    assert taker_from_meta(otc, maker, taker) == taker
    if firm >> 96 != int.from_bytes(maker, "big"):
        assert taker_from_meta(firm, maker, taker) == user


@given(addresses, st.integers(0, 200), st.booleans(), st.booleans())
def test_partner_and_fee_packs_both_ways(partner: bytes, fee_bps: int, takes: bool, caps: bool) -> None:
    parts = PartnerAndFee(partner=partner, fee_bps=fee_bps, partner_takes_surplus=takes, cap_surplus=caps)
    packed = pack_partner_and_fee(parts)
    assert packed == int.from_bytes(partner, "big") << 96 | caps << 9 | takes << 8 | fee_bps
    assert unpack_partner_and_fee(packed) == parts


@given(st.integers(0, 2**256 - 1))
def test_any_partner_and_fee_unpacks_to_what_packs_back_or_is_refused(packed: int) -> None:
    try:
        assert pack_partner_and_fee(unpack_partner_and_fee(packed)) == packed
    except InvalidInput as refusal:
        assert "partnerAndFee" in refusal.detail  # noqa: PT017  either outcome is right
