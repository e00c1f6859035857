"""Check of an answer to POST /firm: an independent computation of the amounts, and the signature.

The walk through the levels follows spec 3.8.4 to 3.8.13 in fractions and shares no code with `feeds.fill`.
"""

import json
from fractions import Fraction
from math import ceil, floor

from bench.maker_work import (
    BASE_DECIMALS,
    CHAIN_ID,
    CONTRACT,
    MAKER,
    TAKER,
    Work,
    base_address,
    grid,
    quote_address,
    quote_decimals,
)
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.config.errors import CambistError
from cambist.crypto.signatures import signer

_DIGEST_OF = RFQ_ORDER.compiled.digest_for(
    rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, bytes.fromhex(CONTRACT[2:]))
)
_ADDRESS_BITS = 160
EXPIRY_AHEAD_S_MIN = 120


def fault(parameters: Work, answer: bytes, now_s: int, versions: int = 1) -> str:
    """Return what is wrong with an answer to POST /firm as text; empty if the answer is right.

    Args:
        parameters: the request's parameters.
        now_s: arrival of the answer, Unix seconds.
        versions: number of price versions that may have been in force.
    """
    try:
        order = json.loads(answer)["order"]
        numbers = int(order["nonceAndMeta"]), int(order["makerAmount"]), int(order["takerAmount"])
        signature = bytes.fromhex(order["signature"][2:])
    except (ValueError, KeyError, TypeError) as error:
        return f"no order: {error!r} in {answer[:200]!r}"
    nonce_and_meta, maker_amount, taker_amount = numbers
    base, quote = base_address(parameters.pair), quote_address(parameters.pair)
    gives, takes = (base, quote) if parameters.gives_base else (quote, base)
    expected = {"makerAsset": gives, "takerAsset": takes, "maker": MAKER, "taker": TAKER}
    for name, value in expected.items():
        if order[name].lower() != value:
            return f"{name} is {order[name]}, not {value}"
    if nonce_and_meta % (1 << _ADDRESS_BITS) != int(parameters.user, 16):
        return f"nonceAndMeta {nonce_and_meta} is not the user's, {parameters.user}"
    if order["expiry"] < now_s + EXPIRY_AHEAD_S_MIN:
        return f"expiry {order['expiry']} is too near at {now_s}"
    right = [amounts(parameters, version) for version in range(versions)]
    if (maker_amount, taker_amount) not in right:
        return f"amounts {maker_amount}, {taker_amount}: expected {right[0]} for {parameters}"
    digest32 = _DIGEST_OF(
        RfqOrder(
            nonce_and_meta,
            order["expiry"],
            bytes.fromhex(gives[2:]),
            bytes.fromhex(takes[2:]),
            bytes.fromhex(MAKER[2:]),
            bytes.fromhex(TAKER[2:]),
            maker_amount,
            taker_amount,
        )
    )
    try:
        is_makers = signer(digest32, signature) == bytes.fromhex(MAKER[2:])
    except CambistError as error:
        return f"no signature: {error}"
    return "" if is_makers else "the signature is not the maker's"


def amounts(parameters: Work, version: int = 0) -> tuple[int, int]:
    """Compute (maker amount, taker amount) of a firm quote, raw units, by the levels of the maker's book.

    Args:
        version: version of the book's prices.
    """
    prices = grid(parameters.pair, version)
    side = prices.asks if parameters.gives_base else prices.bids
    assert isinstance(side, tuple)
    base_unit, quote_unit = 10**BASE_DECIMALS, 10 ** quote_decimals(parameters.pair)
    left = Fraction(parameters.amount, base_unit if parameters.amount_is_base else quote_unit)
    other = Fraction(0)
    for price_text, amount_text in side:
        price, amount = Fraction(price_text), Fraction(amount_text)
        if parameters.amount_is_base:
            taken = min(left, amount)
            left, other = left - taken, other + taken * price
        else:
            taken = min(left, amount * price)
            left, other = left - taken, other + taken / price
        if not left:
            break
    else:
        raise ValueError(f"beyond the depth: {parameters}")
    unit = quote_unit if parameters.amount_is_base else base_unit
    if parameters.names_maker_amount:
        return parameters.amount, ceil(other * unit)
    return floor(other * unit), parameters.amount


def nonce(answer: bytes) -> int:
    """Return the low 64 of the random bits in a firm quote's nonceAndMeta; -1 without a nonceAndMeta."""
    start = answer.find(b'"nonceAndMeta":"') + 16
    end = answer.find(b'"', start)
    if start < 16 or end < 0 or not answer[start:end].isdigit():
        return -1
    return int(answer[start:end]) >> _ADDRESS_BITS & (1 << 64) - 1
