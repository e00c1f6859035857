"""What an order needs of its owner now, and which of it is not there. Pure.

    order + what is settled of it -> Needs     for its next settlement, and for all that is left
    Needs + what the chain says   -> lacks     balance | allowance | deposit, each with needed and there

    source            there has to be                      and the Delta contract may take
    a token           the next part's amount               all that is left
    with a permit     the next part's amount               (whatever the permit grants)
    the native token  the next part's amount, deposited    (it has it already)

Of a purchase the amount is what it is expected to cost, or where nothing is expected the most that it may:
the contract takes what is spent.

A partially fillable order needs funds for all that is left, as an OTC order does.

Source: spec 1.11.19 and 1.11.20.
Choice: Funds are judged for each order by itself, without its owner's other orders: the first settlement
    suspends the others.
Choice: An order with a permit needs the balance alone: the permit was tried at submission, and each
    settlement is simulated with it.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from ....codecs.eip712_orders.delta import KIND_BUY, DeltaOrder
from ....codecs.trading_token import NATIVE_TOKEN
from ....crypto.addresses import to_checksum
from ...chain.holdings import Holding
from .fillable import still_given
from .terms import DeltaPart, SettledOrder, next_part


class Fund(Enum):
    """What an owner has to have."""

    BALANCE = "balance"
    ALLOWANCE = "allowance"
    DEPOSIT = "deposit"


class Needs(Struct, frozen=True):
    """What an order needs now, raw units of its source.

    Attributes:
        part: that the next settlement takes, at most.
        allowance: that the Delta contract may take; 0 where no approval is needed.
        is_native: the part is deposited with Delta.
    """

    part: int
    allowance: int
    is_native: bool


class MissingFund(Struct, frozen=True):
    """Something that is not there.

    Attributes:
        there: raw units; None where the token's contract does not tell.
    """

    fund: Fund
    needed: int
    there: int | None


def needs_of(order: SettledOrder, filled: int) -> Needs:
    """What an order needs.

    Args:
        filled: what is settled: of the fixed side, or slices. All of it: then nothing is needed.
    """
    part = next_part(order, filled)
    is_native = order.src_token == NATIVE_TOKEN
    if part is None:
        return Needs(0, 0, is_native)
    is_approved = not is_native and not order.permit
    return Needs(source_of(order, part), still_given(order, filled) if is_approved else 0, is_native)


def source_of(order: SettledOrder, part: DeltaPart) -> int:
    """Raw units of its source that the owner has to have for a part of an order."""
    is_purchase = isinstance(order, DeltaOrder) and order.kind == KIND_BUY
    return min(part.src_amount, part.expected) if is_purchase and part.expected else part.src_amount


def lacks_of(needs: Needs, found: Holding | None) -> tuple[MissingFund, ...]:
    """What is not there.

    Args:
        found: balance and allowance, of native tokens the deposit as balance; None where the token's contract
            answers nothing that could be a number. That is as good as nothing: it could not be settled.
    """
    fund = Fund.DEPOSIT if needs.is_native else Fund.BALANCE
    if found is None:
        return (MissingFund(fund, needs.part, None),) if needs.part else ()
    lacks = []
    if found.balance < needs.part:
        lacks.append(MissingFund(fund, needs.part, found.balance))
    if found.allowance < needs.allowance:
        lacks.append(MissingFund(Fund.ALLOWANCE, needs.allowance, found.allowance))
    return tuple(lacks)


def told_of(lacks: Sequence[MissingFund], src_token: bytes) -> list[tuple[str, str]]:
    """(code, sentence) of each, as `explain` tells them."""
    token = to_checksum(src_token)
    return [(f"{lack.fund.value}Lacks", _sentence(lack, token)) for lack in lacks]


def _sentence(lack: MissingFund, token: str) -> str:
    if lack.there is None:
        return f"the contract of {token} does not tell what the owner has; {lack.needed} is needed"
    match lack.fund:
        case Fund.BALANCE:
            there = f"the owner has {lack.there} of {token}"
            return f"{there}, and the next settlement takes {lack.needed}"
        case Fund.ALLOWANCE:
            there = f"the Delta contract may take {lack.there} of {token}"
            return f"{there}, and what is left of the order takes {lack.needed}"
        case Fund.DEPOSIT:
            there = f"the owner has deposited {lack.there} wei"
            return f"{there}, and the next settlement takes {lack.needed}"
