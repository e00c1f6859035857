"""Computes the funds that an order needs from its owner now, and which of them are missing. Pure.

    order + its settled amount     -> Needs     for its next settlement, and for its unfilled amount
    Needs + holding on the chain   -> MissingFund, for each kind of funds that is short: needed and present

    source            needed balance                       needed allowance for the Delta contract
    a token           the next part's amount               the unfilled amount
    a vault           shares that give the amount          the same shares
    with a permit     the next part's amount               (none: the permit grants it)
    the native token  the next part's amount, deposited    (none: the contract holds the deposit)

The balance that a purchase needs is its expected cost, or the most that it may cost if the order names no
expected cost, since the contract takes only the spent amount. Its allowance is the most that it may cost.

The next part of a partially fillable order is its unfilled amount, as with an OTC order.

An order from a vault needs shares of the vault, and a vault that gives the source for at most the signed
number of shares (`vault`). A fault of the vault is reported only if the owner has enough shares and
allowance.

Source: spec 1.11.19 and 1.11.20.
Choice: Funds are judged for each order by itself, without its owner's other orders. If the first settlement
    leaves too little for the others, they are suspended then.
Choice: An order with a permit needs the balance alone: the permit was tried at submission, and each
    settlement is simulated with it.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from .....codecs.eip712_orders.delta import ProductiveOrder
from .....codecs.messages.vocabulary import Side
from .....codecs.trading_token import NATIVE_TOKEN
from .....crypto.addresses import to_checksum
from ....chain.holdings import Holding
from .fillable import shares_at_most, still_given
from .terms import DeltaPart, SettledOrder, next_part, side_of
from .vault import VaultWorth


class Fund(Enum):
    """Kinds of funds that an order needs: its owner's token balance, allowance or native deposit, or a vault.

    VAULT is missing if an order's vault does not give the source token, BOUND if the vault takes more shares
    than the owner has signed.
    """

    BALANCE = "balance"
    ALLOWANCE = "allowance"
    DEPOSIT = "deposit"
    VAULT = "vault"
    BOUND = "bound"


class MissingFund(Struct, frozen=True):
    """A kind of funds of which an order has too little.

    Attributes:
        needed: raw units that the order needs; for BOUND, shares that the vault takes.
        there: raw units that the owner has; for BOUND, shares that the owner has signed; for VAULT, 0. None
            if the contract of the token or of the vault does not report the number.
    """

    fund: Fund
    needed: int
    there: int | None


class Needs(Struct, frozen=True):
    """Funds that an order needs from its owner now, raw units of the token that the contract takes.

    Attributes:
        part: amount that the owner's balance or deposit needs for the next settlement.
        allowance: allowance that the Delta contract needs for the unfilled amount; 0 if no approval is
            needed.
        is_native: whether the settlement takes the part from native tokens that the owner has deposited in
            the Delta contract.
        vault: fault of the vault from which the order sells; None without a vault or without a fault.
    """

    part: int
    allowance: int
    is_native: bool
    vault: MissingFund | None = None


def needs_of(order: SettledOrder, filled: int, worth: VaultWorth | None = None) -> Needs:
    """Compute the funds that an order needs from its owner now; a fully settled order needs nothing.

    Args:
        filled: settled raw units of the source token (SELL) or the destination token (BUY); of a TWAP, the
            number of settled slices.
        worth: statement of the vault from which the order sells; None if the vault was not read.
    """
    part = next_part(order, filled)
    is_native = order.src_token == NATIVE_TOKEN
    if part is None:
        return Needs(0, 0, is_native)
    if isinstance(order, ProductiveOrder):
        return _shares_of(order, part, worth)
    is_approved = not is_native and not order.permit
    return Needs(source_of(order, part), still_given(order, filled) if is_approved else 0, is_native)


def _shares_of(order: ProductiveOrder, part: DeltaPart, worth: VaultWorth | None) -> Needs:
    """Compute the shares that a part of an order needs, and the vault's fault, if any."""
    most = shares_at_most(order, part.amount)
    if worth is None or worth.amount != part.amount:
        return Needs(most, 0 if order.permit else most, is_native=False)
    fault = None
    if not worth.is_told:
        fault = MissingFund(Fund.VAULT, part.src_amount, None)
    elif worth.shares > most:
        fault = MissingFund(Fund.BOUND, worth.shares, most)
    elif not worth.is_given:
        fault = MissingFund(Fund.VAULT, worth.assets, 0)
    shares = min(worth.shares, most) or most
    return Needs(shares, 0 if order.permit else shares, is_native=False, vault=fault)


def source_of(order: SettledOrder, part: DeltaPart) -> int:
    """Compute the raw units of the source token that the owner needs for a part of an order.

    For a purchase, the amount is the part's expected cost if the order names one, else the part's greatest
    cost.
    """
    is_purchase = side_of(order) is Side.BUY
    return min(part.src_amount, part.expected) if is_purchase and part.expected else part.src_amount


def lacks_of(needs: Needs, found: Holding | None) -> tuple[MissingFund, ...]:
    """Compare the funds that an order needs with its owner's funds; return the missing funds.

    Args:
        found: the owner's balance and allowance, or for native tokens the deposit as balance; None if the
            token's contract returns no readable number, which counts as a missing balance.
    """
    fund = Fund.DEPOSIT if needs.is_native else Fund.BALANCE
    if found is None:
        return (MissingFund(fund, needs.part, None),) if needs.part else ()
    lacks = []
    if found.balance < needs.part:
        lacks.append(MissingFund(fund, needs.part, found.balance))
    if found.allowance < needs.allowance:
        lacks.append(MissingFund(Fund.ALLOWANCE, needs.allowance, found.allowance))
    if not lacks and needs.vault is not None:
        lacks.append(needs.vault)
    return tuple(lacks)


def told_of(lacks: Sequence[MissingFund], held_token: bytes) -> list[tuple[str, str]]:
    """Describe an order's missing funds as (code, text) reasons why the order is not filled.

    Args:
        held_token: token that the contract takes from the owner, 20 bytes: the order's source token, or the
            vault from which the order sells.
    """
    token = to_checksum(held_token)
    return [(f"{lack.fund.value}Lacks", _sentence(lack, token)) for lack in lacks]


def _sentence(lack: MissingFund, token: str) -> str:
    if lack.there is None and lack.fund is Fund.VAULT:
        return f"the vault {token} does not say how many shares give {lack.needed} of srcToken"
    if lack.there is None:
        return f"the contract of {token} returns no amount of the owner's; {lack.needed} is needed"
    match lack.fund:
        case Fund.BALANCE:
            there = f"the owner has {lack.there} of {token}"
            return f"{there}, and the next settlement takes {lack.needed}"
        case Fund.ALLOWANCE:
            there = f"the Delta contract may take {lack.there} of {token}"
            return f"{there}, and the rest of the order takes {lack.needed}"
        case Fund.DEPOSIT:
            there = f"the owner has deposited {lack.there} wei"
            return f"{there}, and the next settlement takes {lack.needed}"
        case Fund.VAULT:
            return f"the vault {token} does not give {lack.needed} of srcToken in a trial settlement"
        case Fund.BOUND:
            return f"the vault {token} takes {lack.needed} shares, and the order gives at most {lack.there}"
