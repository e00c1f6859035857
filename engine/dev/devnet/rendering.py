"""JSON forms of blocks, transactions, receipts and logs, as Ethereum nodes write them.

Names are camelCase; integers and bytes are 0x text. No tries or headers are built for devnet blocks: the
roots of state, transactions and receipts are zeros, or the empty trie's for transactions and receipts of an
empty block; the size is absent.

Source: the Ethereum execution API; EIP-1474; EIP-2718 (types), EIP-4895 (withdrawals), EIP-4844 (blob gas),
    EIP-7685 (requests), EIP-7702 (authorizations).
"""

from collections.abc import Iterable
from hashlib import sha256

from ....codecs.transactions import (
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    AccessList,
    Authorization,
    ReceivedTransaction,
)
from ....config import limits
from ....crypto.addresses import ZERO_ADDRESS
from ....crypto.hexadecimal import to_hex
from ....crypto.keccak import keccak256
from ...chain.nodes.logs_bloom import bloom_of
from ...chain.port import Log, Receipt
from ..embedded.blocks import Block, gas_price

Json = dict[str, object]

_NO_ROOT = to_hex(bytes(32))
_EMPTY_TRIE = to_hex(keccak256(b"\x80"))
_NO_UNCLES = to_hex(keccak256(b"\xc0"))
_COINBASE = to_hex(ZERO_ADDRESS)
_NO_REQUESTS = to_hex(sha256().digest())


def header_json(block: Block) -> Json:
    """Render the header of a block as a JSON object."""
    header = block.header
    return {
        "number": hex(header.number),
        "hash": to_hex(header.hash),
        "parentHash": to_hex(header.parent_hash),
        "nonce": "0x0000000000000000",
        "sha3Uncles": _NO_UNCLES,
        "logsBloom": to_hex(bloom_of(block.logs)),
        "transactionsRoot": _NO_ROOT if block.transactions else _EMPTY_TRIE,
        "stateRoot": _NO_ROOT,
        "receiptsRoot": _NO_ROOT if block.transactions else _EMPTY_TRIE,
        "miner": _COINBASE,
        "difficulty": "0x0",
        "extraData": "0x",
        "gasLimit": hex(limits.EMBEDDED_BLOCK_GAS),
        "gasUsed": hex(block.gas_used),
        "timestamp": hex(header.time_s),
        "mixHash": to_hex(block.prev_randao),
        "baseFeePerGas": hex(header.base_fee_wei),
        "withdrawalsRoot": _EMPTY_TRIE,
        "blobGasUsed": "0x0",
        "excessBlobGas": "0x0",
        "parentBeaconBlockRoot": _NO_ROOT,
        "requestsHash": _NO_REQUESTS,
    }


def block_json(block: Block, *, full: bool) -> Json:
    """Render a block as a JSON object, with whole transactions if `full`, else with their hashes."""
    transactions: list[object]
    if full:
        transactions = [
            transaction_json(transaction, block, at) for at, transaction in enumerate(block.transactions)
        ]
    else:
        transactions = [to_hex(transaction.tx_hash) for transaction in block.transactions]
    more: Json = {"totalDifficulty": "0x0", "uncles": [], "withdrawals": [], "transactions": transactions}
    return header_json(block) | more


def transaction_json(received: ReceivedTransaction, block: Block | None, tx_index: int = 0) -> Json:
    """Render a transaction as a JSON object.

    Args:
        block: block that contains the transaction; None for a waiting transaction.
        tx_index: index of the transaction in the block.
    """
    tx, kind = received.transaction, received.kind
    fields: Json = {
        "hash": to_hex(received.tx_hash),
        "type": hex(kind),
        "chainId": hex(tx.chain_id),
        "nonce": hex(tx.nonce),
        "from": to_hex(received.sender),
        "to": to_hex(tx.to) if tx.to else None,
        "value": hex(tx.value_wei),
        "gas": hex(tx.gas),
        "input": to_hex(tx.data),
        "blockHash": to_hex(block.header.hash) if block else None,
        "blockNumber": hex(block.header.number) if block else None,
        "transactionIndex": hex(tx_index) if block else None,
        # The price paid; of a waiting transaction, the most that it may pay.
        "gasPrice": hex(gas_price(tx, block.header.base_fee_wei) if block else tx.fee_max_wei),
        "v": hex(received.v),
        "r": hex(int.from_bytes(received.rs64[:32], "big")),
        "s": hex(int.from_bytes(received.rs64[32:], "big")),
    }
    if kind != LEGACY:
        fields["yParity"] = hex(received.y_parity)
        fields["accessList"] = access_list_json(tx.access_list)
    if kind in (DYNAMIC_FEE, SET_CODE):
        fields["maxFeePerGas"] = hex(tx.fee_max_wei)
        fields["maxPriorityFeePerGas"] = hex(tx.tip_wei)
    if kind == SET_CODE:
        fields["authorizationList"] = [_authorization_json(one) for one in tx.authorizations]
    return fields


