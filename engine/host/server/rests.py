"""Rests: a connection whose request was over its caller's rate is read again a quarter of a second later.

    request --429, no trusted proxy--> answer --SERVER_REST_S--> next request
    new connection --its address rests--> first request after that rest

A refusal costs less than what was refused, and still costs: clients that ask again as fast as they are
refused would take all of a core, and everybody else would wait in line behind them. A client that waits as
the answer says, by Retry-After, never meets a rest: it is shorter. A connection of a trusted proxy carries
requests of many clients, and does not rest.
"""

import trio

from ....config.errors import RateLimited
from ....config.timeouts import SERVER_REST_S
from .addresses import address_share


class Rests:
    """Times until which clients rest.

    Args:
        proxies: IP addresses of trusted proxies, which never rest.
    """

    def __init__(self, proxies: frozenset[str] = frozenset()) -> None:
        self._proxies = proxies
        self._until: dict[str, float] = {}  # by address; all rests are equally long, so the first ends first
        self._ended = trio.Event()

    def __len__(self) -> int:
        """Number of addresses in memory."""
        return len(self._until)

    def after(self, status: int, client: str) -> float:
        """End of the rest, on trio's clock, that an answer to a client begins; 0 for none.

        Args:
            status: status of the answer; 429 begins a rest, unless the client is a trusted proxy.
        """
        if status != RateLimited.status or client in self._proxies:
            return 0.0
        now = trio.current_time()
        rests = self._until
        while rests and (first := next(iter(rests.items())))[1] <= now:
            del rests[first[0]]
        address = address_share(client)
        rests.pop(address, None)  # a dict keeps its order by the first insertion of a key
        rests[address] = now + SERVER_REST_S
        return rests[address]

    def until(self, client: str) -> float:
        """End of the rest that a client's address is in, on trio's clock; 0 if it does not rest."""
        until = self._until.get(address_share(client), 0.0) if self._until else 0.0
        return until if until > trio.current_time() else 0.0

    async def over(self, until: float) -> None:
        """Wait for the end of a rest, or until a shutdown ends all rests."""
        with trio.move_on_at(until):
            await self._ended.wait()

    def end(self) -> None:
        """End all rests for good: the server shuts down, and answers what has come."""
        self._ended.set()
