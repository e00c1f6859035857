"""A destination as swaps after a bridge see it: its makers, contracts and relayer. Pure."""

from msgspec import Struct

from ...chain.relay.relayer import Relayer
from ...served.served_chain import ServedChain


class ArrivalPlace(Struct, frozen=True):
    """Destination on which what a bridge delivers is swapped.

    Attributes:
        served: the chain, which has an Arrivals contract.
        relayer: account that sends swaps and pay-outs.
        gas_max: most units of gas of a swap.
    """

    served: ServedChain
    relayer: Relayer
    gas_max: int
