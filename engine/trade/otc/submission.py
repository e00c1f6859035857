"""Checks of a posted OTC order against the chain, all at one block. Pure.

    submission_calls   calls to the contracts
    answered           their answers -> Answered: signature, funds, unfilled amount
    new_row            Answered and the maker's other live orders -> the order's first row

    makerAsset, takerAsset   code at the address that returns a balance             else InvalidInput
    makerAsset               code that returns an allowance                         else InvalidInput
    remaining                0 never seen; 1 closed: OrderClosed; else the unfilled amount plus 1
    signature                not of the maker's key and not accepted by its contract: DRAFT; no contract:
                             InvalidSignature
    balance, allowance       below the unfilled amount: SUSPENDED
    permit                   tried as if the RFQ contract submitted it; refused: grants 0

Source: spec 2.5.2, 2.5.3, 2.14; interop.md 1.
Choice: An order with nothing left on chain is refused; a partly filled one is accepted with its earlier
    fills.
Choice: A contract that gives no balance or allowance within a million units of gas is no token.
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES
from ....codecs.contracts.calldata import allowance, balance_of, cancelled_until, remaining
from ....codecs.messages.vocabulary import OtcState
from ....config.errors import InvalidInput, OrderClosed, ServiceUnavailable
from ....config.limits import CHAIN_TOKEN_GAS_MAX
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.holdings import Holding
from ...chain.port import EthCall
from ...store.rows import NEVER_S, OtcFill, OtcOrderRow, amount32, amount_of
from ..served.signed_by import SignatureState, signature_call, signature_state
from ..served.token_permits import Answers, granted, permit_calls
from .balances import Backed, OrderBacking, backed, standings
from .document import OtcDocument
from .terms import OtcTerms

_CLOSED = 1


class Answered(Struct, frozen=True):
    """State on chain of a posted order: signature, the maker's funds, permit and unfilled amount.

    Attributes:
        is_signed: whether the signature is valid; if not, the maker's contract may still accept it later.
        holding: the maker's balance of the sold token and its allowance to the RFQ contract.
        permitted: raw units that the order's permit grants.
        left: unfilled raw units of the maker's asset; None if the contract has never seen the order.
    """

    is_signed: bool
    holding: Holding
    permitted: int
    left: int | None

    def backs(self, amount: int) -> bool:
        """Whether balance, and allowance or permit, cover an amount of the maker's asset, in raw units."""
        return min(self.holding.balance, max(self.holding.allowance, self.permitted)) >= amount


class Begun(Struct, frozen=True):
    """Fills that an OTC order had before it was posted to the venue.

    Attributes:
        filled_before: raw units of the maker's asset that were filled before the indexer followed the chain.
        fills: fills since then, as indexed.
    """

    filled_before: int = 0
    fills: tuple[OtcFill, ...] = ()


def submission_calls(terms: OtcTerms, rfq: bytes) -> dict[str, EthCall]:
    """Build the contract calls that check a posted order on chain: name of the check -> call.

    Args:
        rfq: the RFQ contract, 20 bytes.
    """
    order = terms.order
    calls = {
        "makerAsset": _question(order.maker_asset, balance_of(order.maker)),
        "takerAsset": _question(order.taker_asset, balance_of(order.maker)),
        "allowance": _question(order.maker_asset, allowance(order.maker, rfq)),
        "remaining": EthCall(rfq, remaining(order.maker, terms.order_hash)),
        "cancelledUntil": EthCall(rfq, cancelled_until(order.maker)),
    }
    signing = signature_call(terms.signature, rfq)
    if signing is not None:
        calls["signature"] = signing
    if terms.permit:
        calls |= permit_calls(terms.permit, order.maker_asset, rfq)
    return calls


def answered(terms: OtcTerms, answers: Answers, *, without_code: Sequence[str], has_code: bool) -> Answered:
    """Judge the chain's answers about a posted order; refuse an order that can never be filled.

    Args:
        answers: answers to the calls of `submission_calls`, by name.
        without_code: names of the asset members (`makerAsset`, `takerAsset`) whose address has no code.
        has_code: whether the maker is a contract.

    Raises:
        InvalidInput: an asset is no token.
        OrderClosed: the order is filled or cancelled.
        InvalidSignature: the signature is not the maker's, and cannot become valid.
        ServiceUnavailable: the RFQ contract does not answer.
    """
    order = terms.order
    balance, _ = (
        _amount(answers[field], "that tells no balance", field, asset, has_code=field not in without_code)
        for field, asset in (("makerAsset", order.maker_asset), ("takerAsset", order.taker_asset))
    )
    allowed = _amount(answers["allowance"], "without allowances", "makerAsset", order.maker_asset)
    left = left_of(answers["remaining"], terms)
    _check_until(answers["cancelledUntil"], terms)
    state = signature_state(terms.signature, answers.get("signature"), has_code=has_code)
    permitted = (granted(terms.permit, answers).amount or 0) if terms.permit else 0
    return Answered(state is SignatureState.SIGNED, Holding(balance, allowed), permitted, left)


