"""Compute the price of a unit of gas from the answers of nodes, which differ in the methods they support.

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
    """Compute the base fee of the next block and the tip, in wei per unit of gas.

    Args:
        history: outcome of eth_feeHistory over the latest block, with one percentile of the paid tips.
        suggested: outcome of eth_maxPriorityFeePerGas.
        latest: outcome of eth_getBlockByNumber; needed where `history` is an error.
        price: outcome of eth_gasPrice; needed where no other outcome gives the tip.

    Raises:
        InvalidInput, ChainError: an answer is invalid, or the node supports none of these methods.
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
    # The suggestion replaces the median of the tips: the node knows the least tip that its chain takes.
    if not isinstance(suggested, RpcError):
        tip = read_quantity(suggested)
    if tip is None:
        tip = max(0, read_quantity(result_of(price, "eth_gasPrice")) - base_fee_wei)
    return GasFees(base_fee_wei, tip)


def next_base_fee(block: FullHeader) -> int:
    """Base fee of the block after `block`, in wei per unit of gas; 0 for a chain without base fees."""
    base_fee_wei = block.header.base_fee_wei
    target = block.gas_limit // _ELASTICITY
    if target == 0 or base_fee_wei == 0:
        return base_fee_wei
    change = base_fee_wei * abs(block.gas_used - target) // target // _CHANGE_DIVISOR
    if block.gas_used > target:
        return base_fee_wei + max(change, 1)
    return base_fee_wei - change
