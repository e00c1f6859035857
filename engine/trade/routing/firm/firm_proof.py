"""Checks firm quotes on the chain: contract makers' signatures, the orders' state, and the makers' funds.

A quote's order must be new to the RFQ contract: a filled or cancelled order carries a valid signature too and
costs its maker nothing.

The amounts that an account gives of a token are summed over all its quotes. All is read at one block. Funds
of exactly the sum suffice.

Source: spec 3.5.9 to 3.5.12; EIP-1271; interop.md section 4; ARCHITECTURE.md, "Firm quotes".
Choice: A maker may show the same funds on all its pairs; a quote is its fault only where the funds do not
    cover that quote alone.
Choice: A contract maker that needs over MAKER_SIGNATURE_GAS_MAX to verify a signature has not signed.
Choice: A maker's funds are proven by a tried transfer, beyond balance and allowance: a token may be paused or
    bar the holder.
Choice: An unanswered check on the chain is `ServiceUnavailable`, never an unchecked quote.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import trio

from .....codecs.contracts.calldata import remaining, transfer_from
from .....codecs.eip712_orders.rfq import RfqOrder
from .....config import limits
from .....config.errors import BlockGone, ChainError, ServiceUnavailable
from .....config.timeouts import FIRM_CHAIN_S, RECENT_BLOCK_S
from .....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from .....feeds.firm.firm_check import FirmFailure, FirmFault
from ....chain.holdings import Holding, HoldingQuestion, holdings
from ....chain.port import Chain, EthCall, Header
from ....chain.together import all_of, both
from .firm_parts import Ask

_NEVER_SEEN = bytes(32)
_TRUE = b"\1"  # stands for the empty answer of a token whose transfers return nothing


async def prove(chain: Chain, rfq: bytes, asks: Sequence[Ask]) -> None:
    """Mark as failed the quotes that the chain would not fill: wrong signature, used order, or missing funds.

    The quotes are judged at a block that was the latest a moment ago, in one round trip; if one fails, all
    are judged at the latest block: a maker that was just funded is not at fault.

    Args:
        rfq: the contract that fills the orders and takes the makers' tokens.
        asks: requests that hold a quote.

    Raises:
        ServiceUnavailable: the chain does not answer, or its answer is malformed; no quote is marked.
    """
    held = [ask for ask in asks if ask.quote is not None]
    if not held:
        return
    try:
        with trio.fail_after(FIRM_CHAIN_S):
            failures = await _failures(chain, rfq, held)
    except (ChainError, trio.TooSlowError):
        raise ServiceUnavailable("the makers' funds cannot be read from the chain") from None
    for ask, failure in zip(held, failures, strict=True):
        if failure is not None:
            ask.fail(failure)


async def _failures(chain: Chain, rfq: bytes, asks: Sequence[Ask]) -> list[FirmFailure | None]:
    recent = await chain.recent_block(RECENT_BLOCK_S)
    failures: list[FirmFailure | None] | None = None
    with suppress(BlockGone):
        failures = await _failures_at(chain, rfq, asks, recent)
        if not any(failures):
            return failures
    latest = await chain.block()
    if latest is None:
        raise BlockGone("the latest block is not in the chain")
    if failures is not None and latest.hash == recent.hash:
        return failures
    return await _failures_at(chain, rfq, asks, latest)


async def _failures_at(
    chain: Chain, rfq: bytes, asks: Sequence[Ask], header: Header
) -> list[FirmFailure | None]:
    """Find for each quote, at one block, why the chain would not fill it; None if it would."""
    quotes = [ask.quote for ask in asks if ask.quote is not None]
    orders = [quote.order for quote in quotes]
    accounts = list(dict.fromkeys((order.maker_asset, order.maker) for order in orders))
    signing = {
        at: EthCall(
            quote.order.maker,
            # With the caller and the gas limit that the RFQ contract's own call will have.
            is_valid_signature_calldata(quote.digest32, quote.signature),
            rfq,
            gas_max=limits.MAKER_SIGNATURE_GAS_MAX,
        )
        for at, quote in enumerate(quotes)
        if not quote.is_proven
    }
    seen = [EthCall(rfq, remaining(quote.order.maker, quote.digest32)) for quote in quotes]
    taken = [
        EthCall(order.maker_asset, transfer_from(order.maker, order.taker, order.maker_amount), rfq)
        for order in orders
    ]
    reads = [[*signing.values()], [*seen, *taken]]
    questions = [HoldingQuestion(token, maker, rfq) for token, maker in accounts]
    (signed, traces), held = await both(
        lambda: all_of(lambda calls: _called(chain, calls, header), reads, len(reads)),
        lambda: holdings(chain, questions, header),
    )
    by_contract = dict(zip(signing, signed, strict=True))
    failures = [
        _failure(by_contract.get(at), left, moved)
        for at, (left, moved) in enumerate(zip(traces[: len(seen)], traces[len(seen) :], strict=True))
    ]
    return _short(orders, failures, dict(zip(accounts, held.found, strict=True)))


async def _called(chain: Chain, calls: Sequence[EthCall], header: Header) -> list[bytes | Exception]:
    return await chain.call_many(calls, header.hash) if calls else []


def _failure(
    signed: bytes | Exception | None, left: bytes | Exception, moved: bytes | Exception
) -> FirmFailure | None:
    """Judge the answers about one quote, without the sums of its maker's quotes.

    Args:
        signed: answer of a maker's contract about the signature; None if the maker's key has signed.
        left: answer of the RFQ contract to `remaining`; a malformed one counts as a used order.
        moved: answer of the token to the transfer to the taker.
    """
    if signed is not None and (isinstance(signed, Exception) or not is_magic_answer(signed)):
        return FirmFailure(FirmFault.INVALID, "signature: not the maker's")
    if left != _NEVER_SEEN:
        return FirmFailure(FirmFault.INVALID, "order: filled or cancelled before")
    if isinstance(moved, Exception) or not any(moved or _TRUE):
        return FirmFailure(FirmFault.UNFUNDED, "makerAmount cannot be taken: funds, allowance or token")
    return None


def _short(
    orders: Sequence[RfqOrder],
    failures: Sequence[FirmFailure | None],
    found: Mapping[tuple[bytes, bytes], Holding | None],
) -> list[FirmFailure | None]:
    """Add the failures of quotes whose sum, over those without a failure, exceeds their maker's funds.

    Args:
        found: (token, maker) -> the maker's holding; None if the token returned no number.
    """
    needed: Counter[tuple[bytes, bytes]] = Counter()
    for order, failure in zip(orders, failures, strict=True):
        if failure is None:
            needed[order.maker_asset, order.maker] += order.maker_amount
    judged = list(failures)
    for at, order in enumerate(orders):
        key = order.maker_asset, order.maker
        holding = found[key]
        usable = 0 if holding is None else holding.usable
        if judged[at] is None and (holding is None or usable < needed[key]):
            fault = FirmFault.UNFUNDED if usable < order.maker_amount else FirmFault.OVERDRAWN
            judged[at] = FirmFailure(fault, "balance or allowance is below makerAmount")
    return judged
