"""Blocks of the embedded chain: hashes, base fees, and a transaction's gas before execution.

The hash of a block is the keccak of an RLP list that only this module defines, not of an Ethereum header: the
hash identifies the block and its ancestors, but proves no state.

Source: EIP-1559 (base fee), EIP-2028, EIP-2930 and EIP-3860 (gas of a transaction's data), Yellow Paper 6.2.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....codecs import rlp
from ....codecs.transactions import AccessList, ReceivedTransaction, Transaction
from ....config import limits
from ....crypto.keccak import keccak256
from ...chain.port import Header, Log, Receipt

BASE_FEE_FIRST_WEI = 10**9
_ELASTICITY, _BASE_FEE_STEPS = 2, 8

INIT_CODE_BYTES_MAX = 49_152
_GAS_TRANSACTION, _GAS_CREATE = 21_000, 32_000
_GAS_ZERO_BYTE, _GAS_BYTE = 4, 16
_GAS_INIT_CODE_WORD = 2
_GAS_LISTED_ADDRESS, _GAS_LISTED_SLOT = 2_400, 1_900
_GAS_FLOOR = 10  # of a zero byte; of any other byte four times as much (EIP-7623)
GAS_AUTHORIZATION = 25_000


class Block(Struct, frozen=True):
    """Block of the embedded chain: header, transactions, receipts and logs.

    Attributes:
        prev_randao: value of the opcode PREVRANDAO in the block, 32 bytes.
        gas_used: gas of all transactions of the block.
        transactions: in the order of execution; `receipts` is parallel to it.
        logs: logs of all receipts, in order.
    """

    header: Header
    prev_randao: bytes
    gas_used: int
    transactions: tuple[ReceivedTransaction, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    logs: tuple[Log, ...] = ()


def at_time(block: Block, time_s: int) -> Block:
    """Return a copy of a block with another time in its header, Unix seconds."""
    return replace(block, header=replace(block.header, time_s=time_s))


def base_fee_after(parent: Block) -> int:
    """Compute the base fee of the block after `parent`, in wei per unit of gas, by EIP-1559."""
    fee_wei, target = parent.header.base_fee_wei, limits.EMBEDDED_BLOCK_GAS // _ELASTICITY
    change_wei = fee_wei * abs(parent.gas_used - target) // target // _BASE_FEE_STEPS
    if parent.gas_used > target:
        return fee_wei + max(change_wei, 1)
    return fee_wei - change_wei


def block_hash(
    parent_hash: bytes,
    number: int,
    time_s: int,
    base_fee_wei: int,
    transactions: Sequence[bytes],
    timeline: int,
) -> bytes:
    """Compute the 32-byte hash that identifies a block of the embedded chain.

    Args:
        transactions: hashes of the block's transactions, in order.
        timeline: number of roll-backs of the chain so far, so that otherwise equal blocks get different
            hashes.
    """
    return keccak256(rlp.encode([parent_hash, number, time_s, base_fee_wei, list(transactions), timeline]))


def prev_randao(parent_hash: bytes, timeline: int) -> bytes:
    """Compute the PREVRANDAO value of the next block, 32 bytes: predictable, but different in each block.

    Args:
        timeline: number of roll-backs of the chain so far.
    """
    return keccak256(parent_hash + timeline.to_bytes(8, "big"))


def intrinsic_gas(tx: Transaction) -> int:
    """Compute the gas that a transaction costs before execution; a lower gas limit is invalid."""
    zeros = tx.data.count(0)
    gas = _GAS_TRANSACTION + _GAS_ZERO_BYTE * zeros + _GAS_BYTE * (len(tx.data) - zeros)
    if not tx.to:
        gas += _GAS_CREATE + _GAS_INIT_CODE_WORD * ((len(tx.data) + 31) // 32)
    gas += access_list_gas(tx.access_list) + GAS_AUTHORIZATION * len(tx.authorizations)
    return max(gas, floor_gas(tx.data))


def floor_gas(data: bytes) -> int:
    """Compute the least gas that a transaction uses, by its data alone (EIP-7623)."""
    zeros = data.count(0)
    return _GAS_TRANSACTION + _GAS_FLOOR * (zeros + 4 * (len(data) - zeros))


def access_list_gas(access_list: AccessList) -> int:
    """Compute the gas that a transaction's access list costs before the execution (EIP-2930)."""
    return sum(_GAS_LISTED_ADDRESS + _GAS_LISTED_SLOT * len(slots) for _, slots in access_list)


def gas_price(tx: Transaction, base_fee_wei: int) -> int:
    """Compute the price that a transaction pays at a base fee, both in wei per unit of gas."""
    return min(tx.fee_max_wei, base_fee_wei + tx.tip_wei)
