"""The JSON-RPC methods of any Ethereum node, answered from the embedded chain.

    facade.py       methods of any node
    controls.py     methods of development nodes alone
    filters.py      filters and subscriptions

The block tag `pending` refers to the latest block's state, the next block's header and time, and a nonce that
counts waiting transactions. `safe` is 32 blocks below the latest block and `finalized` 64, as on anvil.

Source: the Ethereum execution API; EIP-1474; the methods of anvil and hardhat.
"""

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import trio
from msgspec import Struct

from ....codecs.transactions import (
    ACCESS_LIST,
    LEGACY,
    ReceivedTransaction,
    Transaction,
    sign_priced_transaction,
    sign_transaction,
)
from ....config import limits, timeouts
from ....config.errors import TransactionRefused
from ....config.version import __version__
from ....crypto.hexadecimal import to_hex
from ....crypto.keccak import keccak256
from ....crypto.secp256k1 import SigningKey
from ...chain.port import At, EthCall
from ..embedded.blocks import Block, access_list_gas
from ..embedded.embedded import EmbeddedChain
from ..embedded.evm import COINBASE
from . import parameters as given
from . import rendering
from .faults import (
    INVALID_PARAMS,
    LOGS_TOO_MANY,
    NOT_EXECUTABLE,
    NOT_MINED,
    REFUSED,
    RpcFault,
    known_already,
    refusal_of,
)

T = TypeVar("T")

_SAFE_BELOW, _FINALIZED_BELOW = 32, 64
_PROTOCOL = "0x41"


class Method(Struct, frozen=True):
    """A JSON-RPC method of a devnet node.

    Attributes:
        takes: type to which the parameters are decoded.
        answer: function from the decoded parameters to a result that JSON can encode; raises RpcFault or
            ChainError.
    """

    takes: type[Struct]
    answer: Callable[[Any], Awaitable[object]]


Methods = Mapping[str, Method]


