"""Reads the maker's balances, allowances and the fill state of its live quotes from a node, at one block.

All reads of a round are pinned to one block, and expired quotes are released by that block's time: a fill
then shows in the balance and in the quote's remainder at once, and no quote is released that an unread block
could still fill. A round at a lower block than the last one is discarded: it comes from a lagging node
behind the same URL, or from an unfinished reorganisation. Only after twice `stale_s` of such rounds, long
after quoting has stopped, does the maker conclude that the chain was rolled back.

A block whose state has been read is not read again: on a quiet chain a round is one question.

With node_head_max_s = 0, for devnets that mine on demand, quotes are released by the process's clock.

Source: spec 3.5.9 to 3.5.11; interop.md 1 (`remaining`).
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import structlog
import trio

from .....codecs.contracts import calldata
from .....config.errors import ChainError
from ....chain.nodes.json_rpc import RpcNode
from .ledger import MakerHolding, Promise, Share
from .quotes import Desk

QUOTES_PER_CALL = 500
QUOTES_PER_ROUND = 2_000
UNKNOWN = "the maker's funds cannot be read from its node"

_log = structlog.get_logger("cambist.maker")


class FundsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for reading a maker's balances from a node: accounts, caps, intervals and largest ages.

    Attributes:
        maker, contract: owner of the funds, and the RFQ contract that spends them; 20 bytes each.
        caps: token -> most raw units of the balance to use for quotes.
        processes: number of maker processes that divide the funds.
        promise_s: longest time, in seconds, for which a firm quote keeps funds reserved.
        every_s: seconds between two rounds of reads.
        stale_s: age of the last successful round, in seconds, after which no quote is signed.
        head_max_s: largest age of the node's latest block, in seconds, at which balances in the block are
            used; 0 turns the check off.
    """

    maker: bytes
    contract: bytes
    caps: Mapping[bytes, int]
    processes: int
    promise_s: int
    every_s: float
    stale_s: float
    head_max_s: float


class MakerFunds:
    """Updates the recorded funds of a maker, and fills of the maker's quotes, from a chain's latest block."""

    def __init__(
        self,
        node: RpcNode,
        desk: Desk,
        holdings: Sequence[MakerHolding],
        settings: FundsSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._node = node
        self._desk = desk
        self._holdings = holdings
        self._settings = settings
        self._wall_ms = wall_ms
        self._block, self._hash = 0, b""
        self._funds: list[int] = []  # of each holding, at the block that was read last
        self._read_at = trio.current_time()
        self._shares = [Share(settings.processes, settings.promise_s) for _ in holdings]

    async def follow(self) -> None:
        """Read balances, allowances and quotes' fills from the node, round after round, until cancelled."""
        said = ""
        while True:
            try:
                with trio.fail_after(self._settings.stale_s):
                    await self.read()
            except (ChainError, trio.TooSlowError) as error:
                detail = error.detail if isinstance(error, ChainError) else "no answer in time"
                if not said:
                    _log.warning("node is not believed", detail=detail)
                said = detail
                if trio.current_time() - self._read_at >= self._settings.stale_s:
                    self._desk.withhold("funds", UNKNOWN)
            else:
                if said:
                    _log.info("node is believed again")
                said = ""
            await trio.sleep(self._settings.every_s)

    async def read(self) -> None:
        """Read the maker's funds in all tokens, and the fills of up to QUOTES_PER_ROUND live quotes, from
        the node at its latest block, unless all has been read at that block.

        Raises:
            ChainError: a read failed; the recorded funds and quotes stay as they were.
        """
        settings, ledger = self._settings, self._desk.ledger
        head = await self._node.head()
        self._check(head.number, head.time_s)
        # At the same block all is as it was read. Quotes that were signed since then are unfilled in it.
        if head.hash != self._hash:
            is_whole = len(ledger) <= QUOTES_PER_ROUND
            await self._read_block(
                head.number, ledger.promises() if is_whole else ledger.take_turns(QUOTES_PER_ROUND)
            )
            self._hash = head.hash if is_whole else b""
        self._apply(self._funds)
        # Set last: the ledger releases expired quotes by this time, so the funds at this block come first.
        self._block, self._read_at = head.number, trio.current_time()
        self._desk.chain_time_s = head.time_s if settings.head_max_s else None
        self._desk.withhold("funds", "")

    async def _read_block(self, block: int, live: Sequence[Promise]) -> None:
        """Read the maker's funds in all tokens, and the fills of some of its live quotes, at a block."""
        settings, node, ledger = self._settings, self._node, self._desk.ledger
        chunks = [live[start : start + QUOTES_PER_CALL] for start in range(0, len(live), QUOTES_PER_CALL)]
        reads = [(holding.token, calldata.balance_of(settings.maker)) for holding in self._holdings]
        reads += [
            (holding.token, calldata.allowance(settings.maker, settings.contract))
            for holding in self._holdings
        ]
        reads += [
            (
                settings.contract,
                calldata.remaining_balances(settings.maker, [promise.order_hash for promise in chunk]),
            )
            for chunk in chunks
        ]
        # During this await quotes may be signed or released. A new quote stays reserved in full until a later
        # round reads it; `settle` ignores a released quote.
        answers = await node.call_all(reads, block)
        count = len(self._holdings)
        self._funds = [
            min(_word(balance), _word(allowance))
            for balance, allowance in zip(answers[:count], answers[count : 2 * count], strict=True)
        ]
        remainders = [
            _words(answer, len(chunk)) for answer, chunk in zip(answers[2 * count :], chunks, strict=True)
        ]
        for chunk, remainder in zip(chunks, remainders, strict=True):
            for promise, left in zip(chunk, remainder, strict=True):
                ledger.settle(promise, left)

    def _check(self, block: int, time_s: int) -> None:
        """Raise ChainError if the node's latest block is outdated: too old, or lower than the block of the
        last successful round.

        Args:
            block: number of the node's latest block.
            time_s: timestamp of that block, Unix seconds.
        """
        settings = self._settings
        waited_s = trio.current_time() - self._read_at
        if block < self._block and waited_s < 2 * settings.stale_s:
            raise ChainError(f"the latest block went back from {self._block} to {block}")
        age_s = self._wall_ms() / 1_000 - time_s
        if settings.head_max_s and age_s > settings.head_max_s:
            raise ChainError(f"the latest block, {block}, is {age_s:.0f} s old")

    def _apply(self, funds: Sequence[int]) -> None:
        now_s = self._wall_ms() // 1_000
        caps = self._settings.caps
        for holding, share, amount in zip(self._holdings, self._shares, funds, strict=True):
            holding.funds = share.of(min(amount, caps.get(holding.token, amount)), now_s)


def _word(answer: bytes) -> int:
    """Decode a uint256 that a contract call returned.

    Raises:
        ChainError: the data is not 32 bytes; most likely the address has no contract.
    """
    if len(answer) != 32:
        raise ChainError(f"expected one word from a contract, got {len(answer)} bytes")
    return int.from_bytes(answer, "big")


def _words(answer: bytes, count: int) -> list[int]:
    """Decode a uint256[] of `count` elements that a contract call returned.

    Raises:
        ChainError: the data is no array of `count` elements.
    """
    head = (32).to_bytes(32, "big") + count.to_bytes(32, "big")
    if len(answer) != 64 + 32 * count or not answer.startswith(head):
        raise ChainError(f"expected an array of {count} words from a contract, got {len(answer)} bytes")
    return [int.from_bytes(answer[at : at + 32], "big") for at in range(64, len(answer), 32)]