def _authorization_json(one: Authorization) -> Json:
    numbers = {"chainId": one.chain_id, "nonce": one.nonce, "yParity": one.y_parity, "r": one.r, "s": one.s}
    fields: Json = {name: hex(number) for name, number in numbers.items()}
    return fields | {"address": to_hex(one.address)}


def access_list_json(accesses: AccessList) -> list[Json]:
    """Render a transaction's access list as a JSON array."""
    return [
        {"address": to_hex(address), "storageKeys": [to_hex(slot) for slot in slots]}
        for address, slots in accesses
    ]


def transaction_summary(received: ReceivedTransaction) -> str:
    """Render a waiting transaction as a line of `txpool_inspect`, in the words of geth and anvil."""
    tx = received.transaction
    to = to_hex(tx.to) if tx.to else "contract creation"
    return f"{to}: {tx.value_wei} wei + {tx.gas} gas × {tx.fee_max_wei} wei"


def receipt_json(block: Block, tx_index: int) -> Json:
    """Render the receipt of the transaction at an index of a block as a JSON object."""
    receipt, received = block.receipts[tx_index], block.transactions[tx_index]
    return {
        "transactionHash": to_hex(receipt.tx_hash),
        "transactionIndex": hex(tx_index),
        "blockHash": to_hex(receipt.block_hash),
        "blockNumber": hex(receipt.block_number),
        "from": to_hex(received.sender),
        "to": to_hex(received.transaction.to) if received.transaction.to else None,
        "cumulativeGasUsed": hex(_gas_until(block.receipts[: tx_index + 1])),
        "gasUsed": hex(receipt.gas_used),
        "contractAddress": to_hex(receipt.contract) if receipt.contract else None,
        "logs": [log_json(log) for log in receipt.logs],
        "logsBloom": to_hex(bloom_of(receipt.logs)),
        "status": hex(receipt.succeeded),
        "effectiveGasPrice": hex(receipt.gas_price_wei),
        "type": hex(received.kind),
    }


def _gas_until(receipts: Iterable[Receipt]) -> int:
    return sum(receipt.gas_used for receipt in receipts)


def log_json(log: Log, *, removed: bool = False) -> Json:
    """Render a log as a JSON object.

    Args:
        removed: whether a re-organisation has removed the block of the log.
    """
    return {
        "address": to_hex(log.address),
        "topics": [to_hex(topic) for topic in log.topics],
        "data": to_hex(log.data),
        "blockNumber": hex(log.block_number),
        "blockHash": to_hex(log.block_hash),
        "transactionHash": to_hex(log.tx_hash),
        "transactionIndex": hex(log.tx_index),
        "logIndex": hex(log.log_index),
        "removed": removed,
    }


def fee_history_json(blocks: list[Block], next_base_fee_wei: int, percentiles: list[float] | None) -> Json:
    """Render the answer of `eth_feeHistory` for blocks, the oldest first.

    Args:
        next_base_fee_wei: base fee of the block after the newest, wei per unit of gas.
        percentiles: percentiles (0 to 100) at which each block's tips are reported as rewards, see `tips_at`;
            None or empty for no rewards.
    """
    history: Json = {
        "oldestBlock": hex(blocks[0].header.number),
        "baseFeePerGas": [hex(block.header.base_fee_wei) for block in blocks] + [hex(next_base_fee_wei)],
        "gasUsedRatio": [block.gas_used / limits.EMBEDDED_BLOCK_GAS for block in blocks],
    }
    if percentiles:
        history["reward"] = [[hex(tip) for tip in tips_at(block, percentiles)] for block in blocks]
    return history


def tips_at(block: Block, percentiles: list[float]) -> list[int]:
    """Return the percentiles of the tips in a block, weighted by gas used, in wei per unit of gas.

    The result has zeros for an empty block.

    Args:
        percentiles: percentiles, 0 to 100.
    """
    paid = sorted(
        (receipt.gas_price_wei - block.header.base_fee_wei, receipt.gas_used) for receipt in block.receipts
    )
    tips = []
    for percentile in percentiles:
        threshold, passed, reached = int(block.gas_used * percentile / 100), 0, 0
        for tip_wei, gas_used in paid:
            passed, reached = passed + gas_used, tip_wei
            if passed >= threshold:
                break
        tips.append(reached)
    return tips
