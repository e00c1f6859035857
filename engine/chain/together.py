"""Ask a node several questions at once: a node may be 50 ms away, and one answer after another adds up."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from ...config.errors import BlockGone, CambistError
from .port import Header

A = TypeVar("A")
T = TypeVar("T")


async def all_of(ask: Callable[[A], Awaitable[T]], about: Sequence[A], at_once: int) -> list[T]:
    """Call `ask` for each element, and return the results in order.

    The calls begin in the order of the elements. The first CambistError (of a node, or of an answer that
    cannot be read) cancels all calls and is raised.

    Args:
        at_once: most calls at a time.
    """
    if len(about) <= 1:
        return [await ask(each) for each in about]
    answers: dict[int, T] = {}
    errors: list[CambistError] = []
    numbered = iter(enumerate(about))

    async def work(scope: trio.CancelScope) -> None:
        for number, element in numbered:
            try:
                answers[number] = await ask(element)
            except CambistError as error:
                errors.append(error)
                scope.cancel()

    async with trio.open_nursery() as nursery:
        for _ in range(min(len(about), at_once)):
            nursery.start_soon(work, nursery.cancel_scope)
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(about))]


async def both(one: Callable[[], Awaitable[A]], other: Callable[[], Awaitable[T]]) -> tuple[A, T]:
    """Call two functions at once, and return both results; the first CambistError cancels the other call."""
    firsts: list[A] = []
    seconds: list[T] = []

    async def first() -> None:
        firsts.append(await one())

    async def second() -> None:
        seconds.append(await other())

    await all_of(lambda call: call(), (first, second), 2)
    return firsts[0], seconds[0]


async def each_header(
    read: Callable[[int], Awaitable[Header | None]], numbers: Sequence[int]
) -> list[Header]:
    """`Chain.headers` of a chain in this process: one header after the other.

    Args:
        read: reads the header at a height; None if there is no such block.
    """
    headers: list[Header] = []
    for number in numbers:
        header = await read(number)
        if header is None:
            raise BlockGone(f"no block {number}")
        headers.append(header)
    return headers
