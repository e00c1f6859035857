"""The maker's funds from a node: balances, allowances and what became of its live quotes, at one block.

All reads of a round are pinned to one block, so that a fill shows in the balance and in the quote's
remainder at once: the reservation is released by the same round that lowers the balance.

Source: document 3, Firm order (the maker approves the RFQ contract); interop.md 1 (`remaining`).
"""

from collections.abc import Mapping, Sequence

import structlog
import trio

from ...codecs import calldata
from ...config.errors import ChainError
from ..chain.json_rpc import Node
from .ledger import Holding, Ledger
from .quotes import Desk

HASHES_PER_CALL = 500
HASHES_PER_ROUND = 2_000

_log = structlog.get_logger("cambist.maker")


async def follow_funds(
    node: Node,
    desk: Desk,
    holdings: Sequence[Holding],
    *,
    maker: bytes,
    contract: bytes,
    caps: Mapping[bytes, int],
    share: int,
    every_s: float,
    stale_s: float,
) -> None:
    """Read the node for ever; without an answer for `stale_s` nothing more is signed.

    Args:
        caps: token -> most raw units to promise, whatever the balance.
        share: how many processes divide the funds.
    """
    answered_at = trio.current_time()
    failing = False
    while True:
        try:
            with trio.fail_after(stale_s):
                await read_funds(node, desk.ledger, holdings, maker, contract, caps, share)
        except (ChainError, trio.TooSlowError) as error:
            detail = error.detail if isinstance(error, ChainError) else f"no answer within {stale_s} s"
            if not failing:
                _log.warning("node is not answering", detail=detail)
            failing = True
            if trio.current_time() - answered_at >= stale_s:
                desk.funds_known = False
        else:
            if failing or not desk.funds_known:
                _log.info("node is answering")
            failing, desk.funds_known, answered_at = False, True, trio.current_time()
        await trio.sleep(every_s)


async def read_funds(
    node: Node,
    ledger: Ledger,
    holdings: Sequence[Holding],
    maker: bytes,
    contract: bytes,
    caps: Mapping[bytes, int],
    share: int,
) -> None:
    """One round: funds of all tokens and the state of the oldest live quotes, at the latest block.

    Raises:
        ChainError: nothing was changed.
    """
    block = await node.block_number()
    live = ledger.oldest(HASHES_PER_ROUND)
    chunks = [live[start : start + HASHES_PER_CALL] for start in range(0, len(live), HASHES_PER_CALL)]
    reads = [(holding.token, calldata.balance_of(maker)) for holding in holdings]
    reads += [(holding.token, calldata.allowance(maker, contract)) for holding in holdings]
    reads += [(contract, calldata.remaining_balances(maker, chunk)) for chunk in chunks]
    answers = await node.call_all(reads, block)
    count = len(holdings)
    funds = [
        min(_word(balance), _word(allowance))
        for balance, allowance in zip(answers[:count], answers[count : 2 * count], strict=True)
    ]
    remainders = [
        _words(answer, len(chunk)) for answer, chunk in zip(answers[2 * count :], chunks, strict=True)
    ]
    for holding, amount in zip(holdings, funds, strict=True):
        holding.funds = min(amount, caps.get(holding.token, amount)) // share
    for chunk, remainder in zip(chunks, remainders, strict=True):
        for order_hash, left in zip(chunk, remainder, strict=True):
            ledger.settle(order_hash, left)
    ledger.rotate(live)


def _word(answer: bytes) -> int:
    """A uint256 that a call returned.

    Raises:
        ChainError: it returned something else; no contract is there, most likely.
    """
    if len(answer) != 32:
        raise ChainError(f"expected one word from a contract, got {len(answer)} bytes")
    return int.from_bytes(answer, "big")


def _words(answer: bytes, count: int) -> list[int]:
    """A uint256[] of `count` elements that a call returned.

    Raises:
        ChainError: it returned something else.
    """
    head = (32).to_bytes(32, "big") + count.to_bytes(32, "big")
    if len(answer) != 64 + 32 * count or not answer.startswith(head):
        raise ChainError(f"expected an array of {count} words from a contract, got {len(answer)} bytes")
    return [int.from_bytes(answer[at : at + 32], "big") for at in range(64, len(answer), 32)]
