"""Calldata of the Delta contract and of the steps of its settlements. `owner_calldata` has the calls of the
contract's owner, `delta_results` the return data of settlements.

Addresses are 20 bytes, hashes 32, amounts raw units, signatures any bytes (empty for a pre-signed order).
Orders are encoded as the contract's tuples, member by member as they are signed.

Source: contracts/Delta.sol, contracts/RfqExecutor.sol; interop.md section 2.
Choice: A zero beneficiary is the owner, as a zero receiver of a Market swap is the caller.
Choice: A permit of 192 bytes is amount, expiration, nonce and sigDeadline as words, then a compact signature.
Choice: A leftover token of a crossing goes to the crossing's first order that buys the token, as proceeds
    with fee and surplus; without such an order, the token returns to the first order that sold it.
Choice: A token's cap on Delta bounds all settlements within an hour of the clock: ten calls with a stolen
    relayer key spend no more than one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...crypto.keccak import keccak256
from ..eip712_orders.delta import (
    AnyDeltaOrder,
    DeltaBridge,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from .abi import Dynamic, address_word, bytes_tail, encode, selector, tuples_tail, uint_word, words_tail
from .calldata import OrderInfo, order_infos_tail

_BRIDGE = "(bytes4,uint256,address,int8,bytes)"
_ORDER = (
    "(address,address,address,address,uint256,uint256,uint256,uint256,uint8,uint256,uint256,bytes,bytes,"
    f"{_BRIDGE})"
)
_TWAP_ORDER = (
    "(address,address,address,address,uint256,uint256,uint64,uint64,uint32,uint256,uint256,bytes,bytes,"
    f"{_BRIDGE})"
)
_PRODUCTIVE_ORDER = (
    "(address,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,bytes,bytes,"
    f"address,uint256,bool,{_BRIDGE})"
)
_EXTERNAL_ORDER = (
    "(address,address,address,address,uint256,uint256,uint256,uint256,uint8,uint256,uint256,bytes,bytes,"
    "bytes)"
)
_EXECUTION = "(uint256,uint256,(address,uint256,bytes)[],address[],bytes32,address)"

SETTLE = selector(f"settle({_ORDER},bytes,uint256,{_EXECUTION})")
SETTLE_CROSSED = selector(f"settleCrossed(({_ORDER},bytes,uint256,{_EXECUTION},uint256,uint256)[])")
SETTLE_TWAP = selector(f"settleTwap({_TWAP_ORDER},bytes,{_EXECUTION})")
SETTLE_TWAP_BUY = selector(f"settleTwapBuy({_TWAP_ORDER},bytes,{_EXECUTION})")
SETTLE_PRODUCTIVE = selector(f"settleProductive({_PRODUCTIVE_ORDER},bytes,uint256,{_EXECUTION})")
SETTLE_EXTERNAL = selector(f"settleExternal({_EXTERNAL_ORDER},bytes,uint256,{_EXECUTION})")
INVALIDATE_NONCES = selector("invalidateNonces(uint256[])")
SHOW_CANCELLATION = selector(
    f"showCancellation(address,string[],bytes,({_ORDER}[],{_TWAP_ORDER}[],{_TWAP_ORDER}[],"
    f"{_PRODUCTIVE_ORDER}[],{_EXTERNAL_ORDER}[]))"
)
CANCEL_AND_WITHDRAW = selector(f"cancelAndWithdraw({_ORDER},bool)")
CANCEL_TWAP_AND_WITHDRAW = selector(f"cancelTWAPAndWithdraw({_TWAP_ORDER})")
CANCEL_TWAP_BUY_AND_WITHDRAW = selector(f"cancelTWAPBuyAndWithdraw({_TWAP_ORDER})")
ORDER_STATE = selector("orderState(address,uint256,bytes32)")
SET_PRE_SIGNATURE = selector("setPreSignature(bytes32,bool)")
IS_PRE_SIGNED = selector("isPreSigned(address,bytes32)")
DEPOSIT_NATIVE_AND_PRE_SIGN = selector("depositNativeAndPreSign(bytes32)")
WITHDRAW_NATIVE = selector("withdrawNative(uint256)")
WITHDRAW_TO = selector("withdrawTo(uint256,address)")
DEPOSITS = selector("deposits(address)")
CREATE_AGENT_CALLER = selector("createAgentCaller(bytes32)")
AGENT_CALLER = selector("agentCaller(bytes32)")

EXECUTOR = bytes(20)
"""Zero address as the receiver of source tokens: the executor contract, which fills firm quotes."""
DELTA = bytes(20)
"""Zero address as the receiver of a fill's proceeds: Delta itself."""
NO_AGENT = bytes(32)
"""Agent id in a settlement to which no agent contributes a call: 32 zero bytes."""