def _check_until(answer: bytes | Exception, terms: OtcTerms) -> None:
    """Refuse an order that its maker's bulk cancellation on chain covers.

    A bulk cancellation cancels all of a maker's orders that expire at or before a given time.

    Args:
        answer: the RFQ contract's answer to `cancelledUntil`; an error or a 0 refuses no order.

    Raises:
        OrderClosed: the order is cancelled.
    """
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        return  # an RFQ contract without bulk cancellations: the check of `remaining` suffices
    until = int.from_bytes(answer[:WORD_BYTES], "big")
    if until and (not terms.order.expiry or terms.order.expiry <= until):
        raise OrderClosed(field="expiry", expected=f"a time after {until}", got=terms.order.expiry)


def left_of(answer: bytes | Exception, terms: OtcTerms) -> int | None:
    """Decode the contract's answer to `remaining` into the order's unfilled raw units.

    Returns:
        Unfilled raw units of the maker's asset; None if the contract has never seen the order.

    Raises:
        OrderClosed: the order is filled or cancelled.
        ServiceUnavailable: the contract does not answer.
    """
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        raise ServiceUnavailable("the RFQ contract does not answer")
    kept = int.from_bytes(answer[:WORD_BYTES], "big")
    if kept == _CLOSED:
        raise OrderClosed(field="orderHash", got=to_hex(terms.order_hash))
    return kept - 1 if kept else None


def begun(maker_amount: int, left: int | None, fills: Sequence[OtcFill]) -> Begun:
    """Split the fills that an order had before its post into indexed fills and an amount filled earlier.

    Args:
        maker_amount: raw units that the maker offers in the whole order.
        left: unfilled raw units as the contract reports at the indexed height; None if the contract had not
            seen the order.
        fills: indexed fills up to that height.
    """
    if left is None:
        return Begun()
    known = sum(amount_of(fill.maker_amount) for fill in fills)
    return Begun(max(maker_amount - left - known, 0), tuple(fills))


def new_row(
    terms: OtcTerms, state: Answered, start: Begun, others: Sequence[OtcOrderRow], chain_id: int, now_ms: int
) -> OtcOrderRow:
    """Build the first row of a posted order.

    Args:
        state: state of the order on chain.
        start: fills of the order before its post.
        others: the maker's other open orders of the same asset, which share its funds.
        now_ms: time of the post, Unix milliseconds.
    """
    order = terms.order
    # By the indexed fills, as in `step_from_logs`, and not by `state.left`: that amount is of a later block,
    # whose fills the indexer has still to bring.
    filled = start.filled_before + sum(amount_of(fill.maker_amount) for fill in start.fills)
    left = max(order.maker_amount - filled, 0)
    status = OtcState.PENDING if state.is_signed else OtcState.DRAFT
    this = Backed(terms.order_hash, status, left, now_ms, state.permitted)
    standing = _standing(this, others, state.holding)
    return OtcOrderRow(
        order_hash=terms.order_hash,
        shard=terms.order_hash[0],
        chain_id=chain_id,
        maker=order.maker,
        taker=order.taker,
        taker_from_meta=terms.taker_from_meta,
        maker_asset=order.maker_asset,
        taker_asset=order.taker_asset,
        maker_amount=amount32(order.maker_amount),
        taker_amount=amount32(order.taker_amount),
        type=terms.type,
        created_ms=now_ms,
        expires_s=order.expiry or NEVER_S,
        version=1,
        status=standing.status,
        updated_ms=now_ms,
        remaining=amount32(left),
        maker_balance=amount32(standing.maker_balance),
        reserved=amount32(standing.reserved),
        swappable=amount32(standing.swappable),
        transaction_hash=start.fills[-1].tx_hash if start.fills else None,
        is_final=False,
    )


def new_document(terms: OtcTerms, start: Begun) -> OtcDocument:
    """Build the document of a posted order, i.e. the signed members that are stored beside its row."""
    return OtcDocument(
        nonce_and_meta=amount32(terms.order.nonce_and_meta),
        expiry=terms.order.expiry,
        signature=terms.shown_signature,
        permit=terms.permit,
        filled_before=amount32(start.filled_before),
    )


def _standing(this: Backed, others: Sequence[OtcOrderRow], holding: Holding) -> OrderBacking:
    """Compute the status and balances of a new order, given the maker's other open orders.

    The permits of the other orders are not tried: the stored `maker_balance` of each order is taken as the
    amount that its permit grants.
    """
    rows = (row for row in others if row.order_hash != this.order_hash)
    claims = [backed(row, amount_of(row.maker_balance)) for row in rows]
    return standings([*claims, this], holding)[this.order_hash]


def _question(token: bytes, data: bytes) -> EthCall:
    return EthCall(token, data, gas_max=CHAIN_TOKEN_GAS_MAX)


def _amount(answer: bytes | Exception, fault: str, field: str, asset: bytes, *, has_code: bool = True) -> int:
    if not has_code or isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        there = f"a contract {fault}" if has_code else "no contract"
        raise InvalidInput(field=field, expected="an ERC-20 token", got=f"{there} at {to_checksum(asset)}")
    return int.from_bytes(answer[:WORD_BYTES], "big")
