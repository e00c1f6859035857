"""Judges the signature of an RFQ order, and whether its nonceAndMeta is unpredictable.

Source: spec 3.5; EIP-2; interop.md section 1.
Choice: The upper 96 bits of a nonce are foreseeable if they lie close together, rise by equal steps, or
    change fewer than 40 bits over at least 8 quotes; a time stamp beside randomness passes.
Choice: Without a node a signature has to be the maker key's own; with --contract-maker it is reported as
    unchecked.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from .....codecs.eip712_orders.nonce_and_meta import firm_user
from .....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from .....codecs.eip712_orders.signing_names import NamedDomain, OrderDigests, rfq_others
from .....config.errors import InvalidSignature
from .....config.limits import FIRM_RANDOM_BITS, RFQ_DOMAIN_VERSION
from .....crypto.addresses import parse_address
from .....crypto.eip712 import signing_digest
from .....crypto.hexadecimal import to_hex
from .....crypto.secp256k1 import HALF_ORDER
from .....crypto.signatures import signer
from ..rules import Result, Said, fault, gap, judged, passed, skipped
from .firm import Quoted

NONCES_MIN = 8
_NONCES_APART = 1 << 40
_VARYING_BITS_MIN = 40
_is_form = re.compile(r"0x(?:[0-9a-f]{2})+").fullmatch
_is_any_case = re.compile(r"0[xX](?:[0-9a-fA-F]{2})+").fullmatch
_Y_PARITY_BIT = 1 << 255


class SigningDomain(Struct, frozen=True):
    """The EIP-712 domain for which a maker must sign its RFQ orders.

    Attributes:
        contract: address of the RFQ contract, 20 bytes.
    """

    name: str
    chain_id: int
    contract: bytes


def order_digest(order: dict[str, str | int], domain: SigningDomain) -> bytes:
    """Return the 32-byte EIP-712 digest of a well-formed RFQ order."""
    signing = _signing(order, domain)
    return signing_digest(signing.here.separator, signing.struct_hash32)


def _signing(order: dict[str, str | int], domain: SigningDomain) -> OrderDigests:
    values = RfqOrder(
        nonce_and_meta=int(order["nonceAndMeta"]),
        expiry=int(order["expiry"]),
        maker_asset=parse_address(order["makerAsset"]),
        taker_asset=parse_address(order["takerAsset"]),
        maker=parse_address(order["maker"]),
        taker=parse_address(order["taker"]),
        maker_amount=int(order["makerAmount"]),
        taker_amount=int(order["takerAmount"]),
    )
    here = NamedDomain(domain.name, RFQ_DOMAIN_VERSION, domain.chain_id, domain.contract)
    return OrderDigests(RFQ_ORDER.compiled.hash_struct(values), here, rfq_others(here))


def judge_signature(quoted: Quoted, domain: SigningDomain | None, *, is_contract: bool) -> Iterator[Result]:
    """Judge the signature of an order: form, length, v, low s, and signer.

    Args:
        domain: EIP-712 domain of the order; None if the options lack it: the signer is then not judged.
        is_contract: whether the maker is a contract, which defines length and signer itself.
    """
    where, text = quoted.asking.where, quoted.order["signature"]
    yield judged("firm.signature-form", _is_form(text), where, "0x and lower-case hexadecimal", text)
    if is_contract:
        for check in ("length", "low-s", "v"):
            yield skipped(f"firm.signature-{check}", "the maker is a contract")
        return
    if not _is_any_case(text):
        return
    raw = bytes.fromhex(text[2:])
    right_length = len(raw) in (64, 65)
    got = Said(f"{len(raw)} bytes")
    yield judged("firm.signature-length", right_length, where, "65 bytes, or 64 in the compact form", got)
    if not right_length:
        return
    s = int.from_bytes(raw[32:64], "big")
    if len(raw) == 64:
        s &= ~_Y_PARITY_BIT
    else:
        yield judged("firm.signature-v", raw[64] in (27, 28), where, "v of 27 or 28", raw[64])
    yield judged("firm.signature-low-s", s <= HALF_ORDER, where, "s in the lower half of the order", hex(s))
    # A high s is reported once: `signer` would refuse it too, as if the signer were another.
    if s > HALF_ORDER:
        return
    if domain is None:
        yield skipped("firm.signature", "needs --chain-id and --rfq-contract")
        return
    yield from _judge_signer(quoted, raw, domain)


def _judge_signer(quoted: Quoted, raw: bytes, domain: SigningDomain) -> Iterator[Result]:
    order, where = quoted.order, quoted.asking.where
    expected = (
        f"the key of maker {order['maker']} over domain {domain.name!r}, version 1, chain {domain.chain_id}, "
        f"contract {to_hex(domain.contract)}"
    )
    try:
        found = signer(order_digest(order, domain), raw)
    except InvalidSignature as error:
        yield fault("firm.signature", where, expected, Said(error.detail))
        return
    maker = parse_address(order["maker"])
    got = f"recovers {to_hex(found)}"
    if found != maker and (other := _signing(order, domain).other_of(raw, maker)):
        got += f"; the maker's key signed over the domain {other}"
    yield judged("firm.signature", found == maker, where, expected, Said(got))


def judge_user(quoted: Quoted) -> Iterator[Result]:
    """Judge whether an order's nonceAndMeta ends with the user's 160 bits and has non-zero upper 96 bits."""
    where, user = quoted.asking.where, quoted.asking.body["userAddress"].lower()
    found = to_hex(firm_user(quoted.nonce_and_meta))
    yield judged("firm.user", found == user, where, f"{user} in the lower 160 bits", Said(found))
    upper = _random_part(quoted.nonce_and_meta)
    yield judged("firm.nonce-set", upper, where, "random upper 96 bits", Said("all of them zero"))


def judge_nonces(nonces: Sequence[int], where: str, distinct_check: str) -> Iterator[Result]:
    """Judge whether the random parts (upper 96 bits) of quotes' nonces repeat or show a pattern.

    Args:
        nonces: nonceAndMeta of each quote, in the sequence of the requests.
        distinct_check: id of the check that reports repetition; patterns are judged only if this id is
            `firm.nonce-distinct`.
    """
    upper = [_random_part(nonce) for nonce in nonces]
    if len(upper) < 2:
        yield gap(distinct_check, "fewer than two quotes")
        return
    twice = len(upper) - len(set(upper))
    expected = "another random part in every quote"
    yield judged(distinct_check, not twice, where, expected, Said(f"{twice} of {len(upper)} repeated"))
    if distinct_check != "firm.nonce-distinct":
        return
    if len(upper) < NONCES_MIN:
        yield gap("firm.nonce-unforeseeable", f"fewer than {NONCES_MIN} quotes")
        return
    why = _pattern(upper)
    if why:
        yield fault("firm.nonce-unforeseeable", where, "unpredictable upper 96 bits", Said(why))
    else:
        yield passed("firm.nonce-unforeseeable", where)


def _random_part(nonce_and_meta: int) -> int:
    return nonce_and_meta >> 160


def _pattern(upper: Sequence[int]) -> str:
    """Describe how the random parts (upper 96 bits) of nonces are predictable; empty if they are not."""
    if max(upper) - min(upper) < _NONCES_APART:
        return f"{len(upper)} of them within {max(upper) - min(upper)}: a counter or a clock?"
    steps = {(after - before) % (1 << FIRM_RANDOM_BITS) for before, after in pairwise(upper)}
    if len(steps) == 1:
        return f"each is the one before plus {steps.pop()}"
    varying = 0
    for number in upper:
        varying |= number ^ upper[0]
    if varying.bit_count() < _VARYING_BITS_MIN:
        return f"only {varying.bit_count()} bits ever change over {len(upper)} quotes"
    return ""
