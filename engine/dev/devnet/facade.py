"""What the chain answers over JSON-RPC: one row for each method, its parameters and what answers it.

    facade.py       what clients and wallets ask of any node
    controls.py     what only a development node takes
    filters.py      what is polled for and announced

`pending` is the latest block, except for the nonce; `safe` is 32 blocks below it and `finalized` 64, as on
anvil.

Source: the Ethereum execution API; EIP-1474; the methods of anvil and hardhat.
"""

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....codecs.transactions import Transaction, sign_transaction
from ....config import limits
from ....config.errors import TransactionRefused
from ....config.version import __version__
from ....crypto.hexadecimal import to_hex
from ....crypto.keccak import keccak256
from ....crypto.secp256k1 import SigningKey
from ...chain.port import At, EthCall
from ..embedded.blocks import Block
from ..embedded.embedded import EmbeddedChain
from . import parameters as given
from . import rendering as told
from .faults import INVALID_PARAMS, LOGS_TOO_MANY, REFUSED, RpcFault, known_already, refusal_of

_SAFE_BELOW, _FINALIZED_BELOW = 32, 64
_PROTOCOL = "0x41"


class Method(Struct, frozen=True):
    """One method: what it is given, and what answers it with JSON or raises RpcFault or ChainError."""

    takes: type[Struct]
    answer: Callable[[Any], Awaitable[object]]


Methods = Mapping[str, Method]


