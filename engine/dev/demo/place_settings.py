"""Settings files of the demo's venue, makers and agents, as their operators would write them. Pure.

alpha    maker with the better prices in WETH/USDC, which it sends over a WebSocket
beta     maker with the better prices in WBTC/USDC, which venue and agents poll
rapid    agent that trades with both makers
plain    agent that trades with beta alone

The venue serves a second chain too, to which bridges carry USDC. Makers and agents do not serve the second
chain.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ....crypto.hexadecimal import to_hex
from ..devnet.bridge_places import devnet_domain
from .settlement import CHAIN_ID, FAR_CHAIN_ID, DemoChain, PlacedChain

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
SHARES = "vUSDC"
"""Symbol of the shares of the first chain's vault, which holds USDC."""
_SHARE_DECIMALS = 18
_STREAMING = "alpha"
_STALE_S = 300  # longer than the demo moves the clock, so that books and chain reads do not become stale
_VENUE_NAME = "venue"

_CHAIN = """
state_dir = "."
[server]
port = 0
[chains.{chain_id}]
name = "devnet"
"""
_NODE = """
[chains.{chain_id}.node]
urls = ["{url}"]
"""
_MAKER = """
rfq = true
rfq_contract = "{rfq}"
[keys.maker]
source = "env:{NAME}_KEY"
policy.contracts = ["{chain_id}:{rfq}"]
[maker.chains.{chain_id}]
key = "maker"
node_url = "{url}"
node_every_ms = 100
node_head_max_s = 0
node_stale_s = {stale_s}
price_life_ms = {stale_s}000
takers = ["{executor}"]
price_source = "static"
price_options.path = "prices.json"
price_options.refresh_ms = 100
"""
_MAKER_LISTING = """
[maker.chains.{chain_id}.tokens.{symbol}]
address = "{address}"
decimals = {decimals}
"""
_MAKER_PAIR = """
[maker.chains.{chain_id}.pairs."{pair}"]
base = "{base}"
quote = "{quote}"
liquidity_usd = 1000000
"""
_VENUE = """
market = true
delta = true
rfq = true
cctp_domain = {domain}
"""
_STRATEGY = """
[[chains.{chain_id}.strategies]]
vault = "{vault}"
name = "USDC Vault"
"""
_VENUE_KEYS = """
[keys.relayer]
source = "env:RELAYER_KEY"
[relayers.{chain_id}]
key = "relayer"
[venue.firm]
soft_s = 2
hard_s = 3
[venue.delta]
round_s = 15
"""
_AGENT = """
[agent]
name = "{name}"
[agent.firm]
soft_s = 10
hard_s = 12
"""
_VENUE_AGENT = """
[venue.agents.{agent}]
url = "http://127.0.0.1:{port}"
credentials = {{ domain = "{asker}", access_key = "key-1", secret = "env:{SECRET}" }}
"""
_ASKED_MAKER = """
[{role}.makers.{maker}]
credentials = {{ domain = "{asker}", access_key = "key-1", secret = "env:{SECRET}" }}
[{role}.makers.{maker}.chains.{chain_id}]
url = "http://127.0.0.1:{port}/{chain_id}"
prices_every_s = 0.2
stale_s = {stale_s}
"""
_FAR_CHAIN = """
[chains.{chain_id}]
name = "devnet"
delta = true
cctp_domain = {domain}
[relayers.{chain_id}]
key = "relayer"
"""
_BRIDGE = """
[bridges.{name}]
kind = "{name}"
url = "{url}"
stale_s = {stale_s}
{option}
[[bridges.{name}.tokens]]
[bridges.{name}.tokens.chains]
{near} = "{here}"
{far} = "{there}"
"""
_ASKER = """
[auth.domains.{asker}]
keys = [{{ access_key = "key-1", secret = "env:{SECRET}" }}]
"""
_LISTING = """
[[tokens]]
chain_id = {chain_id}
address = "{address}"
symbol = "{symbol}"
decimals = {decimals}
stable_usd = {stable}
"""


class Shared(Struct, frozen=True):
    """Names of two parties of the demo that share a secret for signed requests.

    Attributes:
        asker: the party that signs the requests; the name is the authentication domain of the requests.
        asked: the party that verifies the requests.
    """

    asker: str
    asked: str

    @property
    def name(self) -> str:
        """Return the name of the environment variable that holds the secret, e.g. `ALPHA_FOR_VENUE`."""
        return f"{self.asked}_FOR_{self.asker}".upper()


def shared_secrets() -> tuple[Shared, ...]:
    """List the pairs of the demo's parties (venue, makers, agents) that share a secret."""
    of_makers = [Shared(asker, maker) for maker in GRIDS for asker in _askers_of(maker)]
    return (*of_makers, *(Shared(_VENUE_NAME, agent) for agent in AGENTS))


