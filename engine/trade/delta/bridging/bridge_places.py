"""Describes a chain to the bridges' tasks: contracts, domain, confirmations, and bounds of waiting. Pure."""

from msgspec import Struct

from .....codecs.bridges.bridge_terms import BridgeKind
from ....chain.port import Chain
from ....chain.relay.relayer import Relayer


class BridgePlace(Struct, frozen=True):
    """A chain on which bridges begin or end, with the bridges' contracts.

    Attributes:
        confirmations: number of blocks, a log's own included, after which the log is final.
        spoke_pool: Across's contract, 20 bytes; None without Across.
        transmitter: CCTP's MessageTransmitter, 20 bytes; None without CCTP.
        domain: Circle's number of the chain; None without CCTP.
        relayer: account that hands in attested messages; None if the venue has no such account.
        wrapped_native: address of the wrapped native token, 20 bytes; empty if unknown.
    """

    chain: Chain
    confirmations: int
    spoke_pool: bytes | None = None
    transmitter: bytes | None = None
    domain: int | None = None
    relayer: Relayer | None = None
    wrapped_native: bytes = b""

    def final_height(self, height: int) -> int:
        """Return the height up to which blocks are final while the latest block is at `height`."""
        return height - self.confirmations + 1


class BridgeBounds(Struct, frozen=True):
    """Ages at which a transfer that still waits raises an alarm, milliseconds.

    Attributes:
        delivery_ms: longest time from the settlement to the delivery, by protocol.
        refund_ms: longest time from a transfer's failure to its refund.
    """

    delivery_ms: dict[BridgeKind, int]
    refund_ms: int
