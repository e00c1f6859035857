"""Turns: the connections that have a task each share a millisecond of every pass of the scheduler.

    room left in this pass --> goes on at once
    none, or others wait   --> waits in line --the keeper, pass by pass--> goes on

Without it a pass would be as long as there are tasks with a request, and everybody else's wait too. How
many leave the line in one pass follows from how long the last passes were: half as many after one that took
too long, one more after any other.

What is charged is the time of the work itself, not of the other tasks in between. trio tells of each pass
through an `Instrument`.
"""

from time import perf_counter

import trio

TURN_S = 0.001
_SHARE_MAX = 64


class Turns(trio.abc.Instrument):
    """The line of one server. `run` keeps it."""

    def __init__(self) -> None:
        self._spent = 0.0  # in this pass
        self._spent_before = 0.0  # in the last one
        self._share = 8  # how many leave the line in one pass
        self._line = trio.lowlevel.ParkingLot()
        self._keeper = trio.lowlevel.ParkingLot()

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins. Called by trio."""
        self._spent_before = self._spent
        self._spent = 0.0

    def charge(self, started: float) -> None:
        """Count the time since `started`, a `perf_counter()` of this pass, as used up."""
        self._spent += perf_counter() - started

    async def take(self) -> None:
        """Wait for a turn; no checkpoint if there is room."""
        if self._spent >= TURN_S or self._line:
            self._keeper.unpark_all()
            await self._line.park()

    async def run(self) -> None:
        """Keep the line until cancelled; whoever still waits then has to be cancelled too."""
        trio.lowlevel.add_instrument(self)
        try:
            while True:
                if self._line:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._keeper.park()
                over = max(self._spent, self._spent_before) > TURN_S
                self._share = max(1, self._share // 2) if over else min(_SHARE_MAX, self._share + 1)
                self._line.unpark(count=self._share)
        finally:
            trio.lowlevel.remove_instrument(self)
