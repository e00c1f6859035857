"""Benchmarks of hashes, signatures and key recovery, beside the C calls that they use and eth-account."""

from collections.abc import Callable
from functools import cache
from typing import Any

from bench.fixtures import (
    DOMAIN_SEPARATOR,
    KEY,
    NOW_MS,
    SECRET,
    firm_body,
    next_of,
    rfq_order,
)
from bench.native_signature import native_signer
from bench.peers.process import Peer
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.crypto.hmac_auth import RequestSigner, RequestVerifier
from cambist.crypto.keccak import keccak256, keccak256_public
from cambist.crypto.libsecp256k1 import UNCOMPRESSED, installed
from cambist.crypto.secp256k1 import recover_address
from cambist.crypto.signatures import to_65

ORDERS = [rfq_order(number) for number in range(20_000)]
BODIES = [firm_body(number) for number in range(20_000)]
DIGEST_OF = RFQ_ORDER.compiled.digest_for(DOMAIN_SEPARATOR)
SIGNING = RequestSigner("venue", "key-1", SECRET)
SIGNED = [(DIGEST_OF(order), *KEY.sign(DIGEST_OF(order))) for order in ORDERS[:2_000]]
VERIFIER = RequestVerifier({"venue": [("key-1", SECRET)]})


def bench_keccak_288_bytes(benchmark: Any) -> None:
    data = bytes(range(256)) + bytes(32)
    assert benchmark(keccak256, data) == keccak256_public(data)


def bench_keccak_288_bytes_public(benchmark: Any) -> None:
    benchmark(keccak256_public, bytes(range(256)) + bytes(32))


def bench_native_signature(benchmark: Any, next_digest: Callable[[], bytes]) -> None:
    """Baseline: call the C signing function alone, on preallocated buffers, faster than any Python."""
    sign = native_signer(KEY.secret32())
    assert benchmark(lambda: sign(next_digest())) == 1


def bench_sign_digest(benchmark: Any, next_digest: Callable[[], bytes]) -> None:
    rs64, recovery_id = benchmark(lambda: KEY.sign(next_digest()))
    assert (len(rs64), recovery_id in (0, 1)) == (64, True)


def bench_order_hash_and_sign(benchmark: Any) -> None:
    following = next_of(ORDERS)
    rs64, recovery_id = benchmark(lambda: KEY.sign(DIGEST_OF(following())))
    assert recovery_id in (0, 1)
    assert len(rs64) == 64


def bench_order_hash_and_sign_eth_account(
    eth_account: Peer, in_peer: Callable[[Peer, str, int], None]
) -> None:
    ours = to_65(*KEY.sign(DIGEST_OF(rfq_order(19))))
    assert eth_account.ask("sign 20") == ours.hex()
    in_peer(eth_account, "sign", 20)


def bench_native_recovery(benchmark: Any) -> None:
    """Baseline: make only the two C calls that recover a public key and serialise it."""
    binding = installed()
    ffi, lib, context = binding.ffi, binding.lib, binding.context
    following = next_of(SIGNED)
    signature, point = ffi.new("secp256k1_ecdsa_recoverable_signature *"), ffi.new("secp256k1_pubkey *")
    point65, length = ffi.new("unsigned char[65]"), ffi.new("size_t *", 65)

    def native() -> int:
        digest32, rs64, recovery_id = following()
        lib.secp256k1_ecdsa_recoverable_signature_parse_compact(context, signature, rs64, recovery_id)
        done: int = lib.secp256k1_ecdsa_recover(context, point, signature, digest32)
        length[0] = 65
        lib.secp256k1_ec_pubkey_serialize(context, point65, length, point, UNCOMPRESSED)
        return done

    assert benchmark(native) == 1


def bench_recover_address(benchmark: Any) -> None:
    following = next_of(SIGNED)
    assert benchmark(lambda: recover_address(*following())) == KEY.address


def bench_recover_address_eth_account(eth_account: Peer, in_peer: Callable[[Peer, str, int], None]) -> None:
    assert eth_account.ask("recover 1") == KEY.address.hex()
    in_peer(eth_account, "recover", 20)


@cache
def _signed_bodies() -> list[tuple[bytes, ...]]:
    return [
        (*(value.encode() for value in SIGNING.headers(NOW_MS, "POST", "/1/firm", body).values()), body)
        for body in BODIES
    ]


def bench_hmac_verify(benchmark: Any) -> None:
    following = next_of(_signed_bodies())
    verify = VERIFIER.verify

    def once() -> bytes:
        domain, access_key, timestamp, signature, body = following()
        return verify(domain, access_key, timestamp, signature, b"POST", b"/1/firm", body, NOW_MS + 5)

    assert benchmark(once) == b"venue"
