"""Pauses: a connection whose request was over its caller's rate is read again a quarter of a second later.

    request over its caller's rate, no trusted proxy --> 429 --SERVER_PAUSE_S--> next request
    new connection --its address pauses--> first request after that pause

A refusal costs less than what was refused, and still costs: clients that ask again as fast as they are
refused would take all of a core, and everybody else would wait in line behind them. A client that waits as
the answer says, by Retry-After, never meets a pause: it is shorter. Refusals that others have caused, such as
of a maker's stock that all callers together reserve, begin no pause. A connection of a trusted proxy carries
requests of many clients, and does not pause.
"""

import trio

from ....config.timeouts import SERVER_PAUSE_S
from .addresses import address_share


class Pauses:
    """Times until which clients pause.

    Args:
        proxies: IP addresses of trusted proxies, which never pause.
    """

    def __init__(self, proxies: frozenset[str] = frozenset()) -> None:
        self._proxies = proxies
        self._until: dict[str, float] = {}  # by address; all pauses are equally long, so the first ends first
        self._ended = trio.Event()

    def __len__(self) -> int:
        """Number of addresses in memory."""
        return len(self._until)

    def begin(self, client: str) -> float:
        """Begin a pause of a client; return its end on trio's clock, 0 for a trusted proxy."""
        if client in self._proxies:
            return 0.0
        now = trio.current_time()
        pauses = self._until
        while pauses and (first := next(iter(pauses.items())))[1] <= now:
            del pauses[first[0]]
        address = address_share(client)
        pauses.pop(address, None)  # a dict keeps its order by the first insertion of a key
        pauses[address] = now + SERVER_PAUSE_S
        return pauses[address]

    def until(self, client: str) -> float:
        """End of the pause that a client's address is in, on trio's clock; 0 if it does not pause."""
        until = self._until.get(address_share(client), 0.0) if self._until else 0.0
        return until if until > trio.current_time() else 0.0

    async def over(self, until: float) -> None:
        """Wait for the end of a pause, or until a shutdown ends all pauses.

        A connection that the reactor hands over once the shutdown has begun does not wait: `end` came before.
        """
        with trio.move_on_at(until):
            await self._ended.wait()

    def end(self) -> None:
        """End all pauses for good: the server shuts down, and answers what has come."""
        self._ended.set()