class Reads:
    """JSON-RPC methods that any node has: reads of the chain, and sending of transactions.

    Args:
        keys: private keys of the accounts for which the node signs transactions.
    """

    def __init__(self, chain: EmbeddedChain, keys: Sequence[SigningKey]) -> None:
        self._chain = chain
        self._keys = {key.address: key for key in keys}
        self._signing = trio.Lock()

    def methods(self) -> Methods:
        """Return the JSON-RPC methods that read the chain and send transactions, by name, e.g. `eth_call`."""
        return {
            "web3_clientVersion": Method(given.Nothing, self.client_version),
            "web3_sha3": Method(given.OfRaw, self.keccak),
            "net_version": Method(given.Nothing, self.network),
            "net_listening": Method(given.Nothing, self.listening),
            "eth_protocolVersion": Method(given.Nothing, self.protocol),
            "eth_chainId": Method(given.Nothing, self.chain_id),
            "eth_coinbase": Method(given.Nothing, self.coinbase),
            "eth_mining": Method(given.Nothing, self.mining),
            "eth_hashrate": Method(given.Nothing, self.hash_rate),
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
            "eth_createAccessList": Method(given.OfListing, self.access_list),
            "eth_gasPrice": Method(given.Nothing, self.gas_price),
            "eth_maxPriorityFeePerGas": Method(given.Nothing, self.tip),
            "eth_blobBaseFee": Method(given.Nothing, self.blob_base_fee),
            "eth_feeHistory": Method(given.OfFeeHistory, self.fee_history),
            "eth_getLogs": Method(given.OfLogs, self.logs),
            "txpool_content": Method(given.Nothing, self.pool),
            "txpool_inspect": Method(given.Nothing, self.pool_summary),
            "txpool_status": Method(given.Nothing, self.pool_size),
            "eth_sendRawTransaction": Method(given.OfRaw, self.send_raw),
            "eth_sendRawTransactionSync": Method(given.OfRawSync, self.send_raw_and_wait),
            "eth_sendTransaction": Method(given.OfMessage, self.send),
            "eth_signTransaction": Method(given.OfMessage, self.sign),
        }

    # --- The node ---------------------------------------------------------------------------------

    async def client_version(self, _: given.Nothing) -> str:
        """Answer `web3_clientVersion`: name, version and platform of this node."""
        return f"cambist/v{__version__}/{platform.system().lower()}/python{platform.python_version()}"

    async def keccak(self, params: given.OfRaw) -> str:
        """Answer `web3_sha3`: the keccak-256 hash of the given bytes."""
        return to_hex(keccak256(params.raw))

    async def network(self, _: given.Nothing) -> str:
        """Answer `net_version`: the chain id in decimal."""
        return str(self._chain.chain_id)

    async def listening(self, _: given.Nothing) -> bool:
        """Answer `net_listening`: always True, as for a node that accepts connections."""
        return True

    async def protocol(self, _: given.Nothing) -> str:
        """Answer `eth_protocolVersion`: a constant, since this node speaks no peer-to-peer protocol."""
        return _PROTOCOL

    async def chain_id(self, _: given.Nothing) -> str:
        """Answer `eth_chainId`: the EIP-155 chain id, hexadecimal."""
        return hex(self._chain.chain_id)

    async def coinbase(self, _: given.Nothing) -> str:
        """Answer `eth_coinbase`: the address that receives the tips, the zero address as on anvil."""
        return to_hex(COINBASE)

    async def mining(self, _: given.Nothing) -> bool:
        """Answer `eth_mining`: whether each sent transaction is mined at once."""
        return await self._chain.is_automine()

    async def hash_rate(self, _: given.Nothing) -> str:
        """Answer `eth_hashrate`: always 0, since blocks need no work."""
        return hex(0)

    async def syncing(self, _: given.Nothing) -> bool:
        """Answer `eth_syncing`: always False, since this node has no peers to sync from."""
        return False

    async def accounts(self, _: given.Nothing) -> list[str]:
        """Answer `eth_accounts`: the addresses of the accounts for which this node signs."""
        return [to_hex(address) for address in self._keys]

    # --- Blocks and transactions ------------------------------------------------------------------

    async def height(self, _: given.Nothing) -> str:
        """Answer `eth_blockNumber`: the height of the latest block, hexadecimal."""
        return hex((await self._chain.head()).header.number)

    async def block(self, params: given.OfBlock) -> rendering.Json | None:
        """Answer `eth_getBlockByNumber`: a block by height or tag; None if the chain has no such block.

        The pending block has no hash and no transactions.
        """
        if params.block.named == "pending":
            return rendering.block_json(await self._chain.pending(), full=params.full) | {
                "hash": None,
                "nonce": None,
            }
        block = await self._found(params.block)
        return None if block is None else rendering.block_json(block, full=params.full)

    async def block_by_hash(self, params: given.OfBlockHash) -> rendering.Json | None:
        """Answer `eth_getBlockByHash`: the block with a hash; None if the chain has no such block."""
        block = await self._chain.full_block(bytes(params.hash))
        return None if block is None else rendering.block_json(block, full=params.full)

    async def count(self, params: given.OnlyBlock) -> str | None:
        """Answer `eth_getBlockTransactionCountByNumber`: the number of a block's transactions.

        The answer is None if the chain has no block with the given height or tag.
        """
        block = await self._found(params.block)
        return None if block is None else hex(len(block.transactions))

    async def count_by_hash(self, params: given.OnlyHash) -> str | None:
        """Answer `eth_getBlockTransactionCountByHash`: the number of a block's transactions.

        The answer is None if the chain has no block with the given hash.
        """
        block = await self._chain.full_block(bytes(params.hash))
        return None if block is None else hex(len(block.transactions))

    async def receipts(self, params: given.OnlyBlock) -> list[rendering.Json] | None:
        """Answer `eth_getBlockReceipts`: all receipts of a block; None if the chain has no such block."""
        block = await self._found(params.block)
        if block is None:
            return None
        return [rendering.receipt_json(block, at) for at in range(len(block.receipts))]

    async def transaction(self, params: given.OnlyHash) -> rendering.Json | None:
        """Answer `eth_getTransactionByHash`: a mined or waiting transaction; None if the hash is unknown."""
        placed = await self._placed(params.hash)
        if placed is not None:
            block, tx_index = placed
            return rendering.transaction_json(block.transactions[tx_index], block, tx_index)
        waiting = await self._chain.transaction(bytes(params.hash))
        return None if waiting is None else rendering.transaction_json(waiting, None)

    async def pool(self, _: given.Nothing) -> dict[str, dict[str, dict[str, rendering.Json]]]:
        """Answer `txpool_content`: waiting transactions by sender and decimal nonce.

        `pending` has the executable transactions, `queued` those that wait for a lower nonce.
        """
        return await self._pool(lambda received: rendering.transaction_json(received, None))

    async def pool_summary(self, _: given.Nothing) -> dict[str, dict[str, dict[str, str]]]:
        """Answer `txpool_inspect`: receiver, value, gas and price of what `txpool_content` shows, as text."""
        return await self._pool(rendering.transaction_summary)

    async def pool_size(self, _: given.Nothing) -> rendering.Json:
        """Answer `txpool_status`: the number of executable transactions, and of those behind a gap."""
        are_executable = [is_executable for _, is_executable in await self._chain.waiting()]
        pending = sum(are_executable)
        return {"pending": hex(pending), "queued": hex(len(are_executable) - pending)}

    async def _pool(self, shown: Callable[[ReceivedTransaction], T]) -> dict[str, dict[str, dict[str, T]]]:
        content: dict[str, dict[str, dict[str, T]]] = {"pending": {}, "queued": {}}
        for received, is_executable in await self._chain.waiting():
            senders = content["pending" if is_executable else "queued"]
            line = senders.setdefault(to_hex(received.sender), {})
            line[str(received.transaction.nonce)] = shown(received)
        return content

    async def transaction_at(self, params: given.OfPlace) -> rendering.Json | None:
        """Answer `eth_getTransactionByBlockNumberAndIndex`: the transaction at an index of a block.

        The answer is None if the chain has no such block, or the block has no transaction at the index.
        """
        return _transaction_of(await self._found(params.block), params.index)

    async def transaction_at_hash(self, params: given.OfHashPlace) -> rendering.Json | None:
        """Answer `eth_getTransactionByBlockHashAndIndex`: the transaction at an index of a block.

        The answer is None if the chain has no block with the hash, or the block has no transaction at the
        index.
        """
        return _transaction_of(await self._chain.full_block(bytes(params.hash)), params.index)

    async def receipt(self, params: given.OnlyHash) -> rendering.Json | None:
        """Answer `eth_getTransactionReceipt`: the receipt of a transaction; None if it is not mined."""
        placed = await self._placed(params.hash)
        return None if placed is None else rendering.receipt_json(*placed)

    async def logs(self, params: given.OfLogs) -> list[rendering.Json]:
        """Answer `eth_getLogs`: the logs that match a filter, in a range of blocks or in one block."""
        return [rendering.log_json(log) for log in await self.found_logs(params.filter)]

    async def found_logs(self, wanted: given.Filter) -> list[Any]:
        """Return the logs that match a filter, in a range of blocks or in one block, as `Log` values.

        Raises:
            RpcFault: the range is reversed, or more than DEVNET_LOGS_MAX logs match.
        """
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

    async def nonce(self, params: given.OfAccount) -> str:
        """Answer `eth_getTransactionCount`: an account's nonce after a block.

        The nonce after the block `pending` counts the account's waiting transactions.
        """
        if params.block.named == "pending":
            return hex(await self._chain.pending_nonce(bytes(params.address)))
        return hex(await self._chain.nonce(bytes(params.address), await self._at(params.block)))

    async def balance(self, params: given.OfAccount) -> str:
        """Answer `eth_getBalance`: an account's balance after a block, in wei."""
        return hex(await self._chain.balance(bytes(params.address), await self._at(params.block)))

    async def code(self, params: given.OfAccount) -> str:
        """Answer `eth_getCode`: the code of the contract at an address, after a block."""
        return to_hex(await self._chain.code(bytes(params.address), await self._at(params.block)))

    async def slot(self, params: given.OfSlot) -> str:
        """Answer `eth_getStorageAt`: the value of a contract's storage slot after a block, 32 bytes."""
        word = await self._chain.slot(bytes(params.address), int(params.slot), await self._at(params.block))
        return to_hex(word.to_bytes(32, "big"))

    async def call(self, params: given.OfCall) -> str:
        """Answer `eth_call`: the output of a call on the state after a block.

        The called contracts read the time of the given block, or for `pending` the time of the next block,
        unless the request overrides the time.
        """
        time_s = await self._time_s(params)
        (answer,) = await self._chain.call_many(
            [_call(params.transaction)], await self._at(params.block), time_s
        )
        if isinstance(answer, Exception):
            raise answer
        return to_hex(answer)

    async def _time_s(self, params: given.OfCall) -> int | None:
        """Return the block time that the contracts of an `eth_call` read, Unix seconds.

        The result is None for the time of the block on whose state the call is executed.
        """
        if params.block_overrides is not None and params.block_overrides.time is not None:
            return int(params.block_overrides.time)
        is_pending = params.block is not None and params.block.named == "pending"
        return (await self._chain.upcoming()).made_s if is_pending else None

    async def estimate(self, params: given.OfCall) -> str:
        """Answer `eth_estimateGas`: the gas limit that a transaction needs, always at the latest block."""
        return hex(await self._gas(params.transaction))

    async def _gas(self, wanted: given.UnsignedTransaction) -> int:
        """Estimate the gas limit: the transaction's without its access list, and the list's own gas."""
        gas = await self._chain.estimate_gas(_call(wanted), wanted.authorizations())
        return gas + access_list_gas(wanted.accesses())

    async def access_list(self, params: given.OfListing) -> rendering.Json:
        """Answer `eth_createAccessList`: what a call accesses, and its gas with that list."""
        wanted = params.transaction
        accesses, gas = await self._chain.access_list(
            _call(wanted), await self._at(params.block), wanted.accesses()
        )
        return {"accessList": rendering.access_list_json(accesses), "gasUsed": hex(gas)}

    # --- Fees -------------------------------------------------------------------------------------

    async def gas_price(self, _: given.Nothing) -> str:
        """Answer `eth_gasPrice`: the sum of base fee and suggested tip, in wei per unit of gas."""
        fees = await self._chain.fees()
        return hex(fees.base_fee_wei + fees.tip_wei)

    async def tip(self, _: given.Nothing) -> str:
        """Answer `eth_maxPriorityFeePerGas`: the suggested tip, in wei per unit of gas."""
        return hex((await self._chain.fees()).tip_wei)

    async def blob_base_fee(self, _: given.Nothing) -> str:
        """Answer `eth_blobBaseFee`: the least base fee of blobs, 1 wei, since no block has blobs."""
        return hex(1)

    async def fee_history(self, params: given.OfFeeHistory) -> rendering.Json:
        """Answer `eth_feeHistory`: base fees, gas use and tips of a number of blocks up to `newest`."""
        newest = await self._known(params.newest)
        count = min(max(1, params.blocks), limits.DEVNET_FEE_BLOCKS_MAX, newest.header.number + 1)
        blocks = [newest]
        while len(blocks) < count:
            block = await self._chain.full_block(blocks[-1].header.parent_hash)
            if block is None:  # the block is no longer kept
                break
            blocks.append(block)
        blocks.reverse()
        above = await self._chain.full_block(newest.header.number + 1)
        next_wei = above.header.base_fee_wei if above else (await self._chain.fees()).base_fee_wei
        return rendering.fee_history_json(blocks, next_wei, params.percentiles)

    # --- Transactions -----------------------------------------------------------------------------

    async def send_raw(self, params: given.OfRaw) -> str:
        """Answer `eth_sendRawTransaction`: send a signed transaction; return its hash."""
        return to_hex(await self._hand_in(bytes(params.raw)))

    async def send_raw_and_wait(self, params: given.OfRawSync) -> rendering.Json:
        """Answer `eth_sendRawTransactionSync`: send a signed transaction; return its receipt.

        The wait ends after the request's time-out, at most DEVNET_SYNC_S, with error 4. A transaction behind
        a gap gives error 5 at once; in both cases `data` is the hash, and the transaction waits on.
        """
        tx_hash = await self._hand_in(bytes(params.raw))
        own_ms = int(timeouts.DEVNET_SYNC_S * 1_000)
        timeout_ms = int(params.timeout) if 0 < params.timeout <= own_ms else own_ms
        with trio.move_on_after(timeout_ms / 1_000):
            while True:
                head = await self._chain.head()
                if (placed := await self._placed(tx_hash)) is not None:
                    return rendering.receipt_json(*placed)
                if any(
                    to_wait.tx_hash == tx_hash and not ready for to_wait, ready in await self._chain.waiting()
                ):
                    words = "the transaction waits: a transaction with a lower nonce is missing"
                    raise RpcFault(NOT_EXECUTABLE, words, to_hex(tx_hash))
                await self._chain.wait_head(head.header.hash)
        words = f"the transaction waits: it is in no block after {timeout_ms} ms"
        raise RpcFault(NOT_MINED, words, to_hex(tx_hash))

    async def send(self, params: given.OfMessage) -> str:
        """Answer `eth_sendTransaction`: sign and send a transaction of an account of this node.

        The answer is the hash of the transaction.
        """
        # Held from the nonce to the hand-in: of two such requests at the same time, each gets its own nonce.
        async with self._signing:
            return to_hex(await self._hand_in(await self._signed(params.transaction)))

    async def sign(self, params: given.OfMessage) -> str:
        """Answer `eth_signTransaction`: sign a transaction of an account of this node; return its bytes.

        Nothing is sent: a transaction without a nonce gets the next one, at every request.
        """
        return to_hex(await self._signed(params.transaction))

    async def _signed(self, wanted: given.UnsignedTransaction) -> bytes:
        """Sign a transaction, with the chain's values for missing members; one price makes kind 0 or 1."""
        key, chain_id = self._keys.get(bytes(wanted.sender or b"")), self._chain.chain_id
        if key is None:
            raise RpcFault(
                INVALID_PARAMS, "unknown account, no signer available: expected one of eth_accounts"
            )
        if wanted.chain_id is not None and wanted.chain_id != chain_id:
            words = f"expected {hex(chain_id)}, got {hex(wanted.chain_id)}"
            raise RpcFault(INVALID_PARAMS, f"invalid argument 0: transaction.chainId: {words}")
        fees = await self._chain.fees()
        tip_wei, fee_max_wei = _prices(wanted, fees.base_fee_wei, fees.tip_wei)
        gas = wanted.gas if wanted.gas is not None else await self._gas(wanted)
        nonce = wanted.nonce if wanted.nonce is not None else await self._chain.pending_nonce(key.address)
        transaction = Transaction(
            chain_id=chain_id,
            nonce=int(nonce),
            tip_wei=tip_wei,
            fee_max_wei=fee_max_wei,
            gas=int(gas),
            to=bytes(wanted.to or b""),
            value_wei=int(wanted.value or 0),
            data=wanted.calldata(),
            access_list=wanted.accesses(),
            authorizations=wanted.authorizations(),
        )
        try:
            if wanted.gas_price is None:
                return sign_transaction(transaction, key).raw
            kind = LEGACY if wanted.access_list is None else ACCESS_LIST
            return sign_priced_transaction(transaction, key, kind).raw
        except ValueError as error:
            raise RpcFault(INVALID_PARAMS, str(error)) from None

    async def _hand_in(self, raw: bytes) -> bytes:
        tx_hash = keccak256(raw)
        if await self._chain.knows(tx_hash) and await self._chain.receipt(tx_hash) is None:
            raise known_already()
        try:
            return await self._chain.send_raw(raw)
        except TransactionRefused as error:
            raise refusal_of(raw, error) from None

    # --- Which block ------------------------------------------------------------------------------

    async def _found(self, ref: given.BlockRef) -> Block | None:
        """Block to which a tag, height or hash refers; None if the chain has no such block."""
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
        """Convert a block reference to the block's hash; None for the latest and the pending block."""
        if ref is None or ref.named in ("latest", "pending"):
            return None
        return (await self._known(ref)).header.hash

    async def _bound(self, ref: given.BlockRef | None) -> int:
        """Convert a block reference to a height; None to the height of the latest block.

        A height given as number is returned as it is, even if no block has this height yet.
        """
        if ref is not None and isinstance(ref.named, int):
            return ref.named
        return (await self._known(ref or given.BlockRef("latest"))).header.number

    async def _placed(self, tx_hash: bytes) -> tuple[Block, int] | None:
        """Block of a mined transaction, and the transaction's index in it; None for any other transaction."""
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
    """Return (tip, maximum fee) of a transaction that this node signs, in wei per unit of gas."""
    if wanted.gas_price is not None:
        return int(wanted.gas_price), int(wanted.gas_price)
    tip = tip_wei if wanted.max_priority_fee_per_gas is None else int(wanted.max_priority_fee_per_gas)
    most = 2 * base_fee_wei + tip if wanted.max_fee_per_gas is None else int(wanted.max_fee_per_gas)
    return min(tip, most), most


def _transaction_of(block: Block | None, index: int) -> rendering.Json | None:
    if block is None or index >= len(block.transactions):
        return None
    return rendering.transaction_json(block.transactions[index], block, int(index))
