"""Builds the call that simulates the settlement of a bid, and judges the bid by the call's result. Pure.

    Candidate -> call from the relayer's account -> words that the contract returned -> Proven
                                                 -> Reverted, also by a broken promise -> Rejection

All bids of a round are simulated at the same block.

The orders of a crossing (orders settled against each other) bear equal shares of its gas, each rounded up.

Source: contracts/Delta.sol, `settle`; ARCHITECTURE.md, "Auction".
Choice: A bid's gas is the settlement's use plus 21,000 and the calldata's 4 or 16 a byte. Refunds and rollup
    data fees do not count.
"""

from collections.abc import Mapping

from msgspec import Struct

from .....codecs.contracts.abi import SELECTOR_BYTES, WORD_BYTES, decode_uint, selector
from .....codecs.contracts.delta_results import decode_crossed, decode_settled
from .....codecs.messages.agent_messages import Notice
from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import div_up
from .....config.errors import InvalidInput, Reverted
from .....crypto.hexadecimal import to_hex
from ....chain.port import EthCall
from .bids import Candidate, Rejection

_GAS_TRANSACTION, _GAS_ZERO_BYTE, _GAS_BYTE = 21_000, 4, 16
_BELOW_MINIMUM = selector("BelowMinimum(uint256,uint256)")
_ABOVE_MAXIMUM = selector("AboveMaximum(uint256,uint256)")
_PROMISE_BROKEN = selector("PromiseBroken(bytes32,uint256,uint256)")


class SettlementOutcome(Struct, frozen=True):
    """Result of one order's settlement in the simulation.

    Attributes:
        spent, received: raw units that the user spends and receives, as event OrderSettled reports them.
        gas: units of gas that the order bears: its share, if several orders are settled at once.
    """

    spent: int
    received: int
    gas: int


class Proven(Struct, frozen=True):
    """A bid that kept its promise in the simulation, with the simulated outcome for each of its orders."""

    candidate: Candidate
    outcomes: tuple[SettlementOutcome, ...]

    def amount(self, at: int) -> int:
        """Return the raw units that the user receives (SELL) or spends (BUY) in the simulation.

        Args:
            at: index of the order among the bid's orders.
        """
        sells = self.candidate.parts[at].asked.terms.side is Side.SELL
        return self.outcomes[at].received if sells else self.outcomes[at].spent


class Simulated(Struct):
    """Results of simulating the settlements of all bids of an auction round.

    Attributes:
        proven: bids that kept their promises.
        rejections: rejections of the other bids.
        unknown: hashes of orders with a bid that was not simulated, as time ran out or the node did not
            answer.
    """

    proven: list[Proven]
    rejections: list[Rejection]
    unknown: set[bytes]


def simulation_of(candidate: Candidate, delta: bytes, relayer: bytes, gas_max: int) -> EthCall:
    """Build the call that simulates a bid's settlement.

    Args:
        delta: the Delta contract, 20 bytes.
        relayer: account that would send the settlement, 20 bytes.
        gas_max: most units of gas of a settlement.
    """
    return EthCall(delta, candidate.calldata, relayer, gas_max=gas_max)


def proven(candidate: Candidate, answer: bytes | Exception) -> Proven | Rejection:
    """Classify a bid by the result of the call that simulates its settlement.

    Args:
        answer: result of the call in the form of `Chain.call_many`.

    Raises:
        Exception: `answer` itself, if it is an error but no revert: the bid's worth is unknown.
    """
    if isinstance(answer, Reverted):
        broken = broken_promise(answer)
        if broken is not None:
            order_hash, amount, promised = broken
            detail = f"{to_hex(order_hash)}: promised {promised}, simulated {amount}"
            return _rejection(candidate, Notice.SIMULATION_MISMATCH, detail, {order_hash: amount})
        is_limit = answer.data[:SELECTOR_BYTES] in (_BELOW_MINIMUM, _ABOVE_MAXIMUM)
        notice = Notice.BELOW_LIMIT if is_limit else Notice.REVERTED
        detail = f"simulated: {answer.reason or 'reverted without a reason'}"
        return _rejection(candidate, notice, detail, _below_limit(candidate, answer.data))
    if isinstance(answer, Exception):
        raise answer
    try:
        return Proven(candidate, _outcomes(candidate, answer))
    except InvalidInput as error:
        return _rejection(candidate, Notice.REVERTED, f"simulated: {error.detail}")


def _below_limit(candidate: Candidate, data: bytes) -> dict[bytes, int]:
    """Decode what the user would get (SELL) or spend (BUY) from the revert of a bid below its order's limit.

    Returns:
        Order hash -> raw units; empty if the revert is not about the order's own limit: the contracts name
        the output of a bridge, and what a purchase brings, with the same errors.
    """
    part = candidate.parts[0]
    is_sale = part.asked.terms.side is Side.SELL
    error, limit = (
        (_BELOW_MINIMUM, part.part.dest_amount) if is_sale else (_ABOVE_MAXIMUM, part.part.src_amount)
    )
    words = data[SELECTOR_BYTES:]
    if candidate.is_crossing or data[:SELECTOR_BYTES] != error or len(words) != 2 * WORD_BYTES:
        return {}
    return {part.asked.order_hash: decode_uint(words, 0)} if decode_uint(words, 1) == limit else {}


def broken_promise(error: Reverted) -> tuple[bytes, int, int] | None:
    """Decode order hash, simulated and promised amount from the revert of a bid that breaks its promise.

    The result is None for any other revert.
    """
    if error.data[:SELECTOR_BYTES] != _PROMISE_BROKEN:
        return None
    words = error.data[SELECTOR_BYTES:]
    return words[:WORD_BYTES], decode_uint(words, 1), decode_uint(words, 2)


def not_proven(candidate: Candidate, why: str) -> Rejection:
    """Make the rejection of a bid that could not be simulated, for the reason `why`."""
    return _rejection(candidate, Notice.REVERTED, f"not simulated: {why}")


def transaction_gas(calldata: bytes) -> int:
    """Compute the units of gas that a transaction costs besides its execution.

    The gas is 21,000 and a charge per byte of the calldata.
    """
    zeros = calldata.count(0)
    return _GAS_TRANSACTION + _GAS_ZERO_BYTE * zeros + _GAS_BYTE * (len(calldata) - zeros)


def _outcomes(candidate: Candidate, returned: bytes) -> tuple[SettlementOutcome, ...]:
    base = transaction_gas(candidate.calldata)
    if not candidate.is_crossing:
        settled = decode_settled(returned)
        return (SettlementOutcome(settled.spent, settled.received, base + settled.gas_used),)
    crossed = decode_crossed(returned)
    parts = len(candidate.parts)
    if len(crossed.spent) != parts:
        raise InvalidInput(field="return data", expected=f"{parts} orders", got=len(crossed.spent))
    share = div_up(base + crossed.gas_used, parts)
    return tuple(
        [
            SettlementOutcome(spent, received, share)
            for spent, received in zip(crossed.spent, crossed.received, strict=True)
        ]
    )


def _rejection(
    candidate: Candidate, notice: Notice, detail: str, simulated: Mapping[bytes, int] | None = None
) -> Rejection:
    return Rejection(
        agent=candidate.agent,
        arrived_ms=candidate.arrived_ms,
        notice=notice,
        detail=f"bids[{candidate.place}]: {detail}",
        orders={part.asked.order_hash: part.promised for part in candidate.parts},
        simulated=simulated or {},
        parts={
            part.asked.order_hash: part.part_amount
            for part in candidate.parts
            if part.part_amount is not None
        },
    )
