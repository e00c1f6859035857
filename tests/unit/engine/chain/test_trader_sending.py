"""A transaction is followed as long as the bound allows, even if nodes fail meanwhile."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import trio
import trio.testing

from cambist.config.errors import ChainError, NodeUnavailable, NotMined, RefusalKind, TransactionRefused
from cambist.config.timeouts import TRANSACTION_AGAIN_S, TRANSACTION_FOLLOW_S, TRANSACTION_LOOK_S
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall, Header, Receipt
from cambist.engine.chain.transact import (
    StepFailedError,
    gas_needed,
    send_and_follow,
    send_step,
    signed,
    transact,
    why_reverted,
)
from cambist.engine.dev.embedded.embedded import EmbeddedChain

pytestmark = pytest.mark.needs("pyrevm")

KEY = SigningKey(b"\7" * 32)
TO = b"\x42" * 20
CALL = EthCall(TO, b"", KEY.address, 5)
POLICY = TransactionPolicy(frozenset({(31_337, TO)}), 10**12, 100_000, value_max_wei=5)


@pytest.fixture
def chain() -> EmbeddedChain:
    return EmbeddedChain(31_337, lambda: 1_800_000_000, {KEY.address: 10**18})


class Faulty:
    """A chain behind a node that fails as it is told.

    Attributes:
        sent: how often something was handed in.
    """

    def __init__(self, chain: EmbeddedChain, **instead: Callable[[int], Exception | None]) -> None:
        self._chain = chain
        self._instead = instead
        self._calls = dict.fromkeys(instead, 0)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._chain, name)
        if name not in self._instead:
            return method

        async def asked(*arguments: Any) -> Any:
            self._calls[name] += 1
            failure = self._instead[name](self._calls[name])
            if failure is not None:
                raise failure
            return await method(*arguments)

        return asked

    def calls(self, name: str) -> int:
        return self._calls[name]


async def follow(chain: Any) -> Receipt:
    key = PolicedRelayKey(KEY, POLICY)
    transaction = await signed(chain, key, CALL, await gas_needed(chain, CALL))
    return await send_and_follow(chain, transaction, TRANSACTION_FOLLOW_S)


async def test_what_is_mined_is_answered_at_once(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    receipt = await follow(chain)
    assert receipt.succeeded
    assert trio.current_time() == began
    assert await chain.balance(TO) == 5


class Between:
    """A chain whose node answers about a transaction and about its latest block at two moments.

    Attributes:
        heights: of the latest block at each look; the last stays. From `mined` looks on it has the receipt.
        looks: number of questions about the receipt.
    """

    def __init__(self, chain: EmbeddedChain, heights: Iterable[int], mined: float) -> None:
        self._chain = chain
        self._heights = iter(heights)
        self._mined = mined
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def block(self) -> Header:
        await trio.lowlevel.checkpoint()
        number = next(self._heights)
        return Header(number, bytes([number]) * 32, bytes(32), 0, 0)

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        self.looks += 1
        return await self._chain.receipt(tx_hash) if self.looks >= self._mined else None

    async def wait_head(self, known: bytes) -> None:
        await trio.sleep_forever()


async def test_what_is_mined_between_the_answers_of_a_look_is_found_without_a_wait(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    between = Between(chain, [6, 6], 2)
    began = trio.current_time()
    assert (await follow(between)).succeeded
    assert trio.current_time() == began


async def test_nodes_that_show_two_heads_in_turn_are_not_asked_without_a_pause(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    between = Between(chain, itertools.cycle([5, 6]), math.inf)
    with pytest.raises(NotMined):
        await follow(between)
    assert between.looks <= TRANSACTION_FOLLOW_S / TRANSACTION_LOOK_S + 3


async def test_what_is_mined_late_is_waited_for(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    await chain.set_automine(on=False)
    async with trio.open_nursery() as nursery:

        async def miner() -> None:
            await trio.sleep(100)
            await chain.mine()

        nursery.start_soon(miner)
        assert (await follow(chain)).succeeded


async def test_what_is_never_mined_is_not_known_after_the_bound(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    await chain.set_automine(on=False)
    began = trio.current_time()
    with pytest.raises(NotMined):
        await follow(chain)
    assert trio.current_time() - began == pytest.approx(TRANSACTION_FOLLOW_S)


async def test_a_node_that_does_not_answer_is_asked_again_and_again(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    def down(calls: int) -> Exception | None:
        return NodeUnavailable("nobody answers") if calls < 5 else None

    faulty = Faulty(chain, send_raw=down, block=down, receipt=down)
    assert (await follow(faulty)).succeeded
    assert faulty.calls("send_raw") == 5


async def test_a_call_of_an_operator_is_sent_again_too(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    faulty: Any = Faulty(
        chain, send_raw=lambda calls: NodeUnavailable("it took too long") if calls < 3 else None
    )
    receipt = await transact(faulty, KEY, TO, b"", value_wei=5)
    assert receipt.succeeded
    assert faulty.calls("send_raw") == 3
    assert await chain.nonce(KEY.address) == 1


async def test_an_operator_learns_why_the_node_takes_nothing(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    faulty: Any = Faulty(chain, send_raw=lambda _: ChainError("eth_sendRawTransaction: not on this node"))
    with pytest.raises(ChainError, match=r"it may still be: .*not on this node"):
        await transact(faulty, KEY, TO, b"", value_wei=5)


async def test_a_trader_learns_why_the_node_takes_nothing(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    faulty: Any = Faulty(chain, send_raw=lambda _: ChainError("eth_sendRawTransaction: not on this node"))
    with pytest.raises(StepFailedError) as failed:
        await send_step(faulty, PolicedRelayKey(KEY, POLICY), "swap", CALL, lambda _: None)
    assert failed.value.receipt is None
    assert failed.value.reason == "eth_sendRawTransaction: not on this node"


async def test_a_fault_before_the_node_took_it_is_no_reason(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    await chain.set_automine(on=False)
    faulty: Any = Faulty(
        chain, send_raw=lambda calls: NodeUnavailable("it took too long") if calls < 3 else None
    )
    with pytest.raises(ChainError) as unmined:
        await transact(faulty, KEY, TO, b"", value_wei=5)
    assert "took too long" not in unmined.value.detail


async def test_a_node_that_took_it_and_did_not_say_so_is_no_hindrance(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    class Silent(Faulty):
        async def send_raw(self, raw: bytes) -> bytes:
            await chain.send_raw(raw)
            raise NodeUnavailable("it took too long")

    assert (await follow(Silent(chain))).succeeded


async def test_the_same_bytes_are_handed_in_again_while_nothing_is_mined(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    await chain.set_automine(on=False)
    counted = Faulty(chain, send_raw=lambda _: None)
    with pytest.raises(NotMined):
        await follow(counted)
    assert counted.calls("send_raw") == pytest.approx(TRANSACTION_FOLLOW_S / TRANSACTION_AGAIN_S, abs=2)


async def test_a_refusal_is_the_end_only_while_nobody_can_have_taken_it(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    def refused(_: int) -> Exception:
        return TransactionRefused(RefusalKind.FUNDS)

    with pytest.raises(TransactionRefused, match="insufficient funds"):
        await follow(Faulty(chain, send_raw=refused))
    failing = [NodeUnavailable("it took too long"), TransactionRefused(RefusalKind.NONCE_TOO_LOW)]
    faulty = Faulty(chain, send_raw=lambda calls: failing[min(calls, 2) - 1])
    with pytest.raises(NotMined, match="nonce too low"):
        await follow(faulty)


async def test_why_it_reverted_is_told_as_far_as_it_is_known(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    receipt = await follow(chain)
    assert await why_reverted(chain, CALL, receipt) == "the state before its block does not tell why"
    down = Faulty(chain, call=lambda _: NodeUnavailable("nobody answers"))
    silent: Any = down
    assert await why_reverted(silent, CALL, receipt) == "the state before its block does not tell why"
