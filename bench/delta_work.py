"""Signed Delta orders of many owners as load, all different, for the sender of orders and for checks.

Order n is of owner n mod OWNERS, who sells a little WETH for USDC, with a nonce and amounts of its own.
Bodies are as a dapp sends them.
"""

import json
from functools import lru_cache

from msgspec import Struct

from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_compact64

CHAIN_ID = 31_337
OWNERS = 1_000
DOMAIN_NAME, DOMAIN_VERSION = "Portikus", "2.0.0"
DEADLINE_S = 4_000_000_000
_ONE, _USDC = 10**18, 10**6
_SOLD, _LEAST, _EXPECTED = _ONE // 100, 24 * _USDC, 25 * _USDC
HELD = 1_000 * _SOLD
"""Raw units of WETH that every owner has and allows the Delta contract to take."""


class Ground(Struct, frozen=True):
    """Addresses, 20 bytes each, of the contracts and tokens that the load's orders name."""

    delta: bytes
    weth: bytes
    usdc: bytes


NOWHERE = Ground(b"\xde" * 20, b"\x0e" * 20, b"\x5d" * 20)
"""Invented addresses, for servers that only verify signatures of orders."""


class Signed(Struct, frozen=True):
    """A Delta order with its hash and its owner's compact signature over that hash."""

    order: DeltaOrder
    order_hash: bytes
    signature64: bytes


class Orders:
    """Signed Delta orders for the contracts and tokens of one chain, made by number."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        separator = delta_domain_separator(DOMAIN_NAME, DOMAIN_VERSION, CHAIN_ID, ground.delta)
        self._digest = ORDER.compiled.digest_for(separator)

    def signed(self, number: int, least: int = _LEAST) -> Signed:
        """Sign order `number`.

        Args:
            least: least amount received, raw units of USDC.
        """
        key = owner_key(number % OWNERS)
        order = DeltaOrder(
            key.address, key.address, self._ground.weth, self._ground.usdc, _SOLD + number, least,
            max(least, _EXPECTED), DEADLINE_S, KIND_SELL, number, 0, b"", b"", SAME_CHAIN,
        )  # fmt: skip
        digest32: bytes = self._digest(order)
        return Signed(order, digest32, to_compact64(*key.sign(digest32)))

    def body(self, signed: Signed, **more: object) -> bytes:
        """Return the JSON body of POST /v2/delta/orders that submits a signed order.

        Args:
            more: further members of the body.
        """
        return json.dumps(
            {
                "chainId": CHAIN_ID,
                "order": ORDER.to_wire(signed.order),
                "signature": "0x" + signed.signature64.hex(),
                "partner": "bench",
                **more,
            },
            separators=(",", ":"),
        ).encode()

    def request(self, number: int) -> bytes:
        """Return the bytes of an HTTP request that submits order `number`, with the number in a header."""
        body = self.body(self.signed(number))
        return (
            b"POST /v2/delta/orders HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: dapp/1.0\r\n"
            b"Accept: application/json\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\n"
            b"X-Number: %d\r\nContent-Length: %d\r\n\r\n%b" % (number, len(body), body)
        )


@lru_cache(maxsize=OWNERS)
def owner_key(number: int) -> SigningKey:
    """Return the signing key of the owner with a number."""
    return SigningKey(keccak256(b"owner %d of a bench" % number))
