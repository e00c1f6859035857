"""The demo's two chains with their contracts, and the demo step that fills a firm quote on the first chain.

The chains are a devnet behind JSON-RPC with bridges between them, as `cambist devnet --bridge` runs them; the
market maker reads its balances from the first chain.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import OrderInfo, approve
from ....codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in
from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.http1 import Http1Limits
from ....config import limits
from ....config.chains import DEVNET_CHAINS, ChainSettings
from ....config.errors import Reverted
from ....crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from ....crypto.hexadecimal import parse_hex, to_hex
from ....crypto.secp256k1 import SigningKey
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.streams import client_tls, listen
from ...chain.deploy.address_book import DeployedChain
from ...chain.nodes.json_rpc import RpcNode
from ...chain.port import DevChain, EthCall
from ...chain.transact import transact
from ..bridge.devnet_bridge import DevnetBridge
from ..devnet.serve import DevnetOptions, RunningChain, running_chain
from .balances import Balances, balances, moved

CHAIN_ID, FAR_CHAIN_ID = DEVNET_CHAINS
_MAKER, _USER, _STRANGER = 2, 3, 4  # accounts of the devnet
_DEADLINE_S = 300
WAIT_S = 60.0
"""Longest wait for an answer or an event of the demo, seconds: long enough for a busy machine."""
_WITHOUT_BODIES = False


class PlacedChain(Struct, frozen=True):
    """A chain of the demo.

    Attributes:
        chain: interface to the chain, with the commands of a development chain.
        running: the chain's URL and addresses.
    """

    chain: DevChain
    running: RunningChain

    def at(self, name: str) -> bytes:
        """Return the 20-byte address of a contract or token, e.g. `rfq`, `router`, `executor`, `WETH`."""
        return self.running.at(name)


class DemoChain(PlacedChain, frozen=True):
    """The demo's first chain, with the keys of the accounts that act on it, and the way to the other chain.

    Attributes:
        keys: keys of all funded accounts, the same on both chains.
        maker: key of an account that has approved the RFQ contract for its WETH and USDC.
        user, stranger: keys of accounts that have approved the Router for their WETH.
        far: the other chain, to which bridges carry tokens.
        bridge_url: URL of the bridges' service: fees, attestations and controls.
    """

    keys: tuple[SigningKey, ...]
    maker: SigningKey
    user: SigningKey
    stranger: SigningKey
    far: PlacedChain
    bridge_url: str


class _Sent(Struct, frozen=True):
    """Answer of `eth_getTransactionByHash`; only the calldata (`input`) is decoded."""

    input: str


class _BlockTransactions(Struct, frozen=True):
    """Answer of `eth_getBlockByNumber`; only the hashes of the transactions are decoded."""

    transactions: tuple[str, ...]


@asynccontextmanager
async def a_stage(folder: Path) -> AsyncIterator[DemoChain]:
    """Context manager: run the demo's chains with contracts, funded accounts and bridges; yield a DemoChain.

    The accounts `maker`, `user` and `stranger` of the DemoChain have already sent their token approvals.

    Args:
        folder: state directory of the devnet.
    """
    keys = account_keys(DEV_MNEMONIC, limits.DEVNET_ACCOUNTS)
    wanted = DevnetOptions(
        chains={chain_id: ChainSettings(name="devnet") for chain_id in DEVNET_CHAINS},
        host="127.0.0.1",
        port=0,
        keys=tuple(keys),
        mnemonic=DEV_MNEMONIC,
        block_time_s=0,
        anvil=False,
        state_dir=folder,
    )
    async with (
        running_chain(wanted, os.environ, CHAIN_ID) as near,
        running_chain(wanted, os.environ, FAR_CHAIN_ID) as far,
        trio.open_nursery() as nursery,
    ):
        listener = listen("127.0.0.1", 0)
        bridge_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        pairs = [(chain, running.entry) for chain, running in (near, far)]
        await nursery.start(DevnetBridge(listener, keys[0]).run, pairs)
        traders = keys[_MAKER], keys[_USER], keys[_STRANGER]
        stage = DemoChain(*near, tuple(keys), *traders, PlacedChain(*far), bridge_url)
        for token in ("WETH", "USDC"):
            allowed = approve(stage.at("rfq"), limits.UINT256_MAX)
            await transact(stage.chain, stage.maker, stage.at(token), allowed)
        for trader in (stage.user, stage.stranger):
            allowed = approve(stage.at("router"), limits.UINT256_MAX)
            await transact(stage.chain, trader, stage.at("WETH"), allowed)
        yield stage
        nursery.cancel_scope.cancel()


def show_contracts(console: Console, running: RunningChain) -> None:
    """Print the deployed contracts with their addresses, and the chain's id, EVM and URL."""
    table = Table("contract", "address", box=None)
    for name, address in _addresses(running.entry).items():
        table.add_row(name, address)
    console.print(table)
    console.print(f"  chain {running.chain_id}, {running.engine} EVM, JSON-RPC at {running.url}")


