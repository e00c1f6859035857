"""OTC orders (spec 2.3 to 2.10) on the wire."""

import json
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.otc_messages import (
    OtcListing,
    OtcListingQuery,
    OtcOrderBody,
    StoredOrder,
    decode_otc_balance_query,
    decode_otc_listing_query,
    decode_otc_order,
    posted,
)
from cambist.codecs.messages.vocabulary import OtcOrderBy, OtcState, OtcType
from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidInput

BODY: dict[str, Any] = {
    "nonceAndMeta": "0",
    "expiry": 0,
    "makerAsset": "0xa",
    "takerAsset": "0xb",
    "makerAmount": "10",
    "takerAmount": "20",
    "maker": "0xc",
    "taker": "0xd",
    "signature": "0xee",
    "permitMakerAsset": None,
}
STORED = StoredOrder(
    **msgspec.structs.asdict(decode_otc_order(encode(BODY))),
    order_hash="0x1",
    chain_id=1,
    state=OtcState.SUSPENDED,
    type=OtcType.P2P,
    taker_from_meta="0xd",
    maker_balance="1",
    fillable_balance="10",
    reserved_balance="3",
    swappable_balance="0",
    transaction_hash=None,
    created_at=1700000000,
    updated_at=1700000001,
)
STORED_KEYS = [
    *BODY,
    *("orderHash", "chainId", "state", "type", "takerFromMeta", "makerBalance", "fillableBalance"),
    *("reservedBalance", "swappableBalance", "transactionHash", "createdAt", "updatedAt"),
]


def test_the_enums_are_those_of_the_spec() -> None:
    assert list(OtcState) == ["DRAFT", "PENDING", "FULFILLED", "CANCELLED", "SUSPENDED", "EXPIRED"]
    assert list(OtcType) == ["P2P", "LIMIT"]
    assert list(OtcOrderBy) == ["createdAt", "updatedAt", "expiry"]


def test_the_post_body() -> None:
    order = decode_otc_order(encode({**BODY, "extra": 1}))
    assert order == OtcOrderBody("0", 0, "0xa", "0xb", "10", "20", "0xc", "0xd", "0xee")
    assert json.loads(encode(order)) == BODY
    without_permit = {key: value for key, value in BODY.items() if key != "permitMakerAsset"}
    assert decode_otc_order(encode(without_permit)) == order


@pytest.mark.parametrize("name", [key for key in BODY if key != "permitMakerAsset"])
def test_a_required_field_that_is_missing_or_of_another_type_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: missing"):
        decode_otc_order(encode({key: value for key, value in BODY.items() if key != name}))
    with pytest.raises(InvalidInput, match=f"{name}: expected"):
        decode_otc_order(encode({**BODY, name: None}))
    with pytest.raises(InvalidInput, match=f"{name}: expected"):
        decode_otc_order(encode({**BODY, name: "never" if name == "expiry" else 1}))


def test_a_stored_order_has_the_fields_of_the_spec_in_their_order() -> None:
    written = json.loads(encode(STORED))
    assert list(written) == STORED_KEYS
    assert written["transactionHash"] is None
    assert written["state"] == "SUSPENDED"
    assert written["createdAt"] == 1700000000


def test_the_answer_to_a_post_serves_both_client_families() -> None:
    written = json.loads(encode(posted(STORED)))
    stored = json.loads(encode(STORED))
    assert written == {**stored, "order": stored}


def test_a_listing() -> None:
    listing = json.loads(
        encode(OtcListing((STORED,), limit=100, offset=0, total=1, has_more=False, as_of="7"))
    )
    assert list(listing) == ["orders", "limit", "offset", "total", "hasMore", "asOf"]
    assert list(listing["orders"][0]) == STORED_KEYS


def test_listing_parameters_and_their_defaults() -> None:
    assert decode_otc_listing_query(b"") == OtcListingQuery()
    defaults = OtcListingQuery()
    assert (defaults.type, defaults.limit, defaults.offset) == (None, 100, 0)
    assert (defaults.order_by, defaults.hide_small_balances) == (OtcOrderBy.CREATED_AT, False)
    assert defaults.as_of is None
    assert decode_otc_listing_query(b"asOf=10:20:10,14").as_of == "10:20:10,14"
    query = b"type=LIMIT&limit=1000&offset=7&orderBy=expiry&hideSmallBalances=true"
    assert decode_otc_listing_query(query) == OtcListingQuery(
        type=OtcType.LIMIT, limit=1000, offset=7, order_by=OtcOrderBy.EXPIRY, hide_small_balances=True
    )


@pytest.mark.parametrize("query", ["limit=1001", "limit=0", "offset=-1", "type=p2p", "orderBy=price"])
def test_a_bad_listing_parameter_is_named(query: str) -> None:
    with pytest.raises(InvalidInput, match=f"{query.partition('=')[0]}: expected"):
        decode_otc_listing_query(query.encode())


def test_the_token_of_a_balance_query() -> None:
    assert decode_otc_balance_query(b"token=0xAb").token == "0xAb"
    assert decode_otc_balance_query(b"").token is None
