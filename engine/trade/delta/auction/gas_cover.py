"""Decides whether a winning bid may be settled at the relayer's cost, by the operator's policy for gas. Pure.

The relayer pays for every settlement's gas. What an order brings beyond its limit, with its fee, shows that
the trade is worth the gas. A bridge-only order brings nothing, and pays for its gas instead:

    covered      the promised gain over the limit and the fee, or a bridge-only order's payment, are worth at
                 least the gas, all orders of the bid together; so a crossing may carry an order that is too
                 small alone
    subsidised   what is not covered is paid from a budget of the owner and of all owners for a day
    free         likewise, and orders that were submitted with an API key cost nothing

A bid that is not carried loses, and its order waits for a better one.

Source: docs/explanation/security.md, "Costs and stakes"; choices.md#delta-orders.
Choice: The gain is the promise's, which the contract enforces. An order of a handler has no promise above its
    limit: the simulated amount counts.
Choice: A gain covers at most AGENT_GAS_COVERED_MAX units for each order: an owner and an agent of one party
    pay a gain to themselves, and could have the relayer pay for any gas.
Choice: If the token in which an order is judged has no price, its other token values the gas, at the order's
    limit. Gas of an order whose tokens have no price is not covered.
Choice: Where the native token has no price, so that no gas can be valued, all gas counts as covered.
"""

from collections import OrderedDict
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from types import MappingProxyType

from msgspec.structs import replace

from .....codecs.eip712_orders.delta import ExternalOrder
from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import mul_div_down
from .....config.limits import AGENT_GAS_COVERED_MAX, AGENT_OWNERS_KEPT_MAX, BPS_ONE
from .....config.sections.venue import DeltaSettings, GasPolicy
from ....host.admission.budgets import GAS_GIVEN, GAS_GIVEN_TO_OWNER
from ....host.admission.ledger import EVERYBODY, Charge, Hold, Lack, Ledger
from ..bids.simulation import Proven
from .auction import GasCost

NOT_CARRIED = "what it brings beyond the limit, or pays for gas, is worth less than its gas"
"""Reason that a bid lost; an order waits for a bid without it."""


NOTHING_THERE: Mapping[bytes, int] = MappingProxyType({})
"""Costs of deliveries of orders on one chain."""


class GasCover:
    """The policy for the gas of one chain's settlements.

    Args:
        settings: the policy, and the subsidies of a day.
    """

    def __init__(self, ledger: Ledger, chain_id: int, settings: DeltaSettings) -> None:
        self._ledger = ledger
        self._chain_id = chain_id
        self._policy = settings.gas_policy
        self._of_owner = replace(GAS_GIVEN_TO_OWNER, most=settings.gas_subsidy_owner)
        self._of_all = replace(GAS_GIVEN, most=settings.gas_subsidy)
        self._stored: OrderedDict[bytes, Hold] = OrderedDict()  # by the first order of the settlement

    def take(
        self,
        winner: Proven,
        gas_price_wei: int,
        costs: Mapping[bytes, GasCost],
        now_ms: int,
        there_wei: Mapping[bytes, int] = NOTHING_THERE,
    ) -> Hold | None:
        """Find who pays for the gas of a winning bid, and charge a subsidy to its owners.

        Args:
            costs: functions from a gas cost in wei to raw units of the token that an order is judged in, by
                order hash; an order whose tokens have no price has none.
            there_wei: costs of deliveries on other chains in wei of this chain, by order hash.

        Returns:
            The charge, which `Ledger.undo` gives back if the bid is not settled after all; None if nobody
            pays, so that the bid may not be settled.
        """
        if self.is_carried(winner, gas_price_wei, costs, there_wei):
            return Hold(())
        if self._policy is GasPolicy.COVERED:
            return None
        gas = sum(outcome.gas for outcome in winner.outcomes)
        covered = Fraction(0)
        if gas <= AGENT_GAS_COVERED_MAX * len(winner.outcomes):
            covered = min(covered_part(winner, gas_price_wei, costs, there_wei), Fraction(1))
        parts_wei = [there_wei.get(part.asked.order_hash, 0) for part in winner.candidate.parts]
        gas += sum(parts_wei) // max(gas_price_wei, 1)
        gas = max(ceil(gas * (1 - covered)), 1)
        owners = dict.fromkeys(part.asked.terms.owner for part in winner.candidate.parts)
        charges = [Charge(self._of_owner, (self._chain_id, owner), gas) for owner in owners]
        charges.append(Charge(self._of_all, (self._chain_id, EVERYBODY), gas))
        found = self._ledger.take(charges, now_ms)
        return None if isinstance(found, Lack) else found

    def is_carried(
        self,
        bid: Proven,
        gas_price_wei: int,
        costs: Mapping[bytes, GasCost],
        there_wei: Mapping[bytes, int] = NOTHING_THERE,
    ) -> bool:
        """Whether a bid may be settled without a subsidy: it covers its gas, or its orders' gas is free."""
        if self._policy is GasPolicy.FREE and all(part.asked.document.by_key for part in bid.candidate.parts):
            return True
        gas = sum(outcome.gas for outcome in bid.outcomes)
        if gas > AGENT_GAS_COVERED_MAX * len(bid.outcomes):
            return False
        return covered_part(bid, gas_price_wei, costs, there_wei) >= 1

    def give_back(self, hold: Hold) -> None:
        """Undo the charge of a bid that is not settled after all."""
        self._ledger.undo(hold)

    def stored(self, order_hash: bytes, hold: Hold) -> None:
        """Keep the charge of a stored settlement, for the case that it is not mined."""
        self._stored[order_hash] = hold
        self._stored.move_to_end(order_hash)
        if len(self._stored) > AGENT_OWNERS_KEPT_MAX:
            self._stored.popitem(last=False)

    def unspent(self, order_hash: bytes) -> None:
        """Undo the charge of an order's settlement that was not mined: it has cost the relayer nothing."""
        if (hold := self._stored.pop(order_hash, None)) is not None:
            self._ledger.undo(hold)


def covered_part(
    winner: Proven,
    gas_price_wei: int,
    costs: Mapping[bytes, GasCost],
    there_wei: Mapping[bytes, int] = NOTHING_THERE,
) -> Fraction:
    """Compute which part of a bid's gas its gains and fees, or a bridge-only order's payment, are worth.

    The gains of crossed orders are in different tokens: each is compared with the whole gas in its own token.
    """
    wei = gas_price_wei * sum(outcome.gas for outcome in winner.outcomes)
    covered = Fraction(not wei)
    for at, part in enumerate(winner.candidate.parts):
        cost_of = costs.get(part.asked.order_hash)
        if cost_of is None:
            continue
        is_handled = isinstance(part.asked.order, ExternalOrder)
        amount = winner.amount(at) if is_handled else part.promised
        gain = amount - part.limit if part.asked.terms.side is Side.SELL else part.limit - amount
        worth = max(gain, 0) + mul_div_down(amount, part.asked.terms.fee.fee_bps, BPS_ONE)
        if part.pays_gas:
            worth = part.given
        cost = cost_of(wei + there_wei.get(part.asked.order_hash, 0))
        covered += Fraction(worth, cost) if cost else 1
    return covered
