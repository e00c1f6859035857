"""Demo steps without a chain or a venue: a signed request, signed Delta orders, the speed of signatures."""

import secrets
import time
from collections.abc import Callable, Iterator
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import parse_units
from ....codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    TWAP_ORDER,
    DeltaOrder,
    TwapOrder,
    delta_domain_separator,
)
from ....codecs.eip712_orders.nonce_and_meta import pack_firm
from ....codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from ....config.chains import SHIPPED_CHAINS
from ....config.errors import AuthError
from ....crypto.addresses import ZERO_ADDRESS
from ....crypto.hexadecimal import to_hex
from ....crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    RequestSigner,
    RequestVerifier,
)
from ....crypto.secp256k1 import SigningKey, recover_address
from ....crypto.signatures import signer, to_compact64

_CHAIN_ID = 31_337
_CONTRACT = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
_WETH = bytes.fromhex("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
_USDC = bytes.fromhex("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")
_ROUNDS = 400


def run_foundations(console: Console) -> None:
    """Run the demo's steps 22 to 24, which use no chain; print each on `console`, and raise if one fails."""
    maker, user = (SigningKey(secrets.token_bytes(32)) for _ in range(2))
    console.rule("22. Beneath: the venue signs its request, the maker verifies it")
    _show_request(console, user)
    console.rule("23. A user signs Delta orders")
    _show_delta_orders(console, user)
    console.rule("24. How fast, on this machine")
    _show_speed(console, maker, user)


def _show_request(console: Console, user: SigningKey) -> None:
    secret = secrets.token_bytes(32)
    signing = RequestSigner("venue", "key-1", secret)
    verifier = RequestVerifier({"venue": [("key-1", secret)]})
    now_ms = time.time_ns() // 1_000_000
    body = msgspec.json.encode(
        {"makerAsset": to_hex(_USDC), "takerAsset": to_hex(_WETH), "userAddress": to_hex(user.address)}
    )
    headers = signing.headers(now_ms, "POST", "/1/firm", body)
    for name, value in headers.items():
        console.print(f"  {name}: {value}", highlight=False, soft_wrap=True)
    domain, access_key, timestamp, signature = (value.encode() for value in headers.values())
    late_ms = now_ms + 45_000
    cases: list[tuple[str, str, bytes, bytes | None, bytes, int]] = [
        ("as sent", "", access_key, signature, body, now_ms),
        ("another body", SIGNATURE_HEADER, access_key, signature, body + b" ", now_ms),
        ("another key", ACCESS_KEY_HEADER, b"key-2", signature, body, now_ms),
        ("45 s late", TIMESTAMP_HEADER, access_key, signature, body, late_ms),
        ("no signature", SIGNATURE_HEADER, access_key, None, body, now_ms),
    ]
    table = Table("request", "answer", box=None)
    for name, expected, key, mac, sent, at_ms in cases:
        refused = ""
        try:
            verifier.verify(domain, key, timestamp, mac, b"POST", b"/1/firm", sent, at_ms)
            answer = "[green]verified[/green]"
        except AuthError as error:
            refused, answer = error.header, f"[red]{error.status}[/red] {error.detail}"
        if refused != expected:
            raise AssertionError(f"the request {name} is answered {answer}")
        table.add_row(name, answer)
    console.print(table)


def _show_delta_orders(console: Console, user: SigningKey) -> None:
    separator = delta_domain_separator(
        SHIPPED_CHAINS[1].delta_domain_name, SHIPPED_CHAINS[1].delta_domain_version, _CHAIN_ID, _CONTRACT
    )
    fee = pack_partner_and_fee(
        PartnerAndFee(partner=ZERO_ADDRESS, fee_bps=1, partner_takes_surplus=False, cap_surplus=True)
    )
    deadline = int(time.time()) + 3_600
    swap = DeltaOrder(
        owner=user.address,
        beneficiary=user.address,
        src_token=_WETH,
        dest_token=_USDC,
        src_amount=parse_units("1.5", 18),
        dest_amount=parse_units("2250", 6),
        expected_amount=parse_units("2270", 6),
        deadline=deadline,
        kind=KIND_SELL,
        nonce=secrets.randbits(64),
        partner_and_fee=fee,
        permit=b"",
        metadata=b"",
        bridge=SAME_CHAIN,
    )
    twap = TwapOrder(
        owner=user.address,
        beneficiary=user.address,
        src_token=_WETH,
        dest_token=_USDC,
        nonce=secrets.randbits(64),
        partner_and_fee=fee,
        deadline=deadline,
        interval=60,
        num_slices=5,
        dest_amount_per_slice=parse_units("450", 6),
        total_src_amount=parse_units("1.5", 18),
        permit=b"",
        metadata=b"",
        bridge=SAME_CHAIN,
    )
    table = Table("type", "order hash", "compact signature", box=None)
    for order_type, digest32 in (
        (ORDER, ORDER.compiled.digest_for(separator)(swap)),
        (TWAP_ORDER, TWAP_ORDER.compiled.digest_for(separator)(twap)),
    ):
        compact = to_compact64(*user.sign(digest32))
        if signer(digest32, compact) != user.address:
            raise AssertionError(f"{order_type.name} does not recover its owner")
        table.add_row(order_type.name, to_hex(digest32)[:26] + "...", to_hex(compact)[:26] + "... (64 bytes)")
    console.print(table)


def _show_speed(console: Console, maker: SigningKey, user: SigningKey) -> None:
    quote = RfqOrder(
        nonce_and_meta=pack_firm(user.address, secrets.randbits(96)),
        expiry=int(time.time()) + 180,
        maker_asset=_USDC,
        taker_asset=_WETH,
        maker=maker.address,
        taker=_CONTRACT,
        maker_amount=parse_units("2270", 6),
        taker_amount=parse_units("1.5", 18),
    )
    digest_of = RFQ_ORDER.compiled.digest_for(rfq_domain_separator("AUGUSTUS RFQ", _CHAIN_ID, _CONTRACT))
    digests: Iterator[bytes] = iter([secrets.token_bytes(32) for _ in range(2 * _ROUNDS)])
    rs64, recovery_id = maker.sign(digest_of(quote))
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("sign a digest", lambda: maker.sign(next(digests))),
        ("hash and sign an order", lambda: maker.sign(digest_of(quote))),
        ("recover a signer", lambda: recover_address(digest_of(quote), rs64, recovery_id)),
    )
    table = Table("operation", "microseconds (median)", box=None)
    for name, step in steps:
        table.add_row(name, f"{_median_us(step):.1f}")
    console.print(table)
    console.print("  The same with peers, as ratios: make bench", highlight=False, soft_wrap=True)


def _median_us(step: Callable[[], object]) -> float:
    taken_ns: list[int] = []
    for _ in range(_ROUNDS):
        started_ns = time.perf_counter_ns()
        step()
        taken_ns.append(time.perf_counter_ns() - started_ns)
    return median(taken_ns) / 1_000