async def answer_of(url: str, method: str, *params: object) -> bytes:
    """Return the JSON of the result of a JSON-RPC method of a devnet's chain, or of its bridges."""
    async with DialTransport(tls=client_tls(), connections_max=1, limits=Http1Limits()) as transport:
        node = RpcNode(transport, url, "the devnet", WAIT_S)
        (found,) = await node.batch([(method, list(params))])
    return found


async def calldata_of(stage: DemoChain, tx_hash: bytes) -> bytes:
    """Read the calldata of a transaction by JSON-RPC."""
    found = msgspec.json.decode(
        await answer_of(stage.running.url, "eth_getTransactionByHash", to_hex(tx_hash)), type=_Sent
    )
    return parse_hex(found.input, "input")


async def transactions_of(stage: DemoChain, number: int) -> list[bytes]:
    """Read the hashes of the transactions in a block by JSON-RPC, in order."""
    raw = await answer_of(stage.running.url, "eth_getBlockByNumber", hex(number), _WITHOUT_BODIES)
    return [parse_hex(tx, "hash") for tx in msgspec.json.decode(raw, type=_BlockTransactions).transactions]


async def show_fill(console: Console, stage: DemoChain, order: RfqOrder, signature: bytes) -> None:
    """Fill a firm quote through the Router, and show that a second fill and a stranger's fill revert.

    Raises:
        AssertionError: the balances did not change as quoted, or a fill that must revert succeeded.
    """
    before = await _balances(stage)
    swap = await _swap(stage, order, signature)
    receipt = await transact(stage.chain, stage.user, stage.at("router"), swap_exact_in(swap))
    after = await _balances(stage)
    table = Table("", "WETH before", "after", "USDC before", "after", box=None)
    for who in ("maker", "user"):
        cells = [
            format_units(of[who, token], decimals)
            for token, decimals in (("WETH", 18), ("USDC", 6))
            for of in (before, after)
        ]
        table.add_row(who, *cells)
    console.print(table)
    expected = {
        ("maker", "WETH"): order.taker_amount,
        ("maker", "USDC"): -order.maker_amount,
        ("user", "WETH"): -order.taker_amount,
        ("user", "USDC"): order.maker_amount,
    }
    if moved(before, after) != expected:
        raise AssertionError(f"the fill moved {moved(before, after)}")
    console.print(
        f"  filled in block {receipt.block_number} for {receipt.gas_used} gas, to the unit as quoted",
        highlight=False,
    )
    await _show_refusals(console, stage, swap)


async def _show_refusals(console: Console, stage: DemoChain, swap: RouterSwap) -> None:
    table = Table("again", "answer", box=None)
    for name, trader, word in (
        ("by the user: the quote is filled", stage.user, "Couldn't swap"),
        ("by a stranger: it is not theirs", stage.stranger, "NotTheUsers"),
    ):
        call = EthCall(stage.at("router"), swap_exact_in(swap), trader.address)
        try:
            await stage.chain.call(call)
        except Reverted as error:
            if word not in error.reason:
                raise AssertionError(f"{name}: {error.reason}") from None
            table.add_row(name, f"[red]{error.reason}[/red]")
        else:
            raise AssertionError(f"{name}: it goes through")
    console.print(table)


async def _swap(stage: DemoChain, order: RfqOrder, signature: bytes) -> RouterSwap:
    head = await stage.chain.block()
    if head is None:
        raise AssertionError("a chain has a latest block")
    return RouterSwap(
        src_token=order.taker_asset,
        dest_token=order.maker_asset,
        src_amount=order.taker_amount,
        dest_amount=order.maker_amount,
        expected_amount=order.maker_amount,
        receiver=stage.user.address,
        deadline=head.time_s + _DEADLINE_S,
        partner_and_fee=0,
        permit=b"",
        hops=(Hop(orders=(OrderInfo(order, signature, order.taker_amount),)),),
    )


async def _balances(stage: DemoChain) -> Balances:
    people = {"maker": stage.maker.address, "user": stage.user.address}
    return await balances(stage.chain, {symbol: stage.at(symbol) for symbol in ("WETH", "USDC")}, people)


def _addresses(entry: DeployedChain) -> dict[str, str]:
    named = {
        "Rfq": entry.rfq,
        "Delta": entry.delta,
        "Router": entry.router,
        "RfqExecutor": entry.executor,
        "FeeVault": entry.fee_vault,
    }
    return {name: address for name, address in named.items() if address}
