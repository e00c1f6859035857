"""Quotes and Market swaps on the wire: spec 1.5, 1.8, 1.9, 1.12 to 1.14, interop.md 3."""

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET, Raw, structs

from cambist.codecs.messages.market_messages import (
    ContractParams,
    FallbackReason,
    OtherRoute,
    PriceRoute,
    PricesQuery,
    PricesResponse,
    QuoteQuery,
    QuoteResponse,
    RoutePart,
    Swap,
    SwapExchange,
    SwapResponse,
    TransactionEnvelope,
    decode_price_route,
    decode_quote_query,
    decode_transaction_body,
    decode_transaction_query,
)
from cambist.codecs.messages.vocabulary import MarketVersion, Mode, Side
from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidInput
from cambist.config.limits import ROUTE_BYTES_MAX, VENUE_SIGNATURE_BYTES_MAX, VENUE_SWAP_ORDERS_MAX

SWAP = Swap(
    src_token="0xa",
    src_decimals=18,
    dest_token="0xb",
    dest_decimals=6,
    swap_exchanges=(SwapExchange("maker-a", "10", "20", Decimal("33.33"), {"path": ["0xa", "0xb"]}),),
)
ROUTE = PriceRoute(
    block_number=19,
    network=1,
    src_token="0xa",
    dest_token="0xb",
    src_decimals=18,
    dest_decimals=6,
    src_amount="10",
    dest_amount="20",
    best_route=(RoutePart(Decimal(100), (SWAP,)),),
    gas_cost_usd="0.1",
    gas_cost="150000",
    version="6.2",
    contract_address="0xc",
    token_transfer_proxy="0xc",
    contract_method="swapExactAmountIn",
    partner_fee=Decimal("0.01"),
    src_usd="1",
    dest_usd="1",
    partner="anon",
    max_impact_reached=False,
    hmac="ab",
    side=Side.SELL,
)
BODY: dict[str, Any] = {
    "priceRoute": {"srcAmount": "10"},
    "srcToken": "0xa",
    "destToken": "0xb",
    "userAddress": "0xc",
}


def test_the_enums_are_those_of_the_spec() -> None:
    assert list(Mode) == ["ALL", "DELTA", "MARKET"]
    assert list(Side) == ["SELL", "BUY"]
    assert list(MarketVersion) == ["5", "6.2"]


def test_quote_parameters_are_those_of_the_spec_and_the_interop_extras() -> None:
    assert {field.encode_name for field in structs.fields(QuoteQuery)} == {
        "chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals", "mode", "side",
        "destChainId", "userAddress", "beneficiary", "partner", "partnerFeeBps", "maxImpact", "maxUSDImpact",
        "includeBridges", "excludeBridges", "allowBridgeAndSwap",
    }  # fmt: skip
    query = b"chainId=1&srcToken=a&destToken=b&amount=1&srcDecimals=1&destDecimals=1&maxUSDImpact=0.5"
    assert decode_quote_query(query).max_usd_impact == Decimal("0.5")
    with pytest.raises(InvalidInput, match="partnerFeeBps: expected an integer from 0 to 200, got '201'"):
        decode_quote_query(query + b"&partnerFeeBps=201")


def test_prices_parameters_are_those_of_the_spec_and_chain_id() -> None:
    names = [field.encode_name for field in structs.fields(PricesQuery)]
    names.remove("chainId")
    assert names == [
        *("srcToken", "destToken", "amount", "srcDecimals", "destDecimals", "side", "network"),
        *("otherExchangePrices", "includeDEXS", "excludeDEXS", "excludeRFQ", "includeContractMethods"),
        *(
            "excludeContractMethods",
            "userAddress",
            "receiver",
            "route",
            "partner",
            "partnerFeeBps",
            "maxImpact",
        ),
        *("srcTokenTransferFee", "destTokenTransferFee", "srcTokenDexTransferFee", "destTokenDexTransferFee"),
        *("version", "excludeContractMethodsWithoutFeeModel", "ignoreBadUsdPrice"),
    ]


def test_a_price_route_has_the_fields_of_the_spec_in_their_order() -> None:
    written = json.loads(encode(ROUTE))
    assert list(written) == [
        *("blockNumber", "network", "srcToken", "destToken", "srcDecimals", "destDecimals", "srcAmount"),
        *("destAmount", "bestRoute", "gasCostUSD", "gasCost", "version", "contractAddress"),
        *("tokenTransferProxy", "contractMethod", "partnerFee", "srcUSD", "destUSD", "partner"),
        *("maxImpactReached", "hmac", "side"),
    ]
    assert decode_price_route(encode(ROUTE)) == ROUTE


