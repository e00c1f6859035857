"""Delta prices and orders on the wire: spec 1.4 to 1.22, interop.md 2 and 3."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, structs

from cambist.codecs.messages import delta_messages as delta
from cambist.codecs.messages.vocabulary import (
    BuildOrderType,
    OnChainOrderType,
    OrderStatus,
    OrderType,
    Side,
)
from cambist.codecs.messages.wire import decoder, encode
from cambist.config.errors import InvalidInput

ENTRY = delta.AmountEntry(delta.TokenReference(1, "0xa"), "10", "1.5")
LEG = delta.Leg(ENTRY, ENTRY)
BRIDGE = delta.Bridge("across", 4000, ("fast",), delta.BridgeParams("0x00000000", "0xb", -12, "0x"))
ROUTE = delta.Route(LEG, LEG, BRIDGE, delta.Fees(ENTRY, (ENTRY,)))
BLOCK = delta.DeltaBlock(
    "id", Side.SELL, ENTRY.token, ENTRY.token, ROUTE, delta.Partner("anon", Decimal("0.01")), "0xd"
)
RECORD = delta.OrderRecord(
    id="6fa459ea-ee8a-4ca4-894e-db77e160355e",
    status=OrderStatus.PENDING,
    side=Side.SELL,
    type=OrderType.MARKET,
    on_chain_order_type=OnChainOrderType.ORDER,
    input=delta.OrderInput(chain_id=1, token="0xa", amount="10"),
    output=delta.OrderOutput(
        chain_id=1, token="0xb", expected_amount="20", executed_amount=None, min_amount="19"
    ),
    owner="0x1",
    beneficiary="0x1",
    order_hash="0x2",
    partner="anon",
    order=Raw(b'{"owner":"0x1"}'),
    transactions=(delta.OrderTransaction("0x3", None, Decimal("33.3"), None, None),),
    refunds=(delta.Refund("0x4", 1, "0xa", "1"),),
    created_at="2026-01-01T00:00:00.000Z",
    updated_at="2026-01-01T00:00:01.000Z",
    expires_at="2026-01-01T01:00:00.000Z",
)
BUILD: dict[str, Any] = {"route": {"origin": {}}, "owner": "0x1", "deadline": 1700000000}
DOMAIN = delta.TypedDomain("Portikus", "2.0.0", 1, "0xd")


def keys_of(message: Any) -> list[str]:
    return list(json.loads(encode(message)))


def test_the_enums_are_those_of_the_spec() -> None:
    assert list(OrderStatus) == [
        *("PENDING", "AWAITING_SIGNATURE", "ACTIVE", "SUSPENDED", "CANCELLING", "BRIDGING", "COMPLETED"),
        *("FAILED", "EXPIRED", "REFUNDING", "CANCELLED", "REFUNDED"),
    ]
    assert list(OrderType) == ["MARKET", "LIMIT"]
    assert list(OnChainOrderType) == [
        *("Order", "FillableOrder", "ProductiveOrder", "ExternalOrder", "TWAPOrder", "TWAPBuyOrder")
    ]
    assert list(BuildOrderType) == [
        *("Order", "ProductiveOrder", "ExternalOrder", "TWAPOrder", "TWAPBuyOrder"),
    ]


# --- Prices -------------------------------------------------------------------------------------------


def test_a_delta_block_has_the_fields_of_the_spec_in_their_order() -> None:
    written = json.loads(encode(BLOCK))
    assert list(written) == [
        *("id", "side", "inputToken", "outputToken", "route", "partner", "spender", "alternatives")
    ]
    assert written["partner"] == {"name": "anon", "feePercent": 0.01}
    assert written["alternatives"] == []
    assert b'"feePercent":0.01' in encode(BLOCK)


def test_a_route_as_clients_pass_it_back() -> None:
    entry = '{"token":{"chainId":1,"address":"0xa"},"amount":"10","amountUSD":"1.5"}'
    leg = f'{{"input":{entry},"output":{entry}}}'
    bridge = (
        '{"protocol":"across","estimatedTimeMs":4000,"tags":["fast"],"contractParams":'
        '{"protocolSelector":"0x00000000","outputToken":"0xb","scalingFactor":-12,"protocolData":"0x"}}'
    )
    fees = f'{{"gas":{entry},"bridge":[{entry}]}}'
    written = f'{{"origin":{leg},"destination":{leg},"bridge":{bridge},"fees":{fees}}}'
    assert encode(ROUTE).decode() == written
    assert delta.decode_route(written.encode()) == ROUTE


def test_a_route_without_bridge_says_null() -> None:
    assert b'"bridge":null,"fees"' in encode(structs.replace(ROUTE, bridge=None))


@pytest.mark.parametrize("factor", [-129, 128, 1.5])
def test_a_scaling_factor_is_an_int8(factor: float) -> None:
    route = json.loads(encode(ROUTE))
    route["bridge"]["contractParams"]["scalingFactor"] = factor
    with pytest.raises(InvalidInput, match=r"bridge\.contractParams\.scalingFactor: expected an integer"):
        delta.decode_route(encode(route))


def test_price_parameters() -> None:
    query = delta.decode_delta_prices_query(
        b"chainId=1&srcToken=a&destToken=b&amount=5&srcDecimals=18&destDecimals=6&side=buy&destChainId=10"
        b"&partnerFeeBps=200&maxImpact=1.5&maxUSDImpact=2&includeAgents=a,b&excludeAgents=c"
        b"&includeBridges=d&excludeBridges=e&allowBridgeAndSwap=false"
    )
    assert query.side is Side.BUY
    assert (query.include_agents, query.exclude_agents) == (("a", "b"), ("c",))
    assert (query.include_bridges, query.exclude_bridges) == (("d",), ("e",))
    assert (query.max_impact, query.max_usd_impact) == (Decimal("1.5"), Decimal(2))
    assert not query.allow_bridge_and_swap
    assert [field.encode_name for field in structs.fields(delta.DeltaPricesQuery)] == [
        *("chainId", "srcToken", "destToken", "amount", "srcDecimals", "destDecimals", "side", "destChainId"),
        *("userAddress", "beneficiary", "partner", "partnerFeeBps", "maxImpact", "maxUSDImpact"),
        *("includeBridges", "excludeBridges", "allowBridgeAndSwap", "includeAgents", "excludeAgents"),
    ]


# --- Build, submit, cancel ----------------------------------------------------------------------------


def test_a_build_body_has_the_fields_and_defaults_of_the_spec() -> None:
    body = delta.decode_build_body(encode({**BUILD, "unknown": 1}))
    given = structs.asdict(body)
    fields = structs.fields(delta.BuildBody)
    assert {field.encode_name: given[field.name] for field in fields if field.name != "route"} == {
        "owner": "0x1",
        "deadline": 1700000000,
        "side": UNSET,
        "beneficiary": None,
        "nonce": None,
        "permit": None,
        "slippage": 100,
        "limitAmount": None,
        "metadata": "0x",
        "partiallyFillable": False,
        "partner": None,
        "partnerAddress": "0x0000000000000000000000000000000000000000",
        "partnerFeeBps": 0,
        "partnerTakesSurplus": False,
        "capSurplus": True,
        "orderType": "Order",
        "handler": None,
        "data": None,
        "strategy": None,
        "useShares": True,
        "interval": None,
        "numSlices": None,
        "totalSrcAmount": None,
        "totalDestAmount": None,
        "maxSrcAmount": None,
    }


def test_the_route_of_a_build_is_kept_byte_for_byte() -> None:
    route = b'{ "z" : "1" ,\r\n "a" : 1.0 }'
    body = delta.decode_build_body(b'{"owner":"0x1","route":' + route + b"}")
    assert bytes(body.route) == route
    assert encode(body) == b'{"route":' + route + b',"owner":"0x1"}'


@pytest.mark.parametrize("absent", [{}, {"deadline": None}])
def test_a_missing_deadline_is_left_to_the_endpoint(absent: dict[str, None]) -> None:
    assert delta.decode_build_body(encode({"route": {}, "owner": "0x1", **absent})).deadline is None


@pytest.mark.parametrize("bad", [{"interval": 59}, {"interval": -1}, {"numSlices": 1}, {"numSlices": 0}])
def test_twap_bounds_are_left_to_the_endpoint(bad: dict[str, int]) -> None:
    body = delta.decode_build_body(encode({**BUILD, **bad}))
    assert [value for value in (body.interval, body.num_slices) if value is not None] == list(bad.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slippage": 10001}, "slippage: expected an integer <= 10000"),
        ({"slippage": True}, "slippage: expected an integer, got a boolean"),
        ({"partnerFeeBps": 201}, "partnerFeeBps: expected an integer <= 200"),
        ({"partnerFeeBps": "201"}, "partnerFeeBps: expected an integer <= 200"),
        ({"partnerFeeBps": "1.0"}, "partnerFeeBps: expected an integer, got a string"),
        ({"side": "HOLD"}, "side: expected one of SELL, BUY, got 'HOLD'"),
        ({"orderType": "FillableOrder"}, "orderType: expected one of Order, ProductiveOrder, ExternalOrder"),
        ({"orderType": "order"}, "orderType: expected one of Order"),
        ({"deadline": -1}, "deadline: expected an integer >= 0"),
        ({"deadline": "+1700000000"}, "deadline: expected an integer or null, got a string"),
        ({"limitAmount": 5}, "limitAmount: expected a string or null, got an integer"),
        ({"capSurplus": 1}, "capSurplus: expected a boolean, got an integer"),
        ({"numSlices": 2.5}, "numSlices: expected an integer or null, got a number with a fraction"),
        ({"owner": None}, "owner: expected a string, got null"),
    ],
)
def test_a_bad_field_of_a_build_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        delta.decode_build_body(encode({**BUILD, **change}))
    assert said in caught.value.detail


def test_a_build_response() -> None:
    to_sign = delta.ToSign(
        DOMAIN, {"Order": (delta.TypedMember("owner", "address"),)}, Raw(b'{"owner":"0x1"}')
    )
    assert encode(delta.BuildResponse(to_sign, "0x2")) == (
        b'{"toSign":{"domain":{"name":"Portikus","version":"2.0.0","chainId":1,"verifyingContract":"0xd"},'
        b'"types":{"Order":[{"name":"owner","type":"address"}]},"value":{"owner":"0x1"}},"orderHash":"0x2"}'
    )


def test_a_submit_body() -> None:
    raw = b'{"chainId":1,"order":{"a": 1},"signature":"0x"}'
    body = delta.decode_submit_body(raw)
    assert bytes(body.order) == b'{"a": 1}'
    assert (body.type, body.partially_fillable, body.partner) == (OrderType.MARKET, False, None)
    assert (body.referrer_address, body.include_agents, body.exclude_agents) == (None, None, None)
    full = b'"partner":"p","type":"LIMIT","includeAgents":["a"],"excludeAgents":[],"partiallyFillable":true}'
    body = delta.decode_submit_body(raw[:-1] + b"," + full)
    assert (body.partner, body.type, body.include_agents) == ("p", OrderType.LIMIT, ("a",))
    assert (body.exclude_agents, body.partially_fillable) == ((), True)


@pytest.mark.parametrize("member", ["includeAgents", "excludeAgents"])
def test_a_list_of_an_empty_name_is_refused(member: str) -> None:
    body = {"chainId": 1, "order": {}, "signature": "0x", member: [""]}
    with pytest.raises(InvalidInput, match=rf"{member}\[0\]"):
        delta.decode_submit_body(encode(body))


@pytest.mark.parametrize("name", ["chainId", "order", "signature"])
def test_a_missing_field_of_a_submit_is_named(name: str) -> None:
    body = {"chainId": 1, "order": {}, "signature": "0x"}
    with pytest.raises(InvalidInput, match=f"{name}: missing"):
        delta.decode_submit_body(encode({key: value for key, value in body.items() if key != name}))


def test_cancelling() -> None:
    body = delta.decode_cancel_body(b'{"orderIds":["a","b"],"signature":"0x1"}')
    assert (body.order_ids, body.signature) == (("a", "b"), "0x1")
    assert (
        len(delta.decode_cancel_body(encode({"orderIds": ["x"] * 101, "signature": "0x"})).order_ids) == 101
    )
    assert (
        encode(delta.CancelResponse(success=True, cancelled=("a",))) == b'{"success":true,"cancelled":["a"]}'
    )
    with pytest.raises(InvalidInput, match=r"orderIds\[1\]: expected a string, got an integer"):
        delta.decode_cancel_body(b'{"orderIds":["a",2],"signature":"0x1"}')


def test_building_a_cancellation() -> None:
    value = delta.decode_cancellation_build_body(b'{"orderIds":["a"]}')
    types: dict[str, tuple[delta.TypedMember, ...]] = {
        "OrderCancellations": (delta.TypedMember("orderIds", "string[]"),)
    }
    response = delta.CancellationBuildResponse(delta.CancellationToSign(DOMAIN, types, value), "0x2")
    assert json.loads(encode(response)) == {
        "toSign": {
            "domain": {"name": "Portikus", "version": "2.0.0", "chainId": 1, "verifyingContract": "0xd"},
            "types": {"OrderCancellations": [{"name": "orderIds", "type": "string[]"}]},
            "value": {"orderIds": ["a"]},
        },
        "hash": "0x2",
    }


# --- Records ------------------------------------------------------------------------------------------


def test_an_order_record_has_the_fields_of_the_spec_in_their_order() -> None:
    assert keys_of(RECORD) == [
        *("id", "status", "side", "type", "onChainOrderType", "input", "output", "owner", "beneficiary"),
        *("orderHash", "partner", "order", "transactions", "refunds", "createdAt", "updatedAt", "expiresAt"),
    ]
    assert decoder(delta.OrderRecord, bytes_max=10_000)(encode(RECORD)) == RECORD


def test_a_sell_record_has_no_amount_on_its_estimated_side() -> None:
    assert encode(RECORD.input) == b'{"chainId":1,"token":"0xa","amount":"10"}'
    assert encode(RECORD.output) == (
        b'{"chainId":1,"token":"0xb","expectedAmount":"20","executedAmount":null,"minAmount":"19"}'
    )


def test_a_buy_record_mirrors_it() -> None:
    bought = delta.OrderOutput(chain_id=1, token="0xb", amount="20")
    spent = delta.OrderInput(
        chain_id=1, token="0xa", expected_amount=None, executed_amount="9", max_amount="11"
    )
    assert encode(bought) == b'{"chainId":1,"token":"0xb","amount":"20"}'
    assert encode(spent) == (
        b'{"chainId":1,"token":"0xa","expectedAmount":null,"executedAmount":"9","maxAmount":"11"}'
    )


def test_transactions_and_refunds_of_a_record() -> None:
    assert encode(RECORD.transactions) == (
        b'[{"originTx":"0x3","destinationTx":null,"filledPercent":33.3,"spentAmount":null,"receivedAmount":null}]'
    )
    assert encode(RECORD.refunds) == b'[{"tx":"0x4","chainId":1,"token":"0xa","amount":"1"}]'


def test_a_page_of_orders() -> None:
    page = delta.OrderPage((RECORD,), total=1, page=1, limit=100, has_more=False)
    assert keys_of(page) == ["data", "total", "page", "limit", "hasMore"]


def test_listing_parameters() -> None:
    assert delta.decode_orders_query(b"") == delta.OrdersQuery()
    assert (delta.OrdersQuery().page, delta.OrdersQuery().limit) == (1, 100)
    query = delta.decode_orders_query(
        b"userAddress=0x1&chainId=1,10&type=LIMIT&onChainOrderType=TWAPOrder&status=ACTIVE,PENDING&page=2&limit=1000"
    )
    assert (query.user_address, query.chain_id, query.type) == ("0x1", (1, 10), OrderType.LIMIT)
    assert query.on_chain_order_type is OnChainOrderType.TWAP_ORDER
    assert query.status == (OrderStatus.ACTIVE, OrderStatus.PENDING)
    assert (query.page, query.limit) == (2, 1000)


@pytest.mark.parametrize(
    "query", ["limit=1001", "page=0", "chainId=1,x", "status=ACTIVE,active", "type=TWAP"]
)
def test_a_bad_listing_parameter_is_named(query: str) -> None:
    with pytest.raises(InvalidInput, match=f"{query.partition('=')[0]}: expected"):
        delta.decode_orders_query(query.encode())


# --- The other endpoints --------------------------------------------------------------------------------


def test_the_small_answers() -> None:
    assert encode(delta.IsTokenSupported(supported=True)) == b'{"supported":true}'
    assert encode(delta.BridgeRoutes((delta.BridgeRoute(1, 10, ("0xa",)),))) == (
        b'{"routes":[{"srcChainId":1,"destChainId":10,"tokens":["0xa"]}]}'
    )
    assert encode(delta.BridgeProtocols((delta.BridgeProtocol("a", "A", "icon"),))) == (
        b'{"bridgeProtocols":[{"protocol":"a","displayName":"A","icon":"icon"}]}'
    )
    apr = delta.Apr(Decimal("5.10"), Decimal("4.9"))
    strategies = {
        "USDC": delta.StrategyToken(
            "0xa", (delta.Strategy("0xv", "V", apr), delta.Strategy("0xw", "W", None))
        )
    }
    assert encode(strategies) == (
        b'{"USDC":{"address":"0xa","strategies":[{"vault":"0xv","name":"V","apr":{"gross":5.10,"net":4.9}},'
        b'{"vault":"0xw","name":"W","apr":null}]}}'
    )


def test_the_small_queries() -> None:
    assert delta.decode_token_support_query(b"chainId=1&token=0xa") == delta.TokenSupportQuery(1, "0xa")
    routes = delta.decode_bridge_routes_query(b"bridges=a,b")
    assert (routes.bridges, routes.allow_bridge_and_swap) == (("a", "b"), True)


def test_inputs_are_frozen() -> None:
    for kind in vars(delta).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
            assert kind.__struct_config__.frozen, kind