def maker_text(stage: DemoChain, name: str) -> str:
    """Generate the settings file (TOML) of one of the demo's market makers."""
    told = {"chain_id": CHAIN_ID, "NAME": name.upper(), "url": stage.running.url}
    text = (_CHAIN + _MAKER).format(
        **told, rfq=to_hex(stage.at("rfq")), executor=to_hex(stage.at("executor")), stale_s=_STALE_S
    )
    for symbol, decimals in TOKENS.items():
        text += _MAKER_LISTING.format(
            chain_id=CHAIN_ID, symbol=symbol, address=to_hex(stage.at(symbol)), decimals=decimals
        )
    for pair in GRIDS[name]:
        base, quote = pair.split("/")
        text += _MAKER_PAIR.format(chain_id=CHAIN_ID, pair=pair, base=base, quote=quote)
    return text + _asked_by(name, _askers_of(name))


def agent_text(stage: DemoChain, name: str, ports: Mapping[str, int]) -> str:
    """Generate the settings file (TOML) of one of the demo's agents.

    Args:
        ports: TCP ports of the makers, by name.
    """
    text = _CHAIN.format(chain_id=CHAIN_ID) + "delta = true\n"
    text += _NODE.format(chain_id=CHAIN_ID, url=stage.running.url)
    text += _AGENT.format(name=name)
    text += _makers("agent", name, {maker: ports[maker] for maker in AGENTS[name]})
    return text + _asked_by(name, (_VENUE_NAME,)) + _listings(stage)


def venue_text(stage: DemoChain, makers: Mapping[str, int], agents: Mapping[str, int]) -> str:
    """Generate the settings file (TOML) of the demo's venue.

    Args:
        makers, agents: TCP ports of the makers and of the agents, by name.
    """
    text = (_CHAIN + _VENUE + _NODE + _STRATEGY + _VENUE_KEYS).format(
        chain_id=CHAIN_ID,
        url=stage.running.url,
        domain=devnet_domain(CHAIN_ID),
        vault=to_hex(stage.at("vault")),
    )
    text = 'route_seal_keys = ["env:ROUTE_SEAL"]\n' + text + _makers("venue", _VENUE_NAME, makers)
    for agent, port in agents.items():
        secret = Shared(_VENUE_NAME, agent).name
        text += _VENUE_AGENT.format(agent=agent, port=port, asker=_VENUE_NAME, SECRET=secret)
    shares = _listing(CHAIN_ID, stage.at("vault"), SHARES, _SHARE_DECIMALS)
    return text + _listings(stage) + shares + _far_chain(stage)


def _askers_of(maker: str) -> tuple[str, ...]:
    return (_VENUE_NAME, *(agent for agent, makers in AGENTS.items() if maker in makers))


def _asked_by(name: str, askers: Iterable[str]) -> str:
    return "".join(_ASKER.format(asker=asker, SECRET=Shared(asker, name).name) for asker in askers)


def _makers(role: str, asker: str, ports: Mapping[str, int]) -> str:
    """Generate the TOML tables of the makers with which the venue or an agent trades.

    Args:
        role: `venue` or `agent`, the section of the settings.
        asker: name of the venue or the agent, which signs the requests to the makers.
        ports: TCP ports of the makers, by name.
    """
    text = ""
    for maker, port in ports.items():
        text += _ASKED_MAKER.format(
            role=role,
            maker=maker,
            asker=asker,
            SECRET=Shared(asker, maker).name,
            port=port,
            chain_id=CHAIN_ID,
            stale_s=_STALE_S,
        )
        if maker == _STREAMING:
            text += f'ws_url = "ws://127.0.0.1:{port}/{CHAIN_ID}/ws"\n'
    return text


def _listings(place: PlacedChain, symbols: Iterable[str] = TOKENS) -> str:
    chain_id = place.running.chain_id
    return "".join(_listing(chain_id, place.at(symbol), symbol, TOKENS[symbol]) for symbol in symbols)


def _listing(chain_id: int, token: bytes, symbol: str, decimals: int) -> str:
    return _LISTING.format(
        chain_id=chain_id,
        address=to_hex(token),
        symbol=symbol,
        decimals=decimals,
        stable="true" if symbol == "USDC" else "false",
    )


def _far_chain(stage: DemoChain) -> str:
    """Generate the TOML tables of the second chain, and of the bridges between both chains."""
    far = stage.far
    text = (_FAR_CHAIN + _NODE).format(
        chain_id=FAR_CHAIN_ID, url=far.running.url, domain=devnet_domain(FAR_CHAIN_ID)
    )
    for name, option in BRIDGES.items():
        text += _BRIDGE.format(
            name=name,
            url=stage.bridge_url,
            stale_s=_STALE_S,
            option=option,
            near=CHAIN_ID,
            here=to_hex(stage.at(BRIDGED)),
            far=FAR_CHAIN_ID,
            there=to_hex(far.at(BRIDGED)),
        )
    return text + _listings(far, [BRIDGED])