CROSSINGS_MIN, CROSSINGS_MAX = 2, 8
"""Least and greatest number of orders that one crossing settles; the contract's own bounds."""


class SettlementStep(msgspec.Struct, frozen=True):
    """A step of a settlement: fills of RFQ orders, or a call that an agent contributes.

    The executor, a contract that trades for Delta, makes the fills (`rfq_step`). The agent's caller contract
    makes the call.

    Attributes:
        target: the called contract.
        gas: most units of gas that an agent's call may use; unused for RFQ fills.
        data: calldata of an agent's call, or encoded arguments of the RFQ fills.
    """

    target: bytes
    gas: int
    data: bytes


class Execution(msgspec.Struct, frozen=True):
    """Instructions for settling a part of an order: promised amount, steps, and token movements.

    Attributes:
        promised: least proceeds of a sale, or greatest cost of a purchase, in raw units after fees.
        src_given: for a purchase, raw units of the source token that `receiver` gets before the steps. A sale
            sends the whole settled amount to `receiver`, so the member is unused.
        steps: calls of the settlement, made in order; a failing step reverts the settlement.
        leftovers: tokens whose balance at the executor contract goes to the order's owner, once before the
            steps and once after the steps. The list has to contain each token of which a step spends the
            executor's whole balance: else a stranger who sends the executor more of the token could make the
            step fail.
        agent: id (`agent_id`) of the agent whose caller contract makes the calls, 32 bytes.
        receiver: account that gets the source tokens before the steps, 20 bytes.
    """

    promised: int
    src_given: int
    steps: tuple[SettlementStep, ...]
    leftovers: tuple[bytes, ...] = ()
    agent: bytes = NO_AGENT
    receiver: bytes = EXECUTOR


class CrossedOrder(msgspec.Struct, frozen=True):
    """An order of a crossing: one settlement of several orders that trade with each other.

    Attributes:
        amount: settled raw units of the source token (sale) or the destination token (purchase).
        execution: instructions for this order; makers sign the firm quotes in the steps for this order's
            owner. The crossing has one pool of tokens for each source token: each order pays its source
            tokens into the pool, and the steps of all orders spend from the pools. A purchase pays in
            `src_given`, and its cost is that amount plus fees. The executor's balance of each token in
            `leftovers` goes to the token's pool if an order of the crossing sells or buys the token, and to
            this order's owner otherwise.
        paid: raw units of the destination token that the crossing pays to this order, before fees: the
            proceeds of a sale, or at least the bought amount of a purchase.
        traded: raw units of this order's source token that `execution.receiver` gets from the token's pool
            before the steps.
    """

    order: DeltaOrder
    signature: bytes
    amount: int
    execution: Execution
    paid: int
    traded: int = 0


def agent_id(name: str) -> bytes:
    """Derive an agent's 32-byte id on the chain from its name at the venue."""
    return keccak256(name.encode())


def rfq_step(
    rfq: bytes,
    infos: Sequence[OrderInfo],
    taker_amount: int = 0,
    maker_amount: int = 0,
    receiver: bytes = DELTA,
) -> SettlementStep:
    """Make the step in which the executor contract fills RFQ orders of one pair, one after another.

    Args:
        rfq: address of the RFQ contract, 20 bytes.
        infos: the RFQ orders, in the sequence in which the executor tries them.
        taker_amount: raw units of the taker's asset to spend in all; 0 for no such amount.
        maker_amount: raw units of the maker's asset to buy in all; 0 for no such amount. At most one of the
            two amounts is above 0; with both 0 the executor spends its whole balance of the taker's asset.
        receiver: account that receives the bought tokens; the executor, if a later step spends them.
    """
    amounts = uint_word(taker_amount) + uint_word(maker_amount)
    data = encode(order_infos_tail(infos), amounts, address_word(receiver))
    return SettlementStep(rfq, 0, data)


def settle(order: DeltaOrder, signature: bytes, amount: int, execution: Execution) -> bytes:
    """Encode a settlement of a part of an order, or of the whole order.

    Args:
        amount: raw units to settle, of the source token for a sale, of the destination token for a purchase.
    """
    return SETTLE + encode(_order(order), bytes_tail(signature), uint_word(amount), _execution(execution))


def settle_crossed(crossings: Sequence[CrossedOrder]) -> bytes:
    """Encode one settlement of several orders that trade with each other; all of them settle or none.

    Args:
        crossings: the orders, CROSSINGS_MIN to CROSSINGS_MAX; the contract refuses any other number.
    """
    elements = [
        encode(
            _order(crossing.order),
            bytes_tail(crossing.signature),
            uint_word(crossing.amount),
            _execution(crossing.execution),
            uint_word(crossing.paid) + uint_word(crossing.traded),
        )
        for crossing in crossings
    ]
    return SETTLE_CROSSED + encode(tuples_tail(elements))


