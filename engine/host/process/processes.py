"""Several processes behind one listening socket: a parent that listens and keeps children serving.

    parent: listen --> start N children with the socket --> wait
      SIGTERM, SIGINT     the parent passes the signal on, and ends once all children have drained; after a
                          time-out it kills them
      a child ends        the parent starts it anew after a pause that grows; too many crashes of a child in a
                          row end all children
      a start fails       counts as a crash

After a signal to end the parent closes its copy of the socket: the last child to drain empties the queue
and closes the socket, so that no connection waits for a process that will never accept.

The children inherit the one socket, so a connection in its queue outlives any of them. They share a memory in
which each tells the number of its connections, so that all get equally many (`Spread`). Each child reads its
index and the number of children from its environment: a maker divides its balance and limits by that number.

A child that ends unasked, even with status 0, has crashed. Children run in process groups of their own, so
that a terminal's interrupt reaches the parent alone; they notice the parent's death (`parent_ended`).

Source: ARCHITECTURE.md, "HTTP server".
"""

import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence

import structlog
import trio
from msgspec import Struct

from ....config.sections.server import ServerSettings
from ....config.timeouts import PROCESS_KILL_S, PROCESS_PAUSE_S, PROCESS_PAUSE_S_MAX, PROCESS_STEADY_S
from ..server.spread import Spread, spread_file, vacate

_LISTENER = "CAMBIST_LISTENER_FD"
_PARENT = "CAMBIST_PARENT_FD"
_SPREAD = "CAMBIST_SPREAD_FD"
_INDEX = "CAMBIST_PROCESS_INDEX"
_COUNT = "CAMBIST_PROCESS_COUNT"

_CRASHES_MAX = 5  # of one child in a row, each within PROCESS_STEADY_S of its start
_ENDED_WELL = (0, -signal.SIGTERM, -signal.SIGINT)  # the last two: signalled before the child set handlers

_log = structlog.get_logger("cambist.server")


class ProcessNumber(Struct, frozen=True):
    """Index of this process among the child processes of its parent, from 0, and the number of children."""

    index: int
    count: int


async def run_processes(settings: ServerSettings, command: Sequence[str], listener: socket.socket) -> int:
    """Run `settings.processes` child processes and restart any that end, until SIGTERM or SIGINT.

    Args:
        settings: number of children, and the seconds that they have to finish their requests.
        command: program and arguments of each child, which opens the socket by `inherited_listener`.
        listener: the listening socket, shared by all children; closed once a signal ends them.

    Returns:
        The exit status: 0 if all children ended well after SIGTERM or SIGINT, else 1.
    """
    parent_read, parent_write = os.pipe()
    spread = spread_file(settings.processes)
    try:
        family = _Family(settings, command, listener, parent_read, spread)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            return await family.run(signals)
    finally:
        listener.close()
        os.close(parent_read)
        os.close(parent_write)
        os.close(spread)


def inherited_listener() -> socket.socket | None:
    """Open the listening socket that `run_processes` passed to this process; None without such a socket."""
    descriptor = os.environ.get(_LISTENER)
    if descriptor is None:
        return None
    listener = socket.socket(fileno=int(descriptor))
    listener.settimeout(0)
    return listener


def inherited_spread() -> Spread | None:
    """Open the memory in which this process and its siblings tell their connections; None if it is alone."""
    descriptor, place = os.environ.get(_SPREAD), process_place()
    return None if descriptor is None else Spread(int(descriptor), place.index, place.count)


def process_place() -> ProcessNumber:
    """Read the index of this process among its parent's children, and the number of children.

    The parent (`run_processes`) sets both in the environment. A process without such a parent gets (0, 1).
    """
    return ProcessNumber(int(os.environ.get(_INDEX, "0")), int(os.environ.get(_COUNT, "1")))


async def parent_ended() -> None:
    """Wait until the parent process (`run_processes`) is gone; without such a parent wait forever.

    The caller, a child process, then finishes its requests and ends.
    """
    descriptor = os.environ.get(_PARENT)
    if descriptor is None:
        await trio.sleep_forever()
    else:
        await trio.lowlevel.wait_readable(int(descriptor))


class _Family:
    """The child processes that one parent keeps running behind a shared listening socket."""

    def __init__(
        self,
        settings: ServerSettings,
        command: Sequence[str],
        listener: socket.socket,
        parent_read: int,
        spread: int,
    ) -> None:
        self._count = settings.processes
        self._patience_s = settings.drain_s + PROCESS_KILL_S
        self._command = list(command)
        self._listener = listener
        self._inherited = (listener.fileno(), parent_read, spread)
        self._starting = 0  # children that are inheriting the socket now
        self._children: dict[int, trio.Process] = {}
        self._status = 0
        self._scope = trio.CancelScope()
        self._told_to_end = trio.Event()

    async def run(self, signals: AsyncIterator[int]) -> int:
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, signals)
                async with trio.open_nursery() as children:
                    for index in range(self._count):
                        children.start_soon(self._keep, index)
                nursery.cancel_scope.cancel()
        return self._status if self._told_to_end.is_set() and not self._scope.cancelled_caught else 1

    async def _pass_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            self._end(number)

    def _end(self, number: int) -> None:
        """Pass a signal to all children, and set the time at which children that still run are killed.

        Args:
            number: number of the signal.
        """
        self._told_to_end.set()
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + self._patience_s)
        for child in self._children.values():
            child.send_signal(number)
        self._close_listener()

    def _close_listener(self) -> None:
        # A child that is being started inherits the descriptor: the socket is closed after the last start.
        if self._told_to_end.is_set() and not self._starting:
            self._listener.close()

    async def _keep(self, index: int) -> None:
        crashes = 0
        while not self._told_to_end.is_set():
            began = trio.current_time()
            status: int | str
            try:
                status = await self._run_child(index)
            except OSError as error:
                status = f"not started: {error.strerror or error}"
            if self._told_to_end.is_set():
                if status not in _ENDED_WELL:
                    self._status = 1
                return
            steady = trio.current_time() - began >= PROCESS_STEADY_S
            crashes = 1 if steady else crashes + 1
            _log.error("a process ended unexpectedly", index=index, status=status, in_a_row=crashes)
            if crashes >= _CRASHES_MAX:
                self._status = 1
                self._end(signal.SIGTERM)
                return
            with trio.move_on_after(min(PROCESS_PAUSE_S * 2 ** (crashes - 1), PROCESS_PAUSE_S_MAX)):
                await self._told_to_end.wait()

    async def _run_child(self, index: int) -> int:
        """Start the child process with this index, wait for its end, and return its exit status."""
        listener, parent, spread = self._inherited
        place = {_LISTENER: listener, _PARENT: parent, _SPREAD: spread, _INDEX: index, _COUNT: self._count}
        environment = os.environ | {name: str(value) for name, value in place.items()}
        self._starting += 1
        try:
            child = await trio.lowlevel.open_process(
                self._command, env=environment, pass_fds=self._inherited, process_group=0
            )
        finally:
            self._starting -= 1
            self._close_listener()
        self._children[index] = child
        # A signal that came during the start found no child to be passed to.
        if self._told_to_end.is_set():
            child.terminate()
        try:
            return await child.wait()
        finally:
            vacate(spread, index)
            del self._children[index]
            if child.returncode is None:
                child.kill()
                with trio.CancelScope(shield=True):
                    await child.wait()
