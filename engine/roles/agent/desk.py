"""Bids that sell from the stock of an agent's own desk contract. Pure.

The caller contract of the agent receives the order's source, approves it to the desk, and calls the desk with
terms that the agent signed for this one order.

Source: contracts/examples/AgentDesk.sol; docs/guides/agents.md, "A desk of your own".
"""

from msgspec import Struct

from ....codecs.contracts.agent_desk import DeskTerms, terms_digest, trade
from ....codecs.contracts.calldata import approve
from ....codecs.messages.agent_messages import BidPart, BidStep, SolverBid, SolveRequest
from ....codecs.messages.vocabulary import Side
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex, to_hex
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_65
from .orders import OpenOrder

_LIFE_S = 120
"""Seconds after a round's close during which the desk accepts the terms of a bid in that round."""


class AgentDesk(Struct, frozen=True):
    """An agent's desk contract: an account with a stock of tokens, which trades on signed terms.

    Attributes:
        address: the contract, 20 bytes.
        key: key whose signature the contract accepts.
        step_gas: most units of gas that each step of a bid, the approval and the trade, may use.
    """

    address: bytes
    key: SigningKey
    step_gas: int = 200_000

    def bid(self, request: SolveRequest, order: OpenOrder, given: int, margin_bps: int) -> SolverBid | None:
        """Build a bid that buys a sale's whole source for tokens of the desk's stock.

        Args:
            request: the round, as the venue sent it.
            order: a sale of the round.
            given: raw units of the order's destination token that the desk pays, before fees.
            margin_bps: basis points by which the bid promises less than `given` brings.

        Returns:
            The bid; None if the order is no sale, or `given` is below the order's limit.
        """
        if order.side is not Side.SELL:
            return None
        promised = order.promised(order.src_amount, given, margin_bps)
        if promised is None:
            return None
        terms = DeskTerms(
            order_hash=parse_hex(order.order_hash, "orderHash"),
            takes=order.src_token,
            taken=order.src_amount,
            gives=order.dest_token,
            given=given,
            receiver=parse_address(request.delta, "delta"),
            deadline=request.closes_at_ms // 1_000 + _LIFE_S,
            nonce=request.auction_id,  # the desk takes the same terms only once: each round has its own
        )
        signature = to_65(*self.key.sign(terms_digest(terms, request.chain_id, self.address)))
        steps = (
            BidStep(to_hex(order.src_token), to_hex(approve(self.address, order.src_amount)), self.step_gas),
            BidStep(to_hex(self.address), to_hex(trade(terms, signature)), self.step_gas),
        )
        amount = str(order.fixed_amount) if order.part_min else ""
        part = BidPart(order.order_hash, str(promised), steps, amount=amount, receiver=request.caller)
        return SolverBid((part,))
