"""Gas watch: keeps a chain's latest block and gas price current for quotes.

The watch reads both at each new block, after GAS_LOOK_S without a new block, and at once after `look_now`. If
the node does not answer, the last reading stays in use until it is GAS_STALE_S old; after that, requests that
need a block or a price are refused.

A unit of gas costs the next block's base fee and the node's suggested tip.

Source: ARCHITECTURE.md, "Limits" (a chain read that a request needs and cannot have is a 503).
"""

from collections.abc import Callable
from typing import NoReturn

import trio
from msgspec import Struct

from ....config.errors import ChainError, ServiceUnavailable
from ....config.timeouts import GAS_LOOK_S, GAS_STALE_S, NODE_CALL_S
from ...chain.port import Chain, GasFees, Header


class GasStatistics(Struct, frozen=True):
    """Counters of the reads of a chain's latest block and gas price.

    Attributes:
        looks: number of successful reads of block and gas price.
        failures: number of failed reads.
        age_ms: age of the last successful read; None before the first.
        fault: error of the last read, or of the wait for a new block after it; empty without an error.
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
    """Keeps one chain's latest block (head) and gas price current for quotes.

    If the last reading is too old, a quote that needs the reading is refused.

    Args:
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, chain: Chain, wall_ms: Callable[[], int]) -> None:
        self._chain = chain
        self._wall_ms = wall_ms
        self._last: _Seen | None = None
        self._looks = 0
        self._failures = 0
        self._fault = ""
        self._turn = trio.CancelScope()  # spans a read and the wait for the next read

    @property
    def head(self) -> Header:
        """Header of the chain's latest block.

        Raises:
            ServiceUnavailable: no read from the node has succeeded within the last GAS_STALE_S seconds.
        """
        return self._fresh().head

    @property
    def fees(self) -> GasFees:
        """Price of a unit of gas, in wei: base fee and tip.

        Raises:
            ServiceUnavailable: as `head`.
        """
        return self._fresh().fees

    @property
    def gas_price_wei(self) -> int:
        """Sum of base fee and tip, in wei per unit of gas.

        Raises:
            ServiceUnavailable: as `head`.
        """
        fees = self._fresh().fees
        return fees.base_fee_wei + fees.tip_wei

    @property
    def is_fresh(self) -> bool:
        """Whether the last reading of the chain's block and gas price is recent enough for quotes."""
        return self._last is not None and self._age_ms(self._last) <= GAS_STALE_S * 1_000

    def statistics(self) -> GasStatistics:
        """Return the counters of reads, and the age of the last reading of block and gas price."""
        age_ms = None if self._last is None else self._age_ms(self._last)
        return GasStatistics(self._looks, self._failures, age_ms, self._fault)

    async def run(self) -> NoReturn:
        """Read the latest block and the gas price at every new block, until cancelled.

        Without a new block or after a failure, the next read begins after GAS_LOOK_S seconds.
        """
        while True:
            with trio.CancelScope() as self._turn:
                done = await self._look()
                with trio.move_on_after(GAS_LOOK_S):
                    if done and self._last is not None:
                        await self._wait_head(self._last.head.hash)
                    else:
                        await trio.sleep_forever()

    def look_now(self) -> None:
        """Begin a new read of the chain's latest block and gas price at once, and abandon the read under way.

        After an outage, a node may never answer a read that began before the outage ended.
        """
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