class Reads:
    """What clients ask of any node, and the transactions that they send.

    Args:
        keys: of the accounts that this node signs for.
    """

    def __init__(self, chain: EmbeddedChain, keys: Sequence[SigningKey]) -> None:
        self._chain = chain
        self._keys = {key.address: key for key in keys}

    def methods(self) -> Methods:
        """By name."""
        return {
            "web3_clientVersion": Method(given.Nothing, self.client_version),
            "web3_sha3": Method(given.OfRaw, self.keccak),
            "net_version": Method(given.Nothing, self.network),
            "net_listening": Method(given.Nothing, self.listening),
            "eth_protocolVersion": Method(given.Nothing, self.protocol),
            "eth_chainId": Method(given.Nothing, self.chain_id),
            "eth_syncing": Method(given.Nothing, self.syncing),
            "eth_accounts": Method(given.Nothing, self.accounts),
            "eth_blockNumber": Method(given.Nothing, self.height),
            "eth_getBlockByNumber": Method(given.OfBlock, self.block),
            "eth_getBlockByHash": Method(given.OfBlockHash, self.block_by_hash),
            "eth_getBlockTransactionCountByNumber": Method(given.OnlyBlock, self.count),
            "eth_getBlockTransactionCountByHash": Method(given.OnlyHash, self.count_by_hash),
            "eth_getBlockReceipts": Method(given.OnlyBlock, self.receipts),
            "eth_getTransactionByHash": Method(given.OnlyHash, self.transaction),
            "eth_getTransactionByBlockNumberAndIndex": Method(given.OfPlace, self.transaction_at),
            "eth_getTransactionByBlockHashAndIndex": Method(given.OfHashPlace, self.transaction_at_hash),
            "eth_getTransactionReceipt": Method(given.OnlyHash, self.receipt),
            "eth_getTransactionCount": Method(given.OfAccount, self.nonce),
            "eth_getBalance": Method(given.OfAccount, self.balance),
            "eth_getCode": Method(given.OfAccount, self.code),
            "eth_getStorageAt": Method(given.OfSlot, self.slot),
            "eth_call": Method(given.OfCall, self.call),
            "eth_estimateGas": Method(given.OfCall, self.estimate),
            "eth_gasPrice": Method(given.Nothing, self.gas_price),
            "eth_maxPriorityFeePerGas": Method(given.Nothing, self.tip),
            "eth_feeHistory": Method(given.OfFeeHistory, self.fee_history),
            "eth_getLogs": Method(given.OfLogs, self.logs),
            "eth_sendRawTransaction": Method(given.OfRaw, self.send_raw),
            "eth_sendTransaction": Method(given.OfMessage, self.send),
        }

    # --- The node ---------------------------------------------------------------------------------

    async def client_version(self, _: given.Nothing) -> str:
        """Who answers."""
        return f"cambist/v{__version__}/{platform.system().lower()}/python{platform.python_version()}"

    async def keccak(self, asked: given.OfRaw) -> str:
        """Of any bytes."""
        return to_hex(keccak256(asked.raw))

    async def network(self, _: given.Nothing) -> str:
        """The chain id in decimal."""
        return str(self._chain.chain_id)

    async def listening(self, _: given.Nothing) -> bool:
        """It does not dial anybody, and listens."""
        return True

    async def protocol(self, _: given.Nothing) -> str:
        """Of the wire between nodes, which this one does not speak; clients want a number."""
        return _PROTOCOL

    async def chain_id(self, _: given.Nothing) -> str:
        """EIP-155."""
        return hex(self._chain.chain_id)

    async def syncing(self, _: given.Nothing) -> bool:
        """There is nobody to be behind of."""
        return False

    async def accounts(self, _: given.Nothing) -> list[str]:
        """Those that this node signs for."""
        return [to_hex(address) for address in self._keys]

    # --- Blocks and transactions ------------------------------------------------------------------

    async def height(self, _: given.Nothing) -> str:
        """Of the latest block."""
        return hex((await self._chain.head()).header.number)

    async def block(self, asked: given.OfBlock) -> told.Json | None:
        """By height or word; the pending block has no hash, and none of the transactions that wait."""
        if asked.block.named == "pending":
            return told.block_json(await self._chain.pending(), full=asked.full) | {
                "hash": None,
                "nonce": None,
            }
        block = await self._found(asked.block)
        return None if block is None else told.block_json(block, full=asked.full)

    async def block_by_hash(self, asked: given.OfBlockHash) -> told.Json | None:
        """By hash."""
        block = await self._chain.full_block(bytes(asked.hash))
        return None if block is None else told.block_json(block, full=asked.full)

    async def count(self, asked: given.OnlyBlock) -> str | None:
        """Transactions of a block."""
        block = await self._found(asked.block)
        return None if block is None else hex(len(block.transactions))

    async def count_by_hash(self, asked: given.OnlyHash) -> str | None:
        """Transactions of a block."""
        block = await self._chain.full_block(bytes(asked.hash))
        return None if block is None else hex(len(block.transactions))

    async def receipts(self, asked: given.OnlyBlock) -> list[told.Json] | None:
        """All of a block."""
        block = await self._found(asked.block)
        return None if block is None else [told.receipt_json(block, at) for at in range(len(block.receipts))]

    async def transaction(self, asked: given.OnlyHash) -> told.Json | None:
        """Mined or waiting."""
        placed = await self._placed(asked.hash)
        if placed is not None:
            block, tx_index = placed
            return told.transaction_json(block.transactions[tx_index], block, tx_index)
        waiting = await self._chain.transaction(bytes(asked.hash))
        return None if waiting is None else told.transaction_json(waiting, None)

    async def transaction_at(self, asked: given.OfPlace) -> told.Json | None:
        """By its place."""
        return _transaction_of(await self._found(asked.block), asked.index)

    async def transaction_at_hash(self, asked: given.OfHashPlace) -> told.Json | None:
        """By its place."""
        return _transaction_of(await self._chain.full_block(bytes(asked.hash)), asked.index)

    async def receipt(self, asked: given.OnlyHash) -> told.Json | None:
        """Of a mined transaction."""
        placed = await self._placed(asked.hash)
        return None if placed is None else told.receipt_json(*placed)

    async def logs(self, asked: given.OfLogs) -> list[told.Json]:
        """Of a range of blocks or of one."""
        return [told.log_json(log) for log in await self.found_logs(asked.filter)]

    async def found_logs(self, wanted: given.Filter) -> list[Any]:
        """As `logs`, as values."""
        if wanted.block_hash is not None:
            found = await self._chain.logs_of(wanted.wanted(), bytes(wanted.block_hash))
        else:
            first = await self._bound(wanted.from_block)
            last = await self._bound(wanted.to_block)
            if first > last:
                raise RpcFault(INVALID_PARAMS, f"invalid block range params: {first} is above {last}")
            found = await self._chain.logs(wanted.wanted(), first, last)
        if len(found) > limits.DEVNET_LOGS_MAX:
            words = f"query returned more than {limits.DEVNET_LOGS_MAX} results: {len(found)}"
            raise RpcFault(LOGS_TOO_MANY, words)
        return found

    # --- State ------------------------------------------------------------------------------------

    async def nonce(self, asked: given.OfAccount) -> str:
        """Mined transactions of an account; with `pending`, those too that wait."""
        if asked.block.named == "pending":
            return hex(await self._chain.pending_nonce(bytes(asked.address)))
        return hex(await self._chain.nonce(bytes(asked.address), await self._at(asked.block)))

    async def balance(self, asked: given.OfAccount) -> str:
        """In wei."""
        return hex(await self._chain.balance(bytes(asked.address), await self._at(asked.block)))

    async def code(self, asked: given.OfAccount) -> str:
        """Of a contract."""
        return to_hex(await self._chain.code(bytes(asked.address), await self._at(asked.block)))

    async def slot(self, asked: given.OfSlot) -> str:
        """A word of storage."""
        word = await self._chain.slot(bytes(asked.address), int(asked.slot), await self._at(asked.block))
        return to_hex(word.to_bytes(32, "big"))

    async def call(self, asked: given.OfCall) -> str:
        """The return data of a contract at the time of the block; `pending` has the next block's time."""
        time_s = await self._time_s(asked)
        (answer,) = await self._chain.call_many(
            [_call(asked.transaction)], await self._at(asked.block), time_s
        )
        if isinstance(answer, Exception):
            raise answer
        return to_hex(answer)

    async def _time_s(self, asked: given.OfCall) -> int | None:
        """The time that a call reads, Unix seconds; None for the block's own."""
        if asked.block_overrides is not None and asked.block_overrides.time is not None:
            return int(asked.block_overrides.time)
        is_pending = asked.block is not None and asked.block.named == "pending"
        return (await self._chain.upcoming()).made_s if is_pending else None

    async def estimate(self, asked: given.OfCall) -> str:
        """Gas that a transaction needs, at the latest block whichever is named."""
        return hex(await self._chain.estimate_gas(_call(asked.transaction)))

    # --- Fees -------------------------------------------------------------------------------------

    async def gas_price(self, _: given.Nothing) -> str:
        """Base fee and tip."""
        fees = await self._chain.fees()
        return hex(fees.base_fee_wei + fees.tip_wei)

    async def tip(self, _: given.Nothing) -> str:
        """What is suggested to pay on top."""
        return hex((await self._chain.fees()).tip_wei)

    async def fee_history(self, asked: given.OfFeeHistory) -> told.Json:
        """Of so many blocks up to one."""
        newest = await self._known(asked.newest)
        count = min(max(1, asked.blocks), limits.DEVNET_FEE_BLOCKS_MAX, newest.header.number + 1)
        blocks = [newest]
        while len(blocks) < count:
            block = await self._chain.full_block(blocks[-1].header.parent_hash)
            if block is None:  # no longer kept
                break
            blocks.append(block)
        blocks.reverse()
        above = await self._chain.full_block(newest.header.number + 1)
        next_wei = above.header.base_fee_wei if above else (await self._chain.fees()).base_fee_wei
        return told.fee_history_json(blocks, next_wei, asked.percentiles)

    # --- Transactions -----------------------------------------------------------------------------

    async def send_raw(self, asked: given.OfRaw) -> str:
        """Hand in a signed transaction; its hash."""
        return await self._hand_in(bytes(asked.raw))

    async def send(self, asked: given.OfMessage) -> str:
        """Sign for one of this node's accounts, and hand it in; its hash."""
        wanted = asked.transaction
        key = self._keys.get(bytes(wanted.sender or b""))
        if key is None:
            raise RpcFault(REFUSED, "unknown account: this node signs for those of eth_accounts")
        fees = await self._chain.fees()
        tip_wei, fee_max_wei = _prices(wanted, fees.base_fee_wei, fees.tip_wei)
        gas = wanted.gas if wanted.gas is not None else await self._chain.estimate_gas(_call(wanted))
        nonce = wanted.nonce if wanted.nonce is not None else await self._chain.pending_nonce(key.address)
        transaction = Transaction(
            chain_id=self._chain.chain_id,
            nonce=int(nonce),
            tip_wei=tip_wei,
            fee_max_wei=fee_max_wei,
            gas=int(gas),
            to=bytes(wanted.to or b""),
            value_wei=int(wanted.value or 0),
            data=wanted.calldata(),
        )
        try:
            signed = sign_transaction(transaction, key)
        except ValueError as error:
            raise RpcFault(INVALID_PARAMS, str(error)) from None
        return await self._hand_in(signed.raw)

    async def _hand_in(self, raw: bytes) -> str:
        tx_hash = keccak256(raw)
        if await self._chain.knows(tx_hash) and await self._chain.receipt(tx_hash) is None:
            raise known_already()
        try:
            return to_hex(await self._chain.send_raw(raw))
        except TransactionRefused as error:
            raise refusal_of(raw, error) from None

    # --- Which block ------------------------------------------------------------------------------

    async def _found(self, ref: given.BlockRef) -> Block | None:
        """A block; None where the chain has no such block."""
        named = ref.named
        if not isinstance(named, str):
            return await self._chain.full_block(named)
        head = await self._chain.head()
        below = {"safe": _SAFE_BELOW, "finalized": _FINALIZED_BELOW, "earliest": head.header.number}.get(
            named
        )
        return head if below is None else await self._chain.full_block(max(0, head.header.number - below))

    async def _known(self, ref: given.BlockRef) -> Block:
        block = await self._found(ref)
        if block is None:
            raise RpcFault(REFUSED, "header not found")
        return block

    async def _at(self, ref: given.BlockRef | None) -> At:
        """A block as the port names it."""
        if ref is None or ref.named in ("latest", "pending"):
            return None
        return (await self._known(ref)).header.hash

    async def _bound(self, ref: given.BlockRef | None) -> int:
        """One end of a range; it may lie above the latest block."""
        if ref is not None and isinstance(ref.named, int):
            return ref.named
        return (await self._known(ref or given.BlockRef("latest"))).header.number

    async def _placed(self, tx_hash: bytes) -> tuple[Block, int] | None:
        """The block of a mined transaction, and its place in it."""
        receipt = await self._chain.receipt(bytes(tx_hash))
        block = None if receipt is None else await self._chain.full_block(receipt.block_hash)
        return None if receipt is None or block is None else (block, receipt.tx_index)


def _call(wanted: given.UnsignedTransaction) -> EthCall:
    gas_max = min(int(wanted.gas or 0), limits.EMBEDDED_BLOCK_GAS)
    value_wei, data = int(wanted.value or 0), wanted.calldata()
    to = bytes(wanted.to or b"")
    if wanted.sender is None:
        return EthCall(to, data, value_wei=value_wei, gas_max=gas_max)
    return EthCall(to, data, bytes(wanted.sender), value_wei, gas_max)


def _prices(wanted: given.UnsignedTransaction, base_fee_wei: int, tip_wei: int) -> tuple[int, int]:
    """The tip and the most of a transaction that this node signs."""
    if wanted.gas_price is not None:
        return int(wanted.gas_price), int(wanted.gas_price)
    tip = tip_wei if wanted.max_priority_fee_per_gas is None else int(wanted.max_priority_fee_per_gas)
    most = 2 * base_fee_wei + tip if wanted.max_fee_per_gas is None else int(wanted.max_fee_per_gas)
    return min(tip, most), most


def _transaction_of(block: Block | None, index: int) -> told.Json | None:
    if block is None or index >= len(block.transactions):
        return None
    return told.transaction_json(block.transactions[index], block, int(index))
