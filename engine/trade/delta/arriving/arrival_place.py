"""Destination chain of swaps after a bridge: its makers, contracts and relayer. Pure."""

from msgspec import Struct

from ....chain.relay.relayer import Relayer
from ...served.served_chain import ServedChain


class ArrivalPlace(Struct, frozen=True):
    """A destination on which makers swap the tokens that a bridge delivers.

    Attributes:
        served: the chain, which has an Arrivals contract.
        relayer: account that sends swaps and pay-outs.
        gas_max: largest number of units of gas of the relayer's transactions.
    """

    served: ServedChain
    relayer: Relayer
    gas_max: int
