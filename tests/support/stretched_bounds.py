"""The product's bounds of real time, stretched in every process of tests that imports this module.

A bound is the longest time that the product waits for work under way. A busy machine reaches a bound though
nothing is broken, and a test then sees a refusal that it is not about. All other rows of config/timeouts.py
stay as they are: periods (a look every so often), pauses, the lives of what is kept, bounds of a minute or
more, and those that are a period too. A WebSocket is pinged again within WEBSOCKET_PONG_S of the last ping, a
maker's prices are polled three times within BOOK_STALE_S, a round of an auction lasts AUCTION_ROUND_S while
an agent is silent.

The bounds are stretched on a quiet machine too: a test that counts on the real length of a bound then fails
on every machine, and not only on a busy one. A test about lateness owns the clock and computes with the row
of the table, or gives the modules that it is about their own bounds (`own_bounds`, `OWN_S`).

The modules of the package copy the rows when they are imported, so this module comes before them. Forked
processes (`support.warm_processes`) have the stretched bounds too. A real command has the product's own
bounds, except those that its settings file names.
"""

import sys
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING

from cambist.config import timeouts
from support.patience import PATIENCE, PATIENCE_S

if TYPE_CHECKING:
    import pytest

STRETCH = min(5 * PATIENCE, 100)
"""Factor of the bounds; none exceeds an hour, which the settings allow."""
BOUNDS = (
    # HTTP server
    "SERVER_HEADER_S", "SERVER_BODY_S", "SERVER_WRITE_S", "SERVER_ROUTE_S", "SERVER_DRAIN_S",
    "SERVER_LINGER_S", "TLS_HANDSHAKE_S", "ACCESS_LOG_END_S", "PROCESS_KILL_S",
    # Readiness
    "READY_ANSWER_S",
    # WebSocket
    "WEBSOCKET_OPEN_S", "WEBSOCKET_CLOSE_S",
    # Outgoing HTTP
    "DIAL_S", "HTTP_REQUEST_S",
    # Store
    "STORE_LEASE_S", "STORE_OUTCOME_S", "STORE_LOCK_S", "STORE_OPEN_S", "STORE_READ_S", "STORE_END_S",
    "STORE_DIAL_S", "STORE_STATEMENT_S", "STORE_SILENCE_S", "STORE_STUCK_S",
    "WEBHOOK_POST_S", "EVENT_STALL_S",
    # Chain
    "NODE_CALL_S", "ANVIL_START_S", "ANVIL_END_S", "RELAY_NODE_S", "RELAY_REASON_S",
    # Trader
    "TRADER_REQUEST_S", "TRADER_FOUND_S",
    # Venue
    "FEED_REQUEST_S", "SOCKET_GRACE_S", "FIRST_MESSAGE_S", "FIRM_SOFT_S", "FIRM_HARD_S",
    "MAKER_NOTIFY_S", "FIRM_CHAIN_S", "AGENT_SIMULATION_S", "SIMULATION_S",
    "ISSUED_ROUTES_SHOWN_S", "ISSUED_ROUTES_END_S", "ORDER_CHECK_S", "AGENT_NOTIFY_S",
    "BRIDGE_FEE_REQUEST_S", "BRIDGE_ROUND_S", "BRIDGE_SEARCH_S",
    # Agent
    "AGENT_SOLVE_S_MAX",
)  # fmt: skip
LEAST_S = {"FIRM_CHAIN_S": PATIENCE_S, "ORDER_CHECK_S": PATIENCE_S}
"""Least length of these, seconds: a venue or an agent waits for its chain as long as a test does."""
MOST_S = {"NODE_CALL_S": 60.0, "WEBHOOK_POST_S": 60.0}
"""Most that the settings allow of these, seconds."""

OWN_S: dict[str, float] = {name: getattr(timeouts, name) for name in BOUNDS}
"""The product's own bounds, for tests that own the clock."""

_BEFORE = {"cambist", "cambist.config", "cambist.config.version", "cambist.config.timeouts"}


def _stretch() -> None:
    early = sorted(name for name in sys.modules if name.startswith("cambist.") and name not in _BEFORE)
    if early:
        raise ImportError(f"the bounds are stretched before other modules copy them, but after {early[:3]}")
    for name, own_s in OWN_S.items():
        stretched_s = max(STRETCH * own_s, LEAST_S.get(name, 0.0))
        setattr(timeouts, name, min(stretched_s, MOST_S.get(name, inf)))


def own_bounds(patch: "pytest.MonkeyPatch", *modules: ModuleType) -> None:
    """Give modules of the package the product's own bounds, for a test that owns the clock."""
    for module in modules:
        for name in OWN_S.keys() & vars(module).keys():
            patch.setattr(module, name, OWN_S[name])


_stretch()
