"""A chain with tokens and an RFQ contract that are plain dictionaries, of which each block keeps a copy.

chain = OtcChain()
chain.has(ALICE, 50)                        balance; allowances are without end unless it is said otherwise
chain.fills(row, 20)                        a log of the contract, and two Transfers
chain.mine()                                all that happened since the last block is one block
chain.cut(3)                                forget what is above block 3, funds and fills too
"""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import trio
from msgspec import Struct

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.contracts.abi import encode, selector, uint_word, words_tail
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF, remaining_balances
from cambist.config.errors import BlockGone, ChainError, NodeUnavailable, Reverted
from cambist.crypto.eip1271 import MAGIC_VALUE4, SELECTOR4
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.store.rows import OtcOrderRow, amount_of
from support.chain.log_emitter import record
from support.chain.scripted_chain import ScriptedChain, Sent, tx
from support.store.stores import BOB, WETH

RFQ = b"\x0f" * 20
MOST = (1 << 256) - 1
_LEFT = remaining_balances(BOB, [])[:4]
_PERMIT = selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")


class State(Struct):
    """State of the contracts.

    Attributes:
        balances, allowances: (token, owner) -> raw units; nothing, and everything, unless it is there.
        left: (maker, order hash) -> as the contract keeps it: 1 closed, else what is left and 1.
        signed: order hashes that their makers' contracts accept.
        permits: permit -> raw units that a token takes it for; others are refused.
    """

    balances: dict[tuple[bytes, bytes], int]
    allowances: dict[tuple[bytes, bytes], int]
    left: dict[tuple[bytes, bytes], int]
    signed: set[bytes]
    permits: dict[bytes, int]


class OtcChain(ScriptedChain):
    """See the module.

    Attributes:
        state: as it will be in the next block.
        questions: (token, owner) of each balance that was asked for, in order.
        calls: selector -> how many calls were made with it, over all batches.
        batches: calls of each batch.
        garbage: tokens that answer nothing that is a number.
        unreadable: accounts; the node answers no batch with a call about one or to one.
        is_away: no call to a contract is answered.
    """

    chain_id = 1

    def __init__(self) -> None:
        self.state = State({}, {}, {}, set(), {})
        self.questions: list[tuple[bytes, bytes]] = []
        self.calls: Counter[bytes] = Counter()
        self.batches: list[int] = []
        self.garbage: set[bytes] = set()
        self.unreadable: set[bytes] = set()
        self.is_away = False
        self._states: dict[bytes, State] = {}
        self._sent: list[Sent] = []
        super().__init__()

    def grow(self, *blocks: Sequence[Sent]) -> None:
        """As `ScriptedChain`; each block keeps what there is."""
        for block in blocks:
            super().grow(block)
            self._states[self.head.hash] = deepcopy(self.state)

    def cut(self, number: int) -> None:
        """As `ScriptedChain`; the balances of the older block return."""
        super().cut(number)
        self._sent.clear()
        self.state = deepcopy(self._states[self.head.hash])

    def mine(self, blocks: int = 1) -> None:
        """A block with all that was sent, and empty ones after it."""
        sent, self._sent = self._sent, []
        self.grow(sent, *([] for _ in range(blocks - 1)))

    # --- Actions of accounts ------------------------------------------------------------------------------

    def has(self, owner: bytes, amount: int, token: bytes = WETH) -> None:
        """Set an account's balance, and send a Transfer of the account."""
        self.state.balances[token, owner] = amount
        self._send(token, events.Transfer(owner, bytes(20), 1))

    def has_quietly(self, owner: bytes, amount: int, token: bytes = WETH) -> None:
        """Set an account's balance in a token that emits no log."""
        self.state.balances[token, owner] = amount

    def allows(self, owner: bytes, amount: int, token: bytes = WETH) -> None:
        """Set an account's allowance to the contract, and send an Approval."""
        self.state.allowances[token, owner] = amount
        self._send(token, events.Approval(owner, RFQ, amount))

    def fills(self, row: OtcOrderRow, amount: int, name: bytes = b"") -> None:
        """A part of an order is filled, or all that is left."""
        key = row.maker, row.order_hash
        left = self.state.left.get(key, amount_of(row.maker_amount) + 1) - 1
        assert amount <= left, "the contract refuses it"
        self.state.left[key] = left - amount + 1
        account = row.maker_asset, row.maker
        self.state.balances[account] = max(self.state.balances.get(account, 0) - amount, 0)
        filled = events.OrderFilled(
            row.order_hash, row.maker, row.maker_asset, amount, BOB, row.taker_asset, 2 * amount
        )
        logs = (
            (row.maker_asset, record(events.Transfer(row.maker, BOB, amount))),
            (RFQ, record(filled)),
        )
        self._sent.append(tx(name or self._name(), *logs))

    def cancels(self, row: OtcOrderRow, sender: bytes | None = None) -> None:
        """Cancel an order, by default as its maker."""
        sender = row.maker if sender is None else sender
        self.state.left[sender, row.order_hash] = 1
        self._send(RFQ, events.OrderCancelled(row.order_hash, sender))

    def cancels_until(self, maker: bytes, expiry_s: int) -> None:
        """Cancel a maker's orders that expire until then, or never, which `remaining` does not show."""
        self._send(RFQ, events.OrdersCancelledUntil(maker, expiry_s))

    def accepts(self, row: OtcOrderRow) -> None:
        """The maker's contract signs, which leaves no log."""
        self.state.signed.add(row.order_hash)

    def _send(self, contract: bytes, event: Any) -> None:
        self._sent.append(tx(self._name(), (contract, record(event))))

    def _name(self) -> bytes:
        return b"%d of block %d, fork %d" % (len(self._sent), len(self.line), self._made)

    # --- Chain --------------------------------------------------------------------------------------------

    async def block(self, at: At = None) -> Header | None:
        """As `ScriptedChain`, unless the chain is away."""
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        return await super().block(at)

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """At any block that is in the chain."""
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        block_hash = self.head.hash if at is None else at
        if not any(block.header.hash == block_hash for block in self.line):
            raise BlockGone("no such block")
        assert isinstance(block_hash, bytes)
        self.batches.append(len(calls))
        if any(call.to in self.unreadable or call.data[16:36] in self.unreadable for call in calls):
            raise ChainError("out of gas")
        return [self._answer(self._states[block_hash], call) for call in calls]

    def _answer(self, state: State, call: EthCall) -> bytes | Exception:
        name, words = call.data[:4], [call.data[at : at + 32] for at in range(4, len(call.data), 32)]
        self.calls[name] += 1
        if call.to in self.garbage:
            return b"\x01"
        if name == BALANCE_OF:
            self.questions.append((call.to, words[0][12:]))
            return uint_word(state.balances.get((call.to, words[0][12:]), 0))
        if name == ALLOWANCE:
            assert words[1][12:] == RFQ
            return uint_word(state.allowances.get((call.to, words[0][12:]), MOST))
        if name == _LEFT:
            assert call.to == RFQ
            return encode(
                words_tail([uint_word(state.left.get((words[0][12:], key), 0)) for key in words[3:]])
            )
        if name == SELECTOR4:
            return MAGIC_VALUE4.ljust(32, b"\0") if words[0] in state.signed else Reverted("not signed")
        assert name == _PERMIT
        assert call.sender == RFQ
        return b"" if call.data[4:] in state.permits else Reverted("used")
