"""The demo's venue, makers and agents.

alpha    maker with the better prices in WETH/USDC, which it sends over a WebSocket
beta     maker with the better prices in WBTC/USDC, which venue and agents poll
rapid    agent that trades with both makers
plain    agent that trades with beta alone
"""

from collections.abc import Mapping

from ..place.layout import Layout, MakerPlan
from .settlement import DemoChain

TOKENS = {"WETH": 18, "USDC": 6, "WBTC": 8}
GRIDS = {
    "alpha": {
        "WETH/USDC": {"bids": [["2500", "20"]], "asks": [["2501", "20"]]},
        "WBTC/USDC": {"bids": [["59900", "2"]], "asks": [["60200", "2"]]},
    },
    "beta": {
        "WETH/USDC": {"bids": [["2498", "20"]], "asks": [["2503", "20"]]},
        "WBTC/USDC": {"bids": [["59950", "2"]], "asks": [["60000", "2"]]},
    },
}
QUOTED = "20"
"""Amount of the base token that a maker offers at a changed price, whole tokens as decimal text."""
AGENTS = {"rapid": ("alpha", "beta"), "plain": ("beta",)}
"""Name of each agent of the demo -> names of the makers with which the agent trades."""
BRIDGED = "USDC"
"""Symbol of the token that bridges carry."""
FILL_WITHIN_S = 120
"""Seconds after which a transfer by Across that nobody has filled is refunded."""
BRIDGES = {"across": f"fill_within_s = {FILL_WITHIN_S}", "cctp": 'tier = "fast"'}
"""Name of each bridge, which is its protocol too -> a setting of it."""
PRICES_FILE = "prices.json"
"""Name of the file in a maker's folder that has its prices."""
_STALE_S = 300  # longer than the demo moves the clock, so that books and chain reads do not become stale
_PRICES = f"""
price_source = "static"
price_options.path = "{PRICES_FILE}"
price_options.refresh_ms = 100
"""
_VENUE = """
[venue.firm]
soft_s = 10
hard_s = 12
[venue.delta]
round_s = 15
"""
_AGENT = """
[agent.firm]
soft_s = 10
hard_s = 12
"""


def demo_layout(stage: DemoChain, ports: Mapping[str, int]) -> Layout:
    """Describe the demo's roles.

    Args:
        ports: TCP ports of the roles, by name.
    """
    return Layout(
        near=stage.running,
        far=stage.far.running,
        bridge_url=stage.bridge_url,
        tokens=tuple(TOKENS),
        makers={
            name: MakerPlan(tuple(pairs), _PRICES, is_streaming=name == "alpha")
            for name, pairs in GRIDS.items()
        },
        agents=AGENTS,
        bridges=BRIDGES,
        bridged=(BRIDGED,),
        ports=ports,
        stale_s=_STALE_S,
        venue=_VENUE,
        agent=_AGENT,
    )
