"""What a unit of gas costs, from what nodes say of it in their different ways.

Source: EIP-1559; eth_feeHistory, eth_maxPriorityFeePerGas and eth_gasPrice of the execution API.
"""

from ....config.errors import ChainError
from ..port import GasFees
from .failover import result_of
from .json_rpc import RpcOutcome
from .rpc_values import FullHeader, read_block, read_fee_history, read_quantity
from .rpc_wording import RpcError

_ELASTICITY = 2  # a block that is half full leaves the base fee as it is
_CHANGE_DIVISOR = 8  # by 1/8 at most from block to block


def fees_of(history: RpcOutcome, suggested: RpcOutcome, latest: RpcOutcome, price: RpcOutcome) -> GasFees:
    """The next base fee, and the tip to pay on top.

    Args:
        history: of eth_feeHistory over the latest block, with one percentile of what was paid.
        suggested: of eth_maxPriorityFeePerGas.
        latest: of eth_getBlockByNumber; needed where there is no history.
        price: of eth_gasPrice; needed where nothing else tells the tip.

    Raises:
        InvalidInput, ChainError: the node makes no sense, or has none of these.
    """
    tip: int | None = None
    if isinstance(history, RpcError):
        block = read_block(result_of(latest, "eth_getBlockByNumber"))
        if block is None:
            raise ChainError("has no latest block")
        base_fee_wei = next_base_fee(block)
    else:
        known = read_fee_history(history)
        base_fee_wei, tip = known.base_fee_wei, known.tip_wei
    if not isinstance(suggested, RpcError):
        tip = read_quantity(suggested)
    if tip is None:
        tip = max(0, read_quantity(result_of(price, "eth_gasPrice")) - base_fee_wei)
    return GasFees(base_fee_wei, tip)


def next_base_fee(block: FullHeader) -> int:
    """Of the block after this one, in wei; 0 where the chain has none."""
    base_fee_wei = block.header.base_fee_wei
    target = block.gas_limit // _ELASTICITY
    if target == 0 or base_fee_wei == 0:
        return base_fee_wei
    change = base_fee_wei * abs(block.gas_used - target) // target // _CHANGE_DIVISOR
    if block.gas_used > target:
        return base_fee_wei + max(change, 1)
    return base_fee_wei - change
