"""A chain whose node can be away, as its callers see it."""

from typing import Any

from cambist.config.errors import NodeUnavailable


class AwayChain:
    """Passes calls on to a chain; while `is_away`, each call is refused as if its node did not answer.

    Attributes:
        asked: number of refused calls.
    """

    def __init__(self, chain: Any, *, is_away: bool = False) -> None:
        self._chain = chain
        self.is_away = is_away
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._chain, name)

        async def asked(*given: Any, **named: Any) -> Any:
            if self.is_away:
                self.asked += 1
                raise NodeUnavailable("away")
            return await found(*given, **named)

        return asked if callable(found) else found
