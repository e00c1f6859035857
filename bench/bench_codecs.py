"""Decoding and encoding of the hot messages, beside the standard library on the same bytes."""

import itertools
import json
from decimal import Decimal
from typing import Any

from bench.fixtures import KEY, delta_order, firm_body, rfq_order
from cambist.codecs.canonical_json import canonical
from cambist.codecs.eip712_orders.delta import ORDER
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.messages.delta_messages import (
    DeltaBlock,
    Partner,
    TokenReference,
    decode_build_body,
    decode_route,
    decode_submit_body,
)
from cambist.codecs.messages.maker_messages import (
    FirmOrder,
    FirmRequest,
    FirmResponse,
    decode_firm_request,
    decode_firm_response,
    decode_prices,
)
from cambist.codecs.messages.market_messages import QuoteResponse, decode_quote_query
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.messages.wire import encode

BODIES = [firm_body(number) for number in range(20_000)]
WIRE_ORDER = RFQ_ORDER.to_wire(rfq_order(0))
RESPONSE = FirmResponse(
    FirmOrder(
        WIRE_ORDER["nonceAndMeta"],
        WIRE_ORDER["expiry"],
        WIRE_ORDER["makerAsset"],
        WIRE_ORDER["takerAsset"],
        WIRE_ORDER["maker"],
        WIRE_ORDER["taker"],
        WIRE_ORDER["makerAmount"],
        WIRE_ORDER["takerAmount"],
        "0x" + "ab" * 65,
    )
)
SIDES = {
    "bids": [[f"{1540 - level}.{level:04}", f"{level + 1}.5"] for level in range(20)],
    "asks": [[f"{1541 + level}.{level:04}", f"{level + 1}.5"] for level in range(20)],
}
PRICES = json.dumps({"prices": {f"T{number}/USDC": SIDES for number in range(20)}}).encode()
QUERY = (
    b"chainId=1&srcToken=0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
    b"&destToken=0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48&amount=1500000000000000000"
    b"&srcDecimals=18&destDecimals=6&mode=ALL&side=SELL&partner=bench"
)


def _amount_entry(token: str, amount: str) -> dict[str, Any]:
    return {"token": {"chainId": 1, "address": token}, "amount": amount, "amountUSD": "2270.12"}


DELTA_WIRE = ORDER.to_wire(delta_order(1))
LEG = {
    "input": _amount_entry(DELTA_WIRE["srcToken"], DELTA_WIRE["srcAmount"]),
    "output": _amount_entry(DELTA_WIRE["destToken"], DELTA_WIRE["destAmount"]),
}
ROUTE = {
    "origin": LEG,
    "destination": LEG,
    "bridge": None,
    "fees": {"gas": _amount_entry(DELTA_WIRE["srcToken"], "21000000000000"), "bridge": []},
}
DELTA_JSON = json.dumps(DELTA_WIRE).encode()


def bench_decode_firm_request(benchmark: Any) -> None:
    following = itertools.cycle(BODIES).__next__
    assert benchmark(lambda: decode_firm_request(following())).taker_amount


def bench_decode_firm_request_json(benchmark: Any) -> None:
    following = itertools.cycle(BODIES).__next__
    assert benchmark(lambda: json.loads(following()))["takerAmount"]


def bench_encode_firm_response(benchmark: Any) -> None:
    assert json.loads(benchmark(encode, RESPONSE))["order"]["maker"] == "0x" + KEY.address.hex()


def bench_encode_firm_response_json(benchmark: Any) -> None:
    plain = json.loads(encode(RESPONSE))
    benchmark(lambda: json.dumps(plain).encode())


def bench_decode_prices(benchmark: Any) -> None:
    decoded = benchmark(decode_prices, PRICES)
    assert len(decoded.body.prices) == 20
    assert not decoded.refused


def bench_decode_prices_json(benchmark: Any) -> None:
    benchmark(json.loads, PRICES)


def bench_decode_quote_query(benchmark: Any) -> None:
    assert benchmark(decode_quote_query, QUERY).chain_id == 1


def bench_read_delta_order(benchmark: Any) -> None:
    assert benchmark(ORDER.from_wire, DELTA_WIRE) == delta_order(1)


def bench_canonical_order(benchmark: Any) -> None:
    assert benchmark(canonical, DELTA_JSON)


def bench_encode_prices(benchmark: Any) -> None:
    body = decode_prices(PRICES).body
    assert decode_prices(benchmark(encode, body)).body == body


def bench_encode_firm_request(benchmark: Any) -> None:
    request = FirmRequest(
        maker_asset=WIRE_ORDER["makerAsset"],
        taker_asset=WIRE_ORDER["takerAsset"],
        taker_amount=WIRE_ORDER["takerAmount"],
        user_address=WIRE_ORDER["maker"],
        taker_address=WIRE_ORDER["taker"],
    )
    assert decode_firm_request(benchmark(encode, request)) == request


def bench_decode_firm_response(benchmark: Any) -> None:
    assert benchmark(decode_firm_response, encode(RESPONSE)) == RESPONSE


def bench_decode_submit_body(benchmark: Any) -> None:
    body = {"chainId": 1, "order": DELTA_WIRE, "signature": "0x" + "ab" * 64, "partner": "bench"}
    assert bytes(benchmark(decode_submit_body, json.dumps(body).encode()).order) == DELTA_JSON


def bench_decode_build_body(benchmark: Any) -> None:
    body = {"route": ROUTE, "owner": WIRE_ORDER["maker"], "deadline": 1_900_000_000, "partner": "bench"}
    assert json.loads(bytes(benchmark(decode_build_body, json.dumps(body).encode()).route)) == ROUTE


def bench_encode_quote_response(benchmark: Any) -> None:
    response = QuoteResponse(
        delta=DeltaBlock(
            id="7ec0dc82-98ad-4501-9f46-03e31e51098f",
            side=Side.SELL,
            input_token=TokenReference(1, DELTA_WIRE["srcToken"]),
            output_token=TokenReference(1, DELTA_WIRE["destToken"]),
            route=decode_route(json.dumps(ROUTE).encode()),
            partner=Partner("bench", Decimal("0.01")),
            spender=WIRE_ORDER["taker"],
        )
    )
    assert json.loads(benchmark(encode, response))["delta"]["route"] == ROUTE
