"""Inputs that a benchmark and its baseline share: the same orders, request bodies and books."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from cambist.codecs.eip712_orders.delta import KIND_SELL, SAME_CHAIN, DeltaOrder
from cambist.codecs.eip712_orders.rfq import RfqOrder, rfq_domain_separator
from cambist.crypto.secp256k1 import SigningKey

KEY = SigningKey(bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"))
CONTRACT = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
USDC = bytes.fromhex("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")
WETH = bytes.fromhex("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
DOMAIN_SEPARATOR = rfq_domain_separator("AUGUSTUS RFQ", 31_337, CONTRACT)
NOW_MS = 1_795_000_000_000
SECRET = b"a secret key of a plausible length"

T = TypeVar("T")
_cycles: dict[int, tuple[Sequence[Any], Callable[[], Any]]] = {}


def next_of(corpus: Sequence[T]) -> Callable[[], T]:
    """Return a function that gives the items of a sequence in an endless cycle.

    A later lap of the benchmark continues where the lap before ended.
    """
    _, following = _cycles.setdefault(id(corpus), (corpus, itertools.cycle(corpus).__next__))
    return following


def rfq_order(number: int) -> RfqOrder:
    """Make the RFQ order of a firm quote, different for each number."""
    return RfqOrder(
        number << 160 | int.from_bytes(KEY.address, "big"),
        1_900_000_000,
        USDC,
        WETH,
        KEY.address,
        CONTRACT,
        2_270_000_000 + number,
        1_500_000_000_000_000_000,
    )


def delta_order(number: int) -> DeltaOrder:
    """Make a Delta order, different for each number."""
    return DeltaOrder(
        KEY.address,
        KEY.address,
        WETH,
        USDC,
        1_500_000_000_000_000_000,
        2_250_000_000,
        2_270_000_000,
        1_900_000_000,
        KIND_SELL,
        number,
        512,
        b"",
        b"",
        SAME_CHAIN,
    )


def firm_body(number: int) -> bytes:
    """Make the body, 305 bytes, of a request for a firm quote, different for each number."""
    return (
        b'{"makerAsset":"0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",'
        b'"takerAsset":"0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2",'
        b'"takerAmount":"%d","userAddress":"0x%040x",'
        b'"takerAddress":"0x5fbdb2315678afecb367f032d93f642f64180aa3","partner":"bench"}'
    ) % (1_500_000_000_000_000_000 + number, number + 1)
