"""Transactions that a trader in this process gives up soon: one that was sent, or one that no node knows.

with given_up_once_sent():
    done = await shell.invoke("swap", "ETH", "USDC", "1", "--yes")
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cambist.codecs.transactions import SignedTransaction
from cambist.engine.chain import transact
from cambist.engine.chain.port import Chain, Receipt
from cambist.engine.chain.transact import send_and_follow
from cambist.engine.trader.client import following
from cambist.engine.trader.client.following import receipt_of
from cambist.engine.trader.client.order import order_following, transfer_proof

_FOLLOW_S = 0.5
STRANGE = b"\x11" * 32
"""Hash of a transaction that no node knows."""


@contextmanager
def given_up_once_sent() -> Iterator[None]:
    """Bound of following a transaction: short, and counted from its arrival at a node."""

    async def follow(chain: Chain, transaction: SignedTransaction, _: float) -> Receipt:
        await chain.send_raw(transaction.raw)  # sent again below, which is harmless
        return await send_and_follow(chain, transaction, _FOLLOW_S)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transact, "send_and_follow", follow)
        yield


@contextmanager
def strange_is_unknown_soon() -> Iterator[None]:
    """Short bound of the wait for STRANGE; that for any other transaction stays."""

    async def hasty(chain: Chain, tx_hash: bytes) -> Receipt | None:
        with pytest.MonkeyPatch.context() as patch:
            if tx_hash == STRANGE:
                patch.setattr(following, "TRADER_RECEIPT_S", _FOLLOW_S)
            return await receipt_of(chain, tx_hash)

    with pytest.MonkeyPatch.context() as patch:
        for module in (order_following, transfer_proof):
            patch.setattr(module, "receipt_of", hasty)
        yield
