"""Shares a maker's funds among its orders: which orders are funded, and how much of each is fillable. Pure.

    the live orders of one (chain, maker, maker's asset) + balance and allowance -> an OrderBacking each

    makerBalance    min(balance, allowance, unfilled amount)
    SUSPENDED       while balance or allowance is below the unfilled amount
    reserved        min(unfilled amount, funds still free), the oldest PENDING order first
    swappable       min(reserved, makerBalance) while PENDING, else 0

The allowance of an order is the greater of the RFQ contract's allowance and the grant of the order's permit.
Each share reduces the free balance, and the free allowance down to 0.

A permit is tried, i.e. submitted in an eth_call, only if the maker's allowance alone falls short:

    permits that an account's orders need -> trial_calls -> trial_results -> raw units that each permit grants

The permit posted with an order is stored, and the filler passes the permit to the RFQ contract: a permit that
the token would accept is equivalent to an approval. A refused permit grants 0 and is no error: the permit may
already be used, which left an allowance; another permit may have used its nonce; or its deadline may have
passed, after which the permit is not tried again.

Source: spec 2.4, 2.5; spec 2.2.3, 2.3.11; interop.md 1.
Choice: A maker's funds go to its PENDING orders, the oldest first, orders of equal age by hash. DRAFT and
    SUSPENDED orders reserve nothing, so that an order larger than the funds takes none from later orders.
Choice: An order whose permit exceeds the free allowance uses up this allowance first, as a fill without the
    permit does.
Choice: `fillableBalance` is the unfilled amount, also after an order's end; `makerBalance` the least of it,
    balance and allowance; `reservedBalance` the order's share of the funds; `swappableBalance` the lesser of
    the last two while PENDING, else 0.
Choice: An order is SUSPENDED while balance or allowance is below its unfilled amount.
Choice: A permit counts for the orders posted with it alone.
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.messages.vocabulary import OtcState
from ...chain.holdings import Holding
from ...chain.port import EthCall
from ...store.rows import OtcOrderRow, amount_of
from ..served.token_permits import PERMIT_TRIALS, granted, is_over, permit_calls


def is_wanted(permit: bytes | None, remaining: int, holding: Holding | None, now_s: int) -> bool:
    """Whether an order needs its permit: the allowance does not suffice, and the permit has not expired.

    The result is False if the order has no permit, or if the maker's funds are not known.

    Args:
        remaining: unfilled raw units of the order.
        holding: the maker's balance and allowance; None if the token returns no numbers.
    """
    if not permit or holding is None:
        return False
    return holding.allowance < remaining and not is_over(permit, now_s)


def trial_calls(permits: Sequence[bytes], token: bytes, rfq: bytes) -> list[EthCall]:
    """Build the calls that try a maker's permits for a token, to find the amount that each permit grants.

    Args:
        permits: permits of 224 or 256 bytes, with the RFQ contract as their spender.
        rfq: address of the RFQ contract, 20 bytes; the calls that submit the permits have this sender.
    """
    calls: list[EthCall] = []
    for permit in permits:
        found = permit_calls(permit, token, rfq)
        calls += [found[name] for name in PERMIT_TRIALS]
    return calls


def trial_results(permits: Sequence[bytes], answers: Sequence[bytes | Exception]) -> dict[bytes, int]:
    """Return the raw units that each permit grants, by permit; 0 if the token refuses the permit.

    Args:
        answers: answers to the calls of `trial_calls`, in the same sequence.
    """
    found = {}
    for at, permit in enumerate(permits):
        some = answers[at * len(PERMIT_TRIALS) : (at + 1) * len(PERMIT_TRIALS)]
        found[permit] = granted(permit, dict(zip(PERMIT_TRIALS, some, strict=True))).amount or 0
    return found


_NOTHING = Holding(0, 0)


class Backed(Struct, frozen=True):
    """An order as input of `standings`, which divides the maker's funds among the maker's orders.

    Attributes:
        status: DRAFT, PENDING or SUSPENDED.
        remaining: unfilled raw units of the maker's asset.
        created_ms: time at which the order was stored, Unix milliseconds.
        permitted: raw units that the order's permit grants.
    """

    order_hash: bytes
    status: OtcState
    remaining: int
    created_ms: int
    permitted: int = 0


def backed(row: OtcOrderRow, permitted: int) -> Backed:
    """Return an order's row as input of `standings`.

    Args:
        permitted: raw units that the order's permit grants.
    """
    return Backed(row.order_hash, row.status, amount_of(row.remaining), row.created_ms, permitted)


class OrderBacking(Struct, frozen=True):
    """Status and balances of an order that follow from the maker's funds.

    Attributes:
        maker_balance: least of the maker's balance, its allowance and the order's unfilled amount, raw units.
        reserved: part of the maker's funds that is set aside for the order, raw units.
        swappable: raw units of the maker's asset that a taker can fill now.
    """

    status: OtcState
    maker_balance: int
    reserved: int
    swappable: int


def standings(orders: Sequence[Backed], holding: Holding | None) -> dict[bytes, OrderBacking]:
    """Compute the status and balances of all orders that share a maker's funds, by order hash.

    Args:
        orders: all open orders of one chain, maker and maker's asset, in any sequence.
        holding: the maker's balance and its allowance to the RFQ contract; None if the token's contract
            returns no numbers, which counts as 0.

    Guarantees: the sum of all reserved amounts is at most the balance; the sum over orders without a permit
        is at most the allowance.
    """
    there = _NOTHING if holding is None else holding
    balance, allowance = there.balance, there.allowance
    found = {}
    for order in sorted(orders, key=lambda order: (order.created_ms, order.order_hash)):
        # Of the whole funds, as in `is_backed`: only `reserved` divides the funds among the orders.
        usable = min(there.balance, max(there.allowance, order.permitted))
        maker_balance = min(usable, order.remaining)
        if order.status is OtcState.DRAFT or not is_backed(order, holding):
            status = OtcState.DRAFT if order.status is OtcState.DRAFT else OtcState.SUSPENDED
            found[order.order_hash] = OrderBacking(status, maker_balance, 0, 0)
            continue
        reserved = min(order.remaining, balance, max(allowance, order.permitted))
        balance -= reserved
        # At least 0: an order with a permit may reserve more than the allowance that is left.
        allowance = max(allowance - reserved, 0)
        # All of it is swappable: it is at most `maker_balance`, the unfilled amount of a PENDING order.
        found[order.order_hash] = OrderBacking(OtcState.PENDING, maker_balance, reserved, reserved)
    return found


def is_backed(order: Backed, holding: Holding | None) -> bool:
    """Whether the maker's funds cover an order's unfilled amount, regardless of the maker's other orders."""
    there = _NOTHING if holding is None else holding
    return min(there.balance, max(there.allowance, order.permitted)) >= order.remaining
