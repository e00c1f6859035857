"""Even spread of connections over the processes that accept from one socket.

    a connection waits --own connections <= fewest of the others--> accept up to that number
                       --else--> leave it to the others for SERVER_SPREAD_S --it still waits--> accept it

The system wakes all processes for a connection, and the one that is awake first is nearly always the same:
it would take nearly all connections. Each process therefore tells the number of its open connections in a
cell of memory that all share. A new process has none, so that it gets the next ones. Cells have no lock: a
number that is a moment old puts one connection on the other process, and the next one makes up for it.

A process that is behind and busy holds up each connection for SERVER_SPREAD_S at most. While no number of the
others changes, as if they were stopped, a process takes twice as many connections each time.
"""

import mmap
import os
import sys
import tempfile

_CELL_BYTES = 8
_AWAY = -1  # in the cell of a process that does not accept
_SLACK = 16  # with 160 connections each, a process may be 10 ahead of the others
_ANY = 1 << 20  # more than a queue holds


class Spread:
    """Numbers of open connections of all processes behind a socket, in memory that they share.

    Args:
        descriptor: file of `spread_file`; may be closed after the call.
        index: index of this process, from 0.
        count: number of processes.
    """

    def __init__(self, descriptor: int, index: int, count: int) -> None:
        self._cells = memoryview(mmap.mmap(descriptor, count * _CELL_BYTES)).cast("q")
        self._index = index
        self._others = [other for other in range(count) if other != index]
        self._left = 1

    def tell(self, connections: int) -> None:
        """Tell the others the number of open connections of this process, which accepts."""
        self._cells[self._index] = connections

    def leave(self) -> None:
        """Tell the others that this process accepts no more."""
        self._cells[self._index] = _AWAY

    def others(self) -> tuple[int, ...]:
        """Return the numbers that the other processes have told; -1 of one that does not accept."""
        return tuple(self._cells[other] for other in self._others)

    def room(self) -> int:
        """Number of connections that this process may accept now; 0 if others are to accept first."""
        fewest = min((number for number in self.others() if number != _AWAY), default=_ANY)
        room = fewest + fewest // _SLACK + 1 - self._cells[self._index]
        if room > 0:
            self._left = 1
        return max(room, 0)

    @property
    def left(self) -> int:
        """Number of connections that this process may accept if others have left them waiting."""
        return self._left

    def took_left(self) -> None:
        """Note that this process has accepted what others left."""
        self._left = min(2 * self._left, _ANY)


def spread_file(count: int) -> int:
    """Make the shared memory of `count` processes, none of which accepts yet; the descriptor of its file."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("cambist-spread")  # never on a disk, whose journal could hold up a write
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.pwrite(descriptor, _AWAY.to_bytes(_CELL_BYTES, "little", signed=True) * count, 0)
    return descriptor


def vacate(descriptor: int, index: int) -> None:
    """Tell the others that the process with this index has ended."""
    os.pwrite(descriptor, _AWAY.to_bytes(_CELL_BYTES, "little", signed=True), index * _CELL_BYTES)
