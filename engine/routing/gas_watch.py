"""The latest block and the price of gas, as they were seen last: what quotes are made with.

Each new head is looked at, and without one a look is taken every GAS_LOOK_S, or at once by `look_now`. A node
that does not answer leaves what was seen before; once that is older than GAS_STALE_S there is neither a head
nor a price, and what needs one is refused.

A unit of gas costs the next block's base fee and the node's suggested tip.

Source: ARCHITECTURE.md, "Limits" (a chain read that a request needs and cannot have is a 503).
"""

from collections.abc import Callable
from typing import NoReturn

import trio
from msgspec import Struct

from ...config.errors import ChainError, ServiceUnavailable
from ...config.timeouts import GAS_LOOK_S, GAS_STALE_S, NODE_CALL_S
from ..chain.port import Chain, GasFees, Header


class GasStatistics(Struct, frozen=True):
    """How it goes.

    Attributes:
        looks: that brought something; failures: that did not.
        age_ms: of what was seen last; None before the first look.
        fault: of the last look; empty where it went well.
    """

    looks: int
    failures: int
    age_ms: int | None
    fault: str


class _Seen(Struct, frozen=True):
    head: Header
    fees: GasFees
    at_ms: int


class GasWatch:
    """Follows one chain.

    Args:
        chain: it.
        wall_ms: the wall clock, Unix milliseconds.
    """

    def __init__(self, chain: Chain, wall_ms: Callable[[], int]) -> None:
        self._chain = chain
        self._wall_ms = wall_ms
        self._last: _Seen | None = None
        self._looks = 0
        self._failures = 0
        self._fault = ""
        self._turn = trio.CancelScope()  # of a look and of the wait for the next one

    @property
    def head(self) -> Header:
        """The latest block.

        Raises:
            ServiceUnavailable: the last look that brought one is too long ago.
        """
        return self._fresh().head

    @property
    def fees(self) -> GasFees:
        """What a unit of gas costs.

        Raises:
            ServiceUnavailable: as `head`.
        """
        return self._fresh().fees

    @property
    def gas_price_wei(self) -> int:
        """Base fee and tip together.

        Raises:
            ServiceUnavailable: as `head`.
        """
        fees = self._fresh().fees
        return fees.base_fee_wei + fees.tip_wei

    @property
    def is_fresh(self) -> bool:
        """Whether there is a head."""
        return self._last is not None and self._age_ms(self._last) <= GAS_STALE_S * 1_000

    def statistics(self) -> GasStatistics:
        """See GasStatistics."""
        age_ms = None if self._last is None else self._age_ms(self._last)
        return GasStatistics(self._looks, self._failures, age_ms, self._fault)

    async def run(self) -> NoReturn:
        """Look, and wait for the next head; never ends by itself."""
        while True:
            with trio.CancelScope() as self._turn:
                done = await self._look()
                with trio.move_on_after(GAS_LOOK_S):
                    if done and self._last is not None:
                        await self._wait_head(self._last.head.hash)
                    else:
                        await trio.sleep_forever()

    def look_now(self) -> None:
        """Begin a new look at once: nodes answer again, and perhaps not what they were asked before."""
        self._turn.cancel()

    async def _look(self) -> bool:
        try:
            with trio.fail_after(2 * NODE_CALL_S):
                head = await self._chain.block()
                fees = await self._chain.fees()
        except (ChainError, trio.TooSlowError) as error:
            self._failures += 1
            self._fault = str(error) or "the node did not answer in time"
            return False
        if head is None:
            self._failures += 1
            self._fault = "the node shows no latest block"
            return False
        self._looks += 1
        self._fault = ""
        self._last = _Seen(head, fees, self._wall_ms())
        return True

    async def _wait_head(self, known: bytes) -> None:
        try:
            await self._chain.wait_head(known)
        except ChainError as error:
            self._fault = str(error)
            await trio.sleep_forever()

    def _age_ms(self, seen: _Seen) -> int:
        return self._wall_ms() - seen.at_ms

    def _fresh(self) -> _Seen:
        if self._last is None:
            raise ServiceUnavailable("no block of the chain was seen yet")
        if not self.is_fresh:
            raise ServiceUnavailable(
                f"the last block of the chain was seen {self._age_ms(self._last)} ms ago, "
                f"at most {GAS_STALE_S:g} s are allowed"
            )
        return self._last
