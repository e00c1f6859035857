"""Benchmarks of decoding and encoding frequent messages, beside the standard library on the same bytes."""

import itertools
import json
from typing import Any

from bench.fixtures import KEY, firm_body, rfq_order
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.messages.maker_messages import (
    FirmOrder,
    FirmResponse,
    decode_firm_request,
    decode_prices,
)
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


def bench_decode_firm_request(benchmark: Any) -> None:
    following = itertools.cycle(BODIES).__next__
    assert benchmark(lambda: decode_firm_request(following())).taker_amount


def bench_decode_firm_request_json(benchmark: Any) -> None:
    following = itertools.cycle(BODIES).__next__
    assert benchmark(lambda: json.loads(following()))["takerAmount"]


def bench_encode_firm_response(benchmark: Any) -> None:
    maker = json.loads(benchmark(encode, RESPONSE))["order"]["maker"]
    assert maker.lower() == "0x" + KEY.address.hex()


def bench_encode_firm_response_json(benchmark: Any) -> None:
    plain = json.loads(encode(RESPONSE))
    benchmark(lambda: json.dumps(plain).encode())


def bench_decode_prices(benchmark: Any) -> None:
    decoded = benchmark(decode_prices, PRICES)
    assert len(decoded.body.prices) == 20
    assert not decoded.refused


def bench_decode_prices_json(benchmark: Any) -> None:
    benchmark(json.loads, PRICES)
