"""Balances and allowances of accounts at one block, by the answers of their tokens."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import allowance, balance_of
from cambist.config.errors import BlockGone, Reverted
from cambist.config.limits import CHAIN_TOKEN_GAS_MAX
from cambist.engine.chain.holdings import Holding, HoldingQuestion, Holdings, holdings
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.port import EthCall, Header

TOKEN, OTHER, OWNER, SPENDER = (bytes([number]) * 20 for number in range(1, 5))
LATEST, EARLIER = b"\x01" * 32, b"\x02" * 32


class AnsweringChain:
    """A chain of two blocks that gives the answers of a test.

    Attributes:
        asked: calls and block of each batch.
    """

    def __init__(self, *answers: bytes | Exception) -> None:
        self._answers = answers
        self.asked: list[tuple[list[EthCall], bytes]] = []

    async def block(self) -> Header | None:
        """As `Chain.block`."""
        return Header(8, LATEST, bytes(32), 0, 0) if self._answers else None

    async def call_many(self, calls: Sequence[EthCall], at: bytes) -> list[bytes | Exception]:
        """As `Chain.call_many`."""
        self.asked.append(([*calls], at))
        return [*self._answers]


@pytest.mark.parametrize(
    ("at", "number", "named"), [(None, 8, LATEST), (Mark(7, EARLIER), 7, EARLIER)], ids=["latest", "earlier"]
)
async def test_balances_and_allowances_are_read_in_pairs_at_one_block(
    at: Mark | None, number: int, named: bytes
) -> None:
    chain = AnsweringChain(*map(uint_word, (5, 9, 0, 2**256 - 1)))
    questions = [HoldingQuestion(TOKEN, OWNER, SPENDER), HoldingQuestion(OTHER, SPENDER, OWNER)]
    found = await holdings(cast("Any", chain), questions, at)
    assert found == Holdings(number, named, (Holding(5, 9), Holding(0, 2**256 - 1)))
    asked = [
        (TOKEN, balance_of(OWNER)),
        (TOKEN, allowance(OWNER, SPENDER)),
        (OTHER, balance_of(SPENDER)),
        (OTHER, allowance(SPENDER, OWNER)),
    ]
    assert chain.asked == [([EthCall(to, data, gas_max=CHAIN_TOKEN_GAS_MAX) for to, data in asked], named)]


async def test_nothing_is_read_of_a_chain_without_a_latest_block() -> None:
    chain = AnsweringChain()
    with pytest.raises(BlockGone):
        await holdings(cast("Any", chain), [])
    assert chain.asked == []


@pytest.mark.parametrize(
    ("balance", "allowed", "found"),
    [
        (uint_word(0), uint_word(0), Holding(0, 0)),
        (uint_word(3) + b"more", uint_word(4), Holding(3, 4)),
        (uint_word(3)[1:], uint_word(4), None),
        (uint_word(3), uint_word(4)[1:], None),
        (b"", uint_word(4), None),
        (Reverted("no"), uint_word(4), None),
        (uint_word(3), Reverted("no"), None),
        (Reverted("no"), Reverted("no"), None),
    ],
)
async def test_a_token_that_answers_no_number_has_an_unknown_holding(
    balance: bytes | Exception, allowed: bytes | Exception, found: Holding | None
) -> None:
    chain = AnsweringChain(balance, allowed, uint_word(1), uint_word(2))
    questions = [HoldingQuestion(TOKEN, OWNER, SPENDER), HoldingQuestion(OTHER, OWNER, SPENDER)]
    assert (await holdings(cast("Any", chain), questions)).found == (found, Holding(1, 2))


@pytest.mark.parametrize(("balance", "allowed", "usable"), [(5, 9, 5), (9, 5, 5), (5, 5, 5), (0, 9, 0)])
def test_what_is_usable_is_the_lesser_of_balance_and_allowance(
    balance: int, allowed: int, usable: int
) -> None:
    assert Holding(balance, allowed).usable == usable
