"""Read balances and allowances of accounts, for many tokens at once, all at one block.

All calls of a batch are executed at the same block, so that a balance fits its allowance: at the block whose
hash the caller gives, or at the latest block, whose hash is read first.

Source: ARCHITECTURE.md, "Chain port"; EIP-20.
Choice: A token that answers no number, or needs more than CHAIN_TOKEN_GAS_MAX, has an unknown holding (None),
    which differs from zero.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ...codecs.contracts.calldata import allowance, balance_of
from ...config.errors import BlockGone
from ...config.limits import CHAIN_TOKEN_GAS_MAX
from .port import Chain, EthCall

_WORD_BYTES = 32


class HoldingQuestion(Struct, frozen=True):
    """Request for an owner's balance of a token and a spender's allowance of it; addresses of 20 bytes."""

    token: bytes
    owner: bytes
    spender: bytes


class Holding(Struct, frozen=True):
    """An owner's balance of a token, and a spender's allowance of that token, in raw units."""

    balance: int
    allowance: int

    @property
    def usable(self) -> int:
        """Amount that the spender can transfer, in raw units: the lesser of balance and allowance."""
        return min(self.balance, self.allowance)


class Holdings(Struct, frozen=True):
    """Balances and allowances read at one block.

    Attributes:
        block_hash, block_number: the block at which the balances were read.
        found: balance and allowance for each question, in order; None if the token returned no valid number.
    """

    block_number: int
    block_hash: bytes
    found: tuple[Holding | None, ...]


class BlockPlace(Protocol):
    """Protocol: a block of which number and hash are known, such as a header."""

    @property
    def number(self) -> int:
        """Height of the block."""
        ...

    @property
    def hash(self) -> bytes:
        """Hash of the block, 32 bytes."""
        ...


async def holdings(
    chain: Chain, questions: Sequence[HoldingQuestion], at: BlockPlace | None = None
) -> Holdings:
    """Read the balances and allowances that the questions name, all at one block.

    Args:
        at: block to read at; None for the latest.

    Raises:
        NodeUnavailable: no node answers.
        BlockGone: the chain does not have that block (any more).
    """
    place = await chain.block() if at is None else at
    if place is None:
        raise BlockGone("the latest block is not in the chain")
    calls = [
        EthCall(question.token, data, gas_max=CHAIN_TOKEN_GAS_MAX)
        for question in questions
        for data in (balance_of(question.owner), allowance(question.owner, question.spender))
    ]
    answers = [_number(answer) for answer in await chain.call_many(calls, place.hash)]
    pairs = zip(answers[::2], answers[1::2], strict=True)
    found = tuple(None if None in (has, allows) else Holding(has or 0, allows or 0) for has, allows in pairs)
    return Holdings(place.number, place.hash, found)


def _number(answer: bytes | Exception) -> int | None:
    if isinstance(answer, Exception) or len(answer) < _WORD_BYTES:
        return None
    return int.from_bytes(answer[:_WORD_BYTES], "big")
