"""Transactions of commands that run in this process and are given up soon after they were sent.

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

_FOLLOW_S = 0.5


@contextmanager
def given_up_once_sent() -> Iterator[None]:
    """Bound of following a transaction: short, and counted from its arrival at a node."""

    async def follow(chain: Chain, transaction: SignedTransaction, _: float) -> Receipt:
        await chain.send_raw(transaction.raw)  # sent again below, which is harmless
        return await send_and_follow(chain, transaction, _FOLLOW_S)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transact, "send_and_follow", follow)
        yield
