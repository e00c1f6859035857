"""Signed Delta orders as work: many owners, no order twice; as data, for who sends and who reads them.

Number n is sold by owner n mod OWNERS: a little WETH for USDC, with a nonce and amounts of its own. Bodies
are as a dapp sends them.
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
"""What every owner has, and has allowed."""


class Ground(Struct, frozen=True):
    """Contracts and tokens that orders name, 20 bytes each."""

    delta: bytes
    weth: bytes
    usdc: bytes


NOWHERE = Ground(b"\xde" * 20, b"\x0e" * 20, b"\x5d" * 20)
"""For who verifies signatures and looks at nothing else."""


class Signed(Struct, frozen=True):
    """One order. `signature64` is its owner's, over `order_hash`."""

    order: DeltaOrder
    order_hash: bytes
    signature64: bytes


class Orders:
    """The orders of one ground, by number."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        separator = delta_domain_separator(DOMAIN_NAME, DOMAIN_VERSION, CHAIN_ID, ground.delta)
        self._digest = ORDER.compiled.digest_for(separator)

    def signed(self, number: int, least: int = _LEAST) -> Signed:
        """Order `number`, for so many units of USDC at least."""
        key = owner_key(number % OWNERS)
        order = DeltaOrder(
            key.address, key.address, self._ground.weth, self._ground.usdc, _SOLD + number, least,
            max(least, _EXPECTED), DEADLINE_S, KIND_SELL, number, 0, b"", b"", SAME_CHAIN,
        )  # fmt: skip
        digest32: bytes = self._digest(order)
        return Signed(order, digest32, to_compact64(*key.sign(digest32)))

    def body(self, signed: Signed, **more: object) -> bytes:
        """Of POST /v2/delta/orders, with more members where they are given."""
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
        """The submission of order `number` as it goes over the wire; it says which one it is."""
        body = self.body(self.signed(number))
        return (
            b"POST /v2/delta/orders HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: dapp/1.0\r\n"
            b"Accept: application/json\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\n"
            b"X-Number: %d\r\nContent-Length: %d\r\n\r\n%b" % (number, len(body), body)
        )


@lru_cache(maxsize=OWNERS)
def owner_key(number: int) -> SigningKey:
    """Of an owner."""
    return SigningKey(keccak256(b"owner %d of a bench" % number))