def test_the_best_route_as_clients_read_it() -> None:
    assert encode(ROUTE.best_route) == (
        b'[{"percent":100,"swaps":[{"srcToken":"0xa","srcDecimals":18,"destToken":"0xb","destDecimals":6,'
        b'"swapExchanges":[{"exchange":"maker-a","srcAmount":"10","destAmount":"20","percent":33.33,'
        b'"data":{"path":["0xa","0xb"]}}]}]}]'
    )


def test_percentages_are_json_numbers_with_all_their_digits() -> None:
    assert b'"partnerFee":0.01,' in encode(ROUTE)
    assert b'"partnerFee":0.30,' in encode(structs.replace(ROUTE, partner_fee=Decimal("0.30")))


def test_a_route_is_encoded_without_hmac_until_it_is_sealed_and_without_others_unless_asked() -> None:
    assert b"hmac" not in encode(structs.replace(ROUTE, hmac=UNSET))
    assert b"others" not in encode(ROUTE)
    others = structs.replace(ROUTE, others={"maker-a": OtherRoute("10", "19", (SWAP,))})
    assert json.loads(encode(others))["others"]["maker-a"]["destAmount"] == "19"


def test_a_quote_shows_one_path() -> None:
    reason = FallbackReason("PricingError", "no agent")
    assert json.loads(encode(QuoteResponse(market=ROUTE, fallback_reason=reason))) == {
        "market": json.loads(encode(ROUTE)),
        "fallbackReason": {"errorType": "PricingError", "details": "no agent"},
    }
    assert list(json.loads(encode(QuoteResponse(market=ROUTE)))) == ["market"]
    assert encode(QuoteResponse()) == b"{}"


def test_prices_and_swap_answers() -> None:
    assert list(json.loads(encode(PricesResponse(ROUTE)))) == ["priceRoute"]
    envelope = TransactionEnvelope(from_address="0x1", to="0x2", value="0", data="0x", chain_id=1)
    assert list(json.loads(encode(SwapResponse(ROUTE, envelope)))) == ["priceRoute", "txParams"]


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, b""),
        ({"gas_price": "7", "gas": "21000"}, b'"gasPrice":"7","gas":"21000",'),
        (
            {"max_fee_per_gas": "9", "max_priority_fee_per_gas": "1", "gas": "21000"},
            b'"maxFeePerGas":"9","maxPriorityFeePerGas":"1","gas":"21000",',
        ),
    ],
)
def test_a_transaction_envelope_leaves_out_what_does_not_apply(
    fields: dict[str, str], written: bytes
) -> None:
    envelope = TransactionEnvelope(from_address="0x1", to="0x2", value="0", data="0x", chain_id=1, **fields)
    start = b'{"from":"0x1","to":"0x2","value":"0","data":"0x",'
    assert encode(envelope) == start + written + b'"chainId":1}'


def test_only_params() -> None:
    params = ContractParams("swapExactAmountIn", ("0x1", ["1", "2"], True), "0x2")
    assert (
        encode(params) == b'{"method":"swapExactAmountIn","params":["0x1",["1","2"],true],"contract":"0x2"}'
    )


def test_transaction_parameters() -> None:
    assert encode(decode_transaction_query(b"")) == (
        b'{"gasPrice":null,"ignoreChecks":false,"ignoreGasEstimate":false,"onlyParams":false,"eip1559":false}'
    )
    query = decode_transaction_query(b"gasPrice=7&ignoreChecks=true&eip1559=true")
    assert (query.gas_price, query.ignore_checks, query.eip1559) == ("7", True, True)


def test_a_transaction_body_with_its_required_fields_has_the_defaults_of_the_spec() -> None:
    body = decode_transaction_body(encode({**BODY, "network": 1}))
    assert (body.is_cap_surplus, body.take_surplus) == (True, False)
    assert (body.is_surplus_to_user, body.is_direct_fee_transfer) == (False, False)
    assert (body.slippage, body.src_amount, body.dest_amount, body.deadline) == (None, None, None, None)
    assert [field.encode_name for field in structs.fields(type(body))] == [
        *("priceRoute", "orders", "srcToken", "destToken", "userAddress", "side", "srcDecimals"),
        *(
            "destDecimals",
            "srcAmount",
            "destAmount",
            "slippage",
            "txOrigin",
            "receiver",
            "partner",
            "partnerAddress",
            "partnerFeeBps",
        ),
        *("permit", "deadline", "isCapSurplus", "takeSurplus", "isSurplusToUser", "isDirectFeeTransfer"),
        "consent",
    ]


