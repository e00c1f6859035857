"""Decoding and encoding of the hot messages, beside the standard library on the same bytes."""

import itertools
import json
from typing import Any

from bench.fixtures import KEY, delta_order, firm_body, rfq_order
from cambist.codecs.canonical_json import canonical
from cambist.codecs.eip712_orders.delta import ORDER
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.maker_messages import FirmOrder, FirmResponse, decode_firm_request, decode_prices
from cambist.codecs.market_messages import decode_quote_query
from cambist.codecs.wire import encode

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
DELTA_WIRE = ORDER.to_wire(delta_order(1))
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
