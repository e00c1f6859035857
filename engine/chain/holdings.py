"""Read balances and allowances of accounts, for many tokens at once, all at one block.

A batch is one question to the node, about one block, so that a balance and its allowance are of the same
moment: the caller names the block by its hash, or takes the latest, which this module pins.

Source: ARCHITECTURE.md, "Chain port"; EIP-20.
Choice: A token that answers no number, or needs more than CHAIN_TOKEN_GAS_MAX, has an unknown holding (None),
    which differs from zero.
"""

from collections.abc import Sequence

from msgspec import Struct

from ...codecs.contracts.calldata import allowance, balance_of
from ...config.errors import BlockGone
from ...config.limits import CHAIN_TOKEN_GAS_MAX
from .port import Chain, EthCall

_WORD_BYTES = 32


class HoldingQuestion(Struct, frozen=True):
    """A token, its owner, and the spender of the allowance. Addresses of 20 bytes."""

    token: bytes
    owner: bytes
    spender: bytes


class Holding(Struct, frozen=True):
    """An owner's balance, and the spender's allowance of it, in raw units."""

    balance: int
    allowance: int

    @property
    def usable(self) -> int:
        """Raw units that the spender can really take: the lesser of balance and allowance."""
        return min(self.balance, self.allowance)


class Holdings(Struct, frozen=True):
    """Holdings at one block, in the order of the questions.

    Attributes:
        block_hash, block_number: the block of the answers.
        found: holding for each question; None if it is unknown.
    """

    block_number: int
    block_hash: bytes
    found: tuple[Holding | None, ...]


async def holdings(
    chain: Chain, questions: Sequence[HoldingQuestion], block_hash: bytes | None = None
) -> Holdings:
    """Read holdings from a chain.

    Args:
        block_hash: the block to read at; None for the latest.

    Raises:
        NodeUnavailable: no node answers.
        BlockGone: the chain does not have that block (any more).
    """
    header = await chain.block(block_hash)
    if header is None:
        raise BlockGone("the block to read holdings at is not in the chain")
    calls = [
        EthCall(question.token, data, gas_max=CHAIN_TOKEN_GAS_MAX)
        for question in questions
        for data in (balance_of(question.owner), allowance(question.owner, question.spender))
    ]
    answers = [_number(answer) for answer in await chain.call_many(calls, header.hash)]
    pairs = zip(answers[::2], answers[1::2], strict=True)
    found = tuple(None if None in (has, allows) else Holding(has or 0, allows or 0) for has, allows in pairs)
    return Holdings(header.number, header.hash, found)


def _number(answer: bytes | Exception) -> int | None:
    if isinstance(answer, Exception) or len(answer) < _WORD_BYTES:
        return None
    return int.from_bytes(answer[:_WORD_BYTES], "big")