def test_the_price_route_of_a_transaction_is_kept_byte_for_byte() -> None:
    route = b'{ "b" : 1.0,\n"a":"\\u0041" }'
    rest = encode({key: value for key, value in BODY.items() if key != "priceRoute"})[1:]
    body = decode_transaction_body(b'{"priceRoute": ' + route + b" ," + rest)
    assert body.route == route


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slippage": 10001}, "slippage: expected an integer <= 10000"),
        ({"slippage": -1}, "slippage: expected an integer >= 0"),
        ({"slippage": "1e2"}, "slippage: expected an integer or null, got a string"),
        ({"srcAmount": 10}, "srcAmount: expected a string or null, got an integer"),
        ({"partnerFeeBps": -10}, "partnerFeeBps: expected a string or null, got an integer"),
        ({"isCapSurplus": 1}, "isCapSurplus: expected a boolean, got an integer"),
        ({"isCapSurplus": "true"}, "isCapSurplus: expected a boolean, got a string"),
        ({"userAddress": None}, "userAddress: expected a string, got null"),
        ({"partner": "p" * 129}, "partner: expected a string of length <= 128"),
    ],
)
def test_a_bad_field_of_a_transaction_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_transaction_body(encode({**BODY, **change}))
    assert said in caught.value.detail


@pytest.mark.parametrize("name", BODY)
def test_a_missing_field_of_a_transaction_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: missing"):
        decode_transaction_body(encode({key: value for key, value in BODY.items() if key != name}))


ORDER = {
    "nonceAndMeta": "1",
    "expiry": 0,
    "makerAsset": "a",
    "takerAsset": "b",
    "makerAmount": "2",
    "takerAmount": "3",
    "maker": "c",
    "taker": "d",
    "signature": "0x",
}
FILL = {key: value for key, value in BODY.items() if key != "priceRoute"} | {"orders": [ORDER]}


def test_orders_stand_in_place_of_a_route() -> None:
    sent = {**ORDER, "takerTokenFillAmount": "1", "permitMakerAsset": "0x", "orderHash": "0x1"}
    body = decode_transaction_body(
        encode(FILL | {"orders": [ORDER, sent], "priceRoute": None, "side": "buy"})
    )
    assert (body.route, body.side) == (None, Side.BUY)
    assert body.orders is not None
    assert [(order.taker_token_fill_amount, order.permit_maker_asset) for order in body.orders] == [
        (None, None),
        ("1", "0x"),
    ]
    assert decode_transaction_body(encode(BODY)).orders is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"orders": None}, "priceRoute: missing, and the body has no orders in its place"),
        ({"priceRoute": {}}, "orders: the body has a priceRoute already"),
        ({"orders": []}, "orders: expected an array of length >= 1"),
        ({"orders": [ORDER] * 17}, "orders: expected an array of length <= 16"),
        ({"orders": [ORDER, ORDER | {"taker": 5}]}, "orders[1].taker: expected a string, got an integer"),
        ({"orders": [ORDER | {"expiry": "0x0"}]}, "orders[0].expiry: expected an integer, got a string"),
        ({"side": "BOTH"}, "side: expected one of SELL, BUY"),
    ],
)
def test_a_bad_order_of_a_transaction_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_transaction_body(encode({**FILL, **change}))
    assert said in caught.value.detail


@pytest.mark.parametrize("name", ORDER)
def test_a_missing_member_of_an_order_is_named(name: str) -> None:
    order = {key: value for key, value in ORDER.items() if key != name}
    with pytest.raises(InvalidInput, match=rf"orders\[0\].{name}: missing"):
        decode_transaction_body(encode(FILL | {"orders": [order]}))


def test_the_longest_bodies_of_a_swap_are_read() -> None:
    swap = {"srcToken": "0xa", "destToken": "0xb", "userAddress": "0xc", "permit": "0x" + "00" * 512}
    address, amount = "0x" + "a" * 40, str(2**256 - 1)
    order = {
        **dict.fromkeys(("maker", "taker", "makerAsset", "takerAsset"), address),
        **dict.fromkeys(("nonceAndMeta", "makerAmount", "takerAmount", "takerTokenFillAmount"), amount),
        "expiry": 4_000_000_000,
        "permitMakerAsset": "0x" + "00" * 512,
        "signature": "0x" + "00" * VENUE_SIGNATURE_BYTES_MAX,
    }
    orders = [order] * VENUE_SWAP_ORDERS_MAX
    body = decode_transaction_body(json.dumps(swap | {"orders": orders}, indent=4).encode())
    assert body.orders is not None
    assert len(body.orders) == VENUE_SWAP_ORDERS_MAX

    exchange = {"exchange": "maker", "srcAmount": amount, "destAmount": amount, "percent": 1, "data": {}}
    exchanges = [exchange] * (ROUTE_BYTES_MAX // len(json.dumps(exchange)) - 1)
    route = json.dumps({"bestRoute": exchanges}).encode()
    assert len(route) > ROUTE_BYTES_MAX * 0.95
    body = decode_transaction_body(b'{"priceRoute":%b,%b' % (route, json.dumps(swap).encode()[1:]))
    assert isinstance(body.price_route, Raw)
    assert bytes(body.price_route) == route
