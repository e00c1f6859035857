"""Asks a chain while somebody waits for an answer over HTTP: in time, and all at one block.

Source: design, "Abuse": a needed chain read that cannot be had is 503.
"""

from collections.abc import Awaitable
from typing import TypeVar

import trio

from ...config.errors import BlockGone, ChainError, ServiceUnavailable
from ...config.timeouts import ORDER_CHECK_S
from ..chain.port import Chain, Header

T = TypeVar("T")


async def in_time(asked: Awaitable[T]) -> T:
    """What a chain says in time.

    Raises:
        ServiceUnavailable: it does not.
    """
    with trio.move_on_after(ORDER_CHECK_S):
        try:
            return await asked
        except ChainError as error:
            raise ServiceUnavailable(f"the chain does not answer: {error}") from error
    raise ServiceUnavailable(f"the chain does not answer within {ORDER_CHECK_S:g} s")


async def latest_block(chain: Chain) -> Header:
    """The block that everything is asked at; its hash pins it.

    Raises:
        ChainError: nobody answers.
    """
    header = await chain.block()
    if header is None:
        raise BlockGone("the latest block is not in the chain")
    return header
