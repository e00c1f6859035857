"""A chain that knows what accounts have, what was settled and deposited, and counts what it is asked.

chain = FundsChain()
chain.balances[WETH, ALICE] = 5
chain.grow()
"""

from collections.abc import Sequence

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF
from cambist.codecs.contracts.delta_calldata import DEPOSITS, ORDER_STATE
from cambist.config.errors import BlockGone, ChainError, NodeUnavailable, Reverted
from cambist.engine.chain.port import At, EthCall, Header

CONTRACT = b"\xde" * 20
PLENTY = 10**30


class FundsChain:
    """Everybody has and allows PLENTY of everything unless it is said otherwise.

    Attributes:
        balances, allowances: (token, owner) -> raw units.
        deposits: owner -> wei; none unless it is said otherwise.
        fills: order hash -> what is settled, or slices.
        garbage: tokens that answer nothing; refusing: those that revert.
        unreadable: owners; the node answers no batch with a balance of theirs.
        is_away: nobody answers.
        questions: (token, owner) of each balance that was asked for, in order.
        batches: calls of each batch.
    """

    chain_id = 1

    def __init__(self) -> None:
        self.number = 1
        self.balances: dict[tuple[bytes, bytes], int] = {}
        self.allowances: dict[tuple[bytes, bytes], int] = {}
        self.deposits: dict[bytes, int] = {}
        self.fills: dict[bytes, int] = {}
        self.garbage: set[bytes] = set()
        self.refusing: set[bytes] = set()
        self.unreadable: set[bytes] = set()
        self.is_away = False
        self.questions: list[tuple[bytes, bytes]] = []
        self.batches: list[int] = []

    def grow(self, blocks: int = 1) -> None:
        """Make blocks."""
        self.number += blocks

    async def block(self, at: At = None) -> Header | None:
        """The latest one."""
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        assert at is None or at == self._hash()
        return Header(self.number, self._hash(), bytes(32), self.number, 7)

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """At the latest block alone."""
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        if at != self._hash():
            raise BlockGone("only the latest block is known")
        self.batches.append(len(calls))
        if any(call.data[:4] == BALANCE_OF and call.data[16:36] in self.unreadable for call in calls):
            raise ChainError("out of gas")
        return [self._answer(call) for call in calls]

    def _answer(self, call: EthCall) -> bytes | Exception:
        if call.to in self.garbage:
            return b"\x01"
        if call.to in self.refusing:
            return Reverted("no")
        name, words = call.data[:4], [call.data[at : at + 32] for at in range(4, len(call.data), 32)]
        if name == BALANCE_OF:
            self.questions.append((call.to, words[0][12:]))
            return uint_word(self.balances.get((call.to, words[0][12:]), PLENTY))
        if name == ALLOWANCE:
            assert words[1][12:] == CONTRACT
            return uint_word(self.allowances.get((call.to, words[0][12:]), PLENTY))
        assert call.to == CONTRACT
        if name == DEPOSITS:
            return uint_word(self.deposits.get(words[0][12:], 0))
        assert name == ORDER_STATE
        return bytes(64) + uint_word(self.fills.get(words[2], 0))

    def _hash(self) -> bytes:
        return self.number.to_bytes(32, "big")