def settle_twap(order: TwapOrder, signature: bytes, execution: Execution) -> bytes:
    """Encode a settlement of the next slice of a scheduled sale (TWAP)."""
    return SETTLE_TWAP + encode(_schedule(order), bytes_tail(signature), _execution(execution))


def settle_twap_buy(order: TwapBuyOrder, signature: bytes, execution: Execution) -> bytes:
    """Encode a settlement of the next slice of a scheduled purchase (TWAP)."""
    return SETTLE_TWAP_BUY + encode(_schedule(order), bytes_tail(signature), _execution(execution))


def settle_productive(order: ProductiveOrder, signature: bytes, amount: int, execution: Execution) -> bytes:
    """Encode a settlement of a sale whose source tokens are withdrawn from a yield vault.

    Args:
        amount: raw units to settle: of the vault's shares if `order.use_shares`, else of the source token.
    """
    return SETTLE_PRODUCTIVE + encode(
        _productive(order), bytes_tail(signature), uint_word(amount), _execution(execution)
    )


def settle_external(order: ExternalOrder, signature: bytes, amount: int, execution: Execution) -> bytes:
    """Encode a settlement of an order by the handler contract that the order names.

    Args:
        amount: raw units to settle, of the source token for a sale, of the destination token for a purchase.
        execution: instructions without steps; Delta refuses steps for such an order.
    """
    return SETTLE_EXTERNAL + encode(
        _external(order), bytes_tail(signature), uint_word(amount), _execution(execution)
    )


def create_agent_caller(agent: bytes) -> bytes:
    """Encode a call that deploys the caller contract of an agent, which makes the agent's calls.

    Without this call, the agent's first settlement deploys the contract.

    Args:
        agent: the agent's id (`agent_id`), 32 bytes.
    """
    return CREATE_AGENT_CALLER + agent


def agent_caller(agent: bytes) -> bytes:
    """Encode a read of the address of an agent's caller contract.

    The address is fixed before the contract is deployed.

    Args:
        agent: the agent's id (`agent_id`), 32 bytes.
    """
    return AGENT_CALLER + agent


def invalidate_nonces(nonces: Sequence[int]) -> bytes:
    """Encode the call by which an owner invalidates nonces: orders that use them can no longer settle."""
    return INVALIDATE_NONCES + encode(words_tail([uint_word(nonce) for nonce in nonces]))


def order_state(owner: bytes, nonce: int, order_hash: bytes) -> bytes:
    """Encode a read of an order's state on Delta; `delta_results.decode_order_state` decodes the answer."""
    return ORDER_STATE + address_word(owner) + uint_word(nonce) + order_hash


def show_cancellation(
    owner: bytes,
    order_ids: Sequence[str],
    signature: bytes,
    orders: Sequence[AnyDeltaOrder],
) -> bytes:
    """Encode the call that submits an owner's signed cancellation to the Delta contract.

    Any account may make the call; once the call is mined, none of the given orders can be settled.

    Args:
        order_ids: the cancelled ids, in the sequence and spelling that the owner signed.
        signature: the owner's signature over all of `order_ids`.
        orders: the orders to cancel now; each must have one of the ids.
    """
    ids = tuples_tail([bytes_tail(order_id.encode()).tail for order_id in order_ids])
    by_kind: dict[type, list[bytes]] = {kind: [] for kind in _ENCODED}
    for order in orders:
        by_kind[type(order)].append(_ENCODED[type(order)](order).tail)
    cancelled = Dynamic(encode(*map(tuples_tail, by_kind.values())))
    return SHOW_CANCELLATION + encode(address_word(owner), ids, bytes_tail(signature), cancelled)


def cancel_and_withdraw(order: DeltaOrder | TwapOrder | TwapBuyOrder) -> bytes:
    """Encode the call by which an owner cancels an order and withdraws the native tokens deposited for it."""
    if isinstance(order, DeltaOrder):
        return CANCEL_AND_WITHDRAW + encode(_order(order), uint_word(0))  # `isFillable`, which Delta ignores
    is_sale = isinstance(order, TwapOrder)
    called = CANCEL_TWAP_AND_WITHDRAW if is_sale else CANCEL_TWAP_BUY_AND_WITHDRAW
    return called + encode(_schedule(order))


def set_pre_signature(order_hash: bytes, *, is_signed: bool) -> bytes:
    """Encode the call `setPreSignature`, by which an owner approves an order on the chain.

    An owner without a private key, such as a contract, uses the call in place of a signature.

    Args:
        order_hash: EIP-712 digest of the order, 32 bytes.
        is_signed: True approves the order, False withdraws the approval.
    """
    return SET_PRE_SIGNATURE + order_hash + uint_word(is_signed)


def is_pre_signed(owner: bytes, order_hash: bytes) -> bytes:
    """Encode a read of whether an owner has approved an order on the chain, as by `set_pre_signature`."""
    return IS_PRE_SIGNED + address_word(owner) + order_hash


