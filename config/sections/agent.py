"""Settings of an agent: its makers, its strategies, and its safety margins.

    [agent]
    strategies = ["crossing", "firm_quotes", "my_solver:MySolver"]
    [agent.makers.alpha]
    credentials = { domain = "agent", access_key = "key-1", secret = "env:ALPHA_SECRET" }
    [agent.makers.alpha.chains.1]
    url = "https://alpha.example/1"

`[chains]` sets the served chains: each of them has `delta` and a node. `[auth.domains]` sets the venues that
may ask the agent.
"""

from typing import Annotated, Any

import msgspec

from .. import limits, timeouts
from .maker import AuthMode
from .venue import FirmSettings, Seconds, VenueMaker

ReserveSeconds = Annotated[float, msgspec.Meta(gt=0, le=10)]


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the agent role.

    Attributes:
        name: the agent's name in the agent's own log; the venue's settings may give another name.
        auth: whether requests must be signed: required, optional or off; `[auth.domains]` has the signers.
        strategies: `crossing`, `firm_quotes`, or `module:factory`; all of them run, and the agent sends the
            bids of all.
        options: strategy, as written in `strategies` -> its own settings.
        makers: settings of each maker by name.
        firm: limits of firm quote requests.
        blacklist_s: seconds in which the agent requests no firm quotes for a user from a maker that has
            blacklisted the user's address.
        margin_bps: the agent's margin, basis points: by how much the amount that a bid promises the user is
            worse than the firm quotes behind the bid.
        orders_at_once: most orders for which the agent requests firm quotes at the same time, over all
            auction rounds of a chain.
        reserve_s: seconds before an auction round's close at which the agent sends its bids.
        metrics_open: whether clients on other machines may read `GET /metrics`.
    """

    name: str = "agent"
    auth: AuthMode = "required"
    strategies: tuple[str, ...] = ("crossing", "firm_quotes")
    options: dict[str, dict[str, Any]] = {}
    makers: dict[str, VenueMaker] = {}
    firm: FirmSettings = FirmSettings()
    blacklist_s: Seconds = 3_600.0
    margin_bps: int = 1
    orders_at_once: int = 64
    reserve_s: ReserveSeconds = timeouts.AGENT_RESERVE_S
    metrics_open: bool = False

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > limits.NAME_CHARS_MAX:
            raise ValueError(f"name is 1 to {limits.NAME_CHARS_MAX} characters")
        if not 1 <= len(self.strategies) <= limits.AGENT_STRATEGIES_MAX:
            raise ValueError(f"strategies are 1 to {limits.AGENT_STRATEGIES_MAX}, got {len(self.strategies)}")
        if len(set(self.strategies)) < len(self.strategies):
            raise ValueError("strategies names a strategy twice")
        for name in self.options:
            if name not in self.strategies:
                raise ValueError(f"options: {name} is not in strategies")
        if not 0 <= self.margin_bps <= 1_000:
            raise ValueError(f"margin_bps is 0 to 1000, got {self.margin_bps}")
        if not 1 <= self.orders_at_once <= limits.AGENT_ORDERS_MAX:
            raise ValueError(f"orders_at_once is 1 to {limits.AGENT_ORDERS_MAX}, got {self.orders_at_once}")
