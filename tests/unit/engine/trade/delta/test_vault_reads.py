"""Reads of the vaults of orders: what is asked at which block, and what the answers mean."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import trio

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.config.errors import Reverted
from cambist.config.limits import VENUE_FUNDS_ORDERS_MAX
from cambist.engine.chain.port import EthCall
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.vault import VaultWorth, preview_call, trial_call
from cambist.engine.trade.delta.settlement.vault_reads import VaultReads
from support.delta.bidding import ONE, SIGNATURE, a_productive_order, a_round_order, asked_for

DELTA, RELAYER, GAS_MAX, BLOCK = b"\xde" * 20, b"\x4e" * 20, 5_000_000, b"\x07" * 32


class VaultChain:
    """A chain of vaults that give two for one, and of a Delta contract that stops each trial at the price.

    Attributes:
        mute: amounts for which a vault does not answer; refused: amounts that no trial gets out of a vault.
        asked: calls of each batch.
    """

    def __init__(self) -> None:
        self.mute: set[int] = set()
        self.refused: set[int] = set()
        self.asked: list[list[EthCall]] = []

    async def call_many(self, calls: Sequence[EthCall], at: bytes) -> list[bytes | Exception]:
        """As `Chain.call_many`."""
        await trio.lowlevel.checkpoint()
        assert at == BLOCK
        self.asked.append([*calls])
        return [self._answer(call) for call in calls]

    def _answer(self, call: EthCall) -> bytes | Exception:
        if call.to != DELTA:
            amount = int.from_bytes(call.data[4:36], "big")
            return Reverted("no") if amount in self.mute else uint_word(2 * amount)
        words = {int.from_bytes(call.data[at : at + 32], "big") for at in range(4, len(call.data) - 31, 32)}
        is_refused = bool(words & self.refused)
        error = "RedemptionFailed(address)" if is_refused else "BelowMinimum(uint256,uint256)"
        return Reverted(error, selector(error) + bytes(32))


def reads_of(chain: VaultChain) -> VaultReads:
    return VaultReads(cast("Any", chain), delta=DELTA, relayer=RELAYER, gas_max=GAS_MAX)


def a_live(asked: RoundOrder, filled: int = 0) -> LiveOrder:
    row: Any = SimpleNamespace(order_hash=asked.order_hash)
    return LiveOrder(row, asked.order, asked.document, asked.terms, filled=filled)


async def test_a_vault_is_asked_for_the_rest_of_an_order_and_then_tried_at_the_same_block() -> None:
    chain = VaultChain()
    shares = a_productive_order(shares=20_001)
    amount = a_productive_order(use_shares=False, shares=10**6, src_amount=30_001)
    refused, mute = a_productive_order(shares=40_001), a_productive_order(shares=50_001)
    orders = [asked_for(order, number) for number, order in enumerate((shares, amount, refused, mute))]
    chain.refused, chain.mute = {40_001}, {50_001}
    lives = [
        a_live(a_round_order(9)),
        a_live(orders[0]),
        a_live(orders[1], filled=1),
        a_live(asked_for(a_productive_order(shares=ONE), 8), filled=ONE),
        a_live(orders[2]),
        a_live(orders[3]),
    ]
    found = await reads_of(chain).worths(lives, BLOCK)
    hashes = [asked.order_hash for asked in orders]
    expected = [
        VaultWorth(20_001, 20_001, 40_002, is_given=True),
        VaultWorth(30_000, 60_000, 30_000, is_given=True),
        VaultWorth(40_001, 40_001, 80_002, is_given=False),
        VaultWorth(50_001, 0, 0, is_given=True),
    ]
    assert found == dict(zip(hashes, expected, strict=True))
    previews = [(shares, 20_001), (amount, 30_000), (refused, 40_001), (mute, 50_001)]
    trials = zip((shares, amount, refused), expected, strict=False)
    assert chain.asked == [
        [preview_call(order, left) for order, left in previews],
        [trial_call(order, SIGNATURE, worth, DELTA, RELAYER, GAS_MAX) for order, worth in trials],
    ]


async def test_nothing_is_asked_without_a_vault() -> None:
    chain = VaultChain()
    assert await reads_of(chain).worths([], BLOCK) == {}
    assert await reads_of(chain).worths([a_live(a_round_order(9))], BLOCK) == {}
    assert chain.asked == []


async def test_very_many_vaults_are_asked_some_at_a_time() -> None:
    chain, most = VaultChain(), VENUE_FUNDS_ORDERS_MAX
    orders = [asked_for(a_productive_order(nonce=number), number) for number in range(2 * most + 1)]
    found = await reads_of(chain).worths(map(a_live, orders), BLOCK)
    assert [*found] == [asked.order_hash for asked in orders]
    assert [len(calls) for calls in chain.asked] == [most, most, most, most, 1, 1]
