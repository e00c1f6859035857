"""Checks firm quotes on the chain: contract makers' signatures, the orders' state, and the makers' funds.

A quote's order must be new to the RFQ contract: a filled or cancelled order carries a valid signature too and
costs its maker nothing.

The amounts that an account gives of a token are summed over all its quotes. All balances and allowances are
read in one batched call at a pinned block. Funds of exactly the sum suffice.

Source: spec 3.5.9 to 3.5.12; EIP-1271; interop.md section 4; ARCHITECTURE.md, "Firm quotes".
Choice: A maker may show the same funds on all its pairs; a quote is its fault only where the funds do not
    cover that quote alone.
Choice: A contract maker that needs over MAKER_SIGNATURE_GAS_MAX to verify a signature has not signed.
Choice: A maker's funds are proven by a tried transfer, beyond balance and allowance: a token may be paused or
    bar the holder.
Choice: An unanswered check on the chain is `ServiceUnavailable`, never an unchecked quote.
"""

from collections.abc import Iterable, Sequence

import trio

from .....codecs.contracts.calldata import remaining, transfer_from
from .....config import limits
from .....config.errors import ChainError, ServiceUnavailable
from .....config.timeouts import FIRM_CHAIN_S
from .....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from .....feeds.firm.firm_check import FirmFailure, FirmFault
from ....chain.holdings import HoldingQuestion, holdings
from ....chain.port import Chain, EthCall
from .firm_parts import Ask

_NEVER_SEEN = bytes(32)
_TRUE = b"\1"  # stands for the empty answer of a token whose transfers return nothing


async def prove(chain: Chain, rfq: bytes, asks: Sequence[Ask]) -> None:
    """Mark as failed the quotes that the chain would not fill: wrong signature, used order, or missing funds.

    Args:
        rfq: the contract that fills the orders and takes the makers' tokens.
        asks: requests that hold a quote.

    Raises:
        ServiceUnavailable: the chain does not answer, or its answer is malformed; quotes that failed before
            stay failed.
    """
    try:
        with trio.fail_after(FIRM_CHAIN_S):
            await _ask_contracts(chain, rfq, asks)
            await _look_for_traces(chain, rfq, [ask for ask in asks if ask.quote is not None])
            await _count_funds(chain, rfq, [ask for ask in asks if ask.quote is not None])
    except (ChainError, trio.TooSlowError):
        raise ServiceUnavailable("the makers' funds cannot be read from the chain") from None


async def _ask_contracts(chain: Chain, rfq: bytes, asks: Iterable[Ask]) -> None:
    """Verify the signatures of makers that are contracts by calls to these contracts.

    A quote whose signature its maker's contract does not accept is marked as failed. The calls have the
    caller and the gas limit that the RFQ contract's own calls will have.
    """
    unproven = [(ask, ask.quote) for ask in asks if ask.quote is not None and not ask.quote.is_proven]
    if not unproven:
        return
    calls = [
        EthCall(
            quote.order.maker,
            is_valid_signature_calldata(quote.digest32, quote.signature),
            rfq,
            gas_max=limits.MAKER_SIGNATURE_GAS_MAX,
        )
        for _, quote in unproven
    ]
    for (ask, _), answer in zip(unproven, await chain.call_many(calls), strict=True):
        if isinstance(answer, Exception) or not is_magic_answer(answer):
            ask.fail(FirmFailure(FirmFault.INVALID, "signature: not the maker's"))


async def _look_for_traces(chain: Chain, rfq: bytes, asks: Sequence[Ask]) -> None:
    """Mark as failed each quote with a used order, or with a transfer to the taker that would fail.

    A used order was filled or cancelled; a malformed answer of the RFQ contract counts as a used order.
    """
    orders = [(ask.order, ask.quote.digest32) for ask in asks if ask.quote is not None]
    seen = [EthCall(rfq, remaining(order.maker, digest32)) for order, digest32 in orders]
    taken = [
        EthCall(order.maker_asset, transfer_from(order.maker, order.taker, order.maker_amount), rfq)
        for order, _ in orders
    ]
    answers = await chain.call_many([*seen, *taken])
    for ask, left, moved in zip(asks, answers[: len(seen)], answers[len(seen) :], strict=True):
        if left != _NEVER_SEEN:
            ask.fail(FirmFailure(FirmFault.INVALID, "order: filled or cancelled before"))
        elif isinstance(moved, Exception) or not any(moved or _TRUE):
            ask.fail(
                FirmFailure(FirmFault.UNFUNDED, "makerAmount cannot be taken: funds, allowance or token")
            )


async def _count_funds(chain: Chain, rfq: bytes, asks: Sequence[Ask]) -> None:
    needed: dict[tuple[bytes, bytes], int] = {}
    for ask in asks:
        key = ask.order.maker_asset, ask.order.maker
        needed[key] = needed.get(key, 0) + ask.order.maker_amount
    questions = [HoldingQuestion(token, maker, rfq) for token, maker in needed]
    found = (await holdings(chain, questions)).found
    lacking = {
        key: 0 if holding is None else holding.usable
        for (key, amount), holding in zip(needed.items(), found, strict=True)
        if holding is None or holding.usable < amount
    }
    for ask in asks:
        usable = lacking.get((ask.order.maker_asset, ask.order.maker))
        if usable is None:
            continue
        fault = FirmFault.UNFUNDED if usable < ask.order.maker_amount else FirmFault.OVERDRAWN
        ask.fail(FirmFailure(fault, "balance or allowance is below makerAmount"))