def deposit_native_and_pre_sign(order_hash: bytes) -> bytes:
    """Encode the call that deposits native tokens on Delta and approves one order of the caller.

    The transaction's value is the deposit, which all orders of the caller may spend.

    Args:
        order_hash: EIP-712 digest of the order to approve (`set_pre_signature`), 32 bytes.
    """
    return DEPOSIT_NATIVE_AND_PRE_SIGN + order_hash


def withdraw_native(amount: int) -> bytes:
    """Encode a withdrawal of native tokens from the caller's deposit on Delta to the caller.

    Args:
        amount: wei.
    """
    return WITHDRAW_NATIVE + uint_word(amount)


def withdraw_to(amount: int, receiver: bytes) -> bytes:
    """Encode a withdrawal of native tokens from the caller's deposit on Delta to another account.

    Args:
        amount: wei.
        receiver: account that gets the native tokens, 20 bytes.
    """
    return WITHDRAW_TO + uint_word(amount) + address_word(receiver)


def deposits(owner: bytes) -> bytes:
    """Encode a read of the native tokens, in wei, that an owner has deposited on Delta for orders."""
    return DEPOSITS + address_word(owner)


def _order(order: DeltaOrder) -> Dynamic:
    return Dynamic(encode(_parties(order), *_amounts_and_kind(order), _bridge(order.bridge)))


def _external(order: ExternalOrder) -> Dynamic:
    parties = map(address_word, (order.owner, order.handler, order.src_token, order.dest_token))
    return Dynamic(encode(*parties, *_amounts_and_kind(order), bytes_tail(order.data)))


def _amounts_and_kind(order: DeltaOrder | ExternalOrder) -> tuple[bytes | Dynamic, ...]:
    return (
        uint_word(order.src_amount),
        uint_word(order.dest_amount),
        uint_word(order.expected_amount),
        uint_word(order.deadline),
        uint_word(order.kind),
        uint_word(order.nonce),
        uint_word(order.partner_and_fee),
        bytes_tail(order.permit),
        bytes_tail(order.metadata),
    )


def _productive(order: ProductiveOrder) -> Dynamic:
    return Dynamic(
        encode(
            _parties(order),
            uint_word(order.src_amount),
            uint_word(order.dest_amount),
            uint_word(order.expected_amount),
            uint_word(order.deadline),
            uint_word(order.nonce),
            uint_word(order.partner_and_fee),
            bytes_tail(order.permit),
            bytes_tail(order.metadata),
            address_word(order.strategy),
            uint_word(order.shares),
            uint_word(order.use_shares),
            _bridge(order.bridge),
        )
    )


def _parties(order: DeltaOrder | ProductiveOrder | TwapOrder | TwapBuyOrder) -> bytes:
    return b"".join(map(address_word, (order.owner, order.beneficiary, order.src_token, order.dest_token)))


def _schedule(order: TwapOrder | TwapBuyOrder) -> Dynamic:
    if isinstance(order, TwapOrder):
        amounts = uint_word(order.dest_amount_per_slice) + uint_word(order.total_src_amount)
    else:
        amounts = uint_word(order.total_dest_amount) + uint_word(order.max_src_amount)
    return Dynamic(
        encode(
            _parties(order),
            uint_word(order.nonce),
            uint_word(order.partner_and_fee),
            uint_word(order.deadline),
            uint_word(order.interval),
            uint_word(order.num_slices),
            amounts,
            bytes_tail(order.permit),
            bytes_tail(order.metadata),
            _bridge(order.bridge),
        )
    )


def _bridge(bridge: DeltaBridge) -> Dynamic:
    return Dynamic(
        encode(
            bridge.protocol_selector.ljust(32, b"\0"),
            uint_word(bridge.destination_chain_id),
            address_word(bridge.output_token),
            bridge.scaling_factor.to_bytes(32, "big", signed=True),
            bytes_tail(bridge.protocol_data),
        )
    )


def _execution(execution: Execution) -> Dynamic:
    steps = [
        encode(address_word(step.target), uint_word(step.gas), bytes_tail(step.data))
        for step in execution.steps
    ]
    leftovers = words_tail([address_word(token) for token in execution.leftovers])
    amounts = uint_word(execution.promised) + uint_word(execution.src_given)
    to = execution.agent + address_word(execution.receiver)
    return Dynamic(encode(amounts, tuples_tail(steps), leftovers, to))


_ENCODED: dict[type, Callable[[Any], Dynamic]] = {
    DeltaOrder: _order,
    TwapOrder: _schedule,
    TwapBuyOrder: _schedule,
    ProductiveOrder: _productive,
    ExternalOrder: _external,
}
"""Encoding of each kind of order, in the sequence of the members of the contract's `Cancelled`."""
