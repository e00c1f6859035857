"""Settings files of a venue, market makers and agents on a devnet, as their operators would write them. Pure.

A `Layout` describes the roles; `maker_text`, `agent_text` and `venue_text` generate a role's settings file.
The venue serves the second chain too, to which bridges carry tokens; makers and agents serve only the first.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ....config.chains import DEVNET_CHAINS
from ....crypto.hexadecimal import to_hex
from ..devnet.bridge_places import devnet_domain
from ..devnet.serve import RunningChain

CHAIN_ID, FAR_CHAIN_ID = DEVNET_CHAINS
VENUE = "venue"
"""Name of the venue among the roles."""
SHARES = "vUSDC"
"""Symbol of the shares of the first chain's vault, which holds USDC."""
_SHARE_DECIMALS = 18

_STABLE = frozenset({"USDC", "DAI", "USDT"})

_CHAIN = """
state_dir = "."
[server]
port = {port}
{server}[chains.{chain_id}]
name = "devnet"
"""
_NODE = """
[chains.{chain_id}.node]
urls = ["{url}"]
ws_urls = ["{ws_url}"]
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
{prices}"""
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
wallet_url = "{url}"
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
"""
_AGENT = """
[agent]
name = "{name}"
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
wallet_url = "{url}"
[relayers.{chain_id}]
key = "relayer"
"""
_BRIDGE = """
[bridges.{name}]
kind = "{name}"
url = "{url}"
stale_s = {stale_s}
{option}
"""
_CARRIED = """
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


class MakerPlan(Struct, frozen=True):
    """Settings of one market maker in a `Layout`, which is a venue, makers and agents on a devnet.

    Attributes:
        pairs: pairs that the maker quotes, such as `WETH/USDC`.
        prices: TOML lines of the maker's price source, for the table [maker.chains.ID] of its settings file.
        is_streaming: whether venue and agents read the maker's prices from its WebSocket instead of by polls.
    """

    pairs: Sequence[str]
    prices: str
    is_streaming: bool = False


class Layout(Struct, frozen=True):
    """A venue, makers and agents on two chains of a devnet with bridges.

    Attributes:
        near, far: the chains.
        bridge_url: URL of the bridges' service.
        tokens: symbols of the traded tokens.
        makers: makers by name.
        agents: name of an agent -> names of the makers with which the agent trades.
        bridges: name of a bridge, which is also its protocol -> TOML lines of options for its settings.
        bridged: symbols of the tokens that bridges carry.
        ports: name of a role -> TCP port of its server.
        stale_s: age in seconds at which books and chain reads become stale.
        server: TOML lines of the venue's [server].
        venue, agent: TOML tables that are added to the venue's file, and to each agent's.
    """

    near: RunningChain
    far: RunningChain
    bridge_url: str
    tokens: Sequence[str]
    makers: Mapping[str, MakerPlan]
    agents: Mapping[str, Sequence[str]]
    bridges: Mapping[str, str]
    bridged: Sequence[str]
    ports: Mapping[str, int]
    stale_s: int
    server: str = ""
    venue: str = ""
    agent: str = ""

    def askers_of(self, maker: str) -> tuple[str, ...]:
        """Names of the roles that sign requests to a maker: the venue, and agents."""
        return (VENUE, *(agent for agent, makers in self.agents.items() if maker in makers))

    def secrets(self) -> tuple["Shared", ...]:
        """List the pairs of roles that share a secret."""
        of_makers = [Shared(asker, maker) for maker in self.makers for asker in self.askers_of(maker)]
        return (*of_makers, *(Shared(VENUE, agent) for agent in self.agents))


class Shared(Struct, frozen=True):
    """Names of two roles that share a secret for signed requests.

    Attributes:
        asker: the role that signs the requests; the name is the authentication domain of the requests.
        asked: the role that verifies the requests.
    """

    asker: str
    asked: str

    @property
    def name(self) -> str:
        """Return the name of the environment variable that holds the secret, e.g. `ALPHA_FOR_VENUE`."""
        return f"{self.asked}_FOR_{self.asker}".upper()


def maker_text(layout: Layout, name: str) -> str:
    """Generate the settings file (TOML) of a market maker."""
    plan, near = layout.makers[name], layout.near
    text = (_CHAIN + _MAKER).format(
        chain_id=CHAIN_ID,
        NAME=name.upper(),
        port=layout.ports[name],
        server="",
        url=near.url,
        rfq=to_hex(near.at("rfq")),
        executor=to_hex(near.at("executor")),
        stale_s=layout.stale_s,
        prices=plan.prices,
    )
    for symbol in layout.tokens:
        text += _MAKER_LISTING.format(
            chain_id=CHAIN_ID, symbol=symbol, address=to_hex(near.at(symbol)), decimals=near.decimals(symbol)
        )
    for pair in plan.pairs:
        base, quote = pair.split("/")
        text += _MAKER_PAIR.format(chain_id=CHAIN_ID, pair=pair, base=base, quote=quote)
    return text + _asked_by(name, layout.askers_of(name))


def agent_text(layout: Layout, name: str) -> str:
    """Generate the settings file (TOML) of an agent."""
    text = _CHAIN.format(chain_id=CHAIN_ID, port=layout.ports[name], server="") + "delta = true\n"
    text += _NODE.format(chain_id=CHAIN_ID, url=layout.near.url, ws_url=layout.near.ws_url)
    text += _AGENT.format(name=name) + layout.agent
    text += _asked_makers("agent", name, layout, layout.agents[name])
    return text + _asked_by(name, (VENUE,)) + _listings(layout.near, layout.tokens)


def venue_text(layout: Layout) -> str:
    """Generate the settings file (TOML) of the venue."""
    near = layout.near
    text = (_CHAIN + _VENUE + _NODE + _STRATEGY + _VENUE_KEYS).format(
        chain_id=CHAIN_ID,
        port=layout.ports[VENUE],
        server=layout.server,
        url=near.url,
        ws_url=near.ws_url,
        domain=devnet_domain(CHAIN_ID),
        vault=to_hex(near.at("vault")),
    )
    text = 'route_seal_keys = ["env:ROUTE_SEAL"]\n' + text + layout.venue
    text += _asked_makers("venue", VENUE, layout, layout.makers)
    for agent in layout.agents:
        secret = Shared(VENUE, agent).name
        text += _VENUE_AGENT.format(agent=agent, port=layout.ports[agent], asker=VENUE, SECRET=secret)
    shares = _listing(CHAIN_ID, near.at("vault"), SHARES, _SHARE_DECIMALS)
    return text + _listings(near, layout.tokens) + shares + _far_chain(layout)


def _asked_by(name: str, askers: Iterable[str]) -> str:
    return "".join(_ASKER.format(asker=asker, SECRET=Shared(asker, name).name) for asker in askers)


def _asked_makers(role: str, asker: str, layout: Layout, makers: Iterable[str]) -> str:
    """Generate the TOML tables of the makers with which the venue or an agent trades.

    Args:
        role: `venue` or `agent`, the section of the settings.
        asker: name of the venue or the agent, which signs the requests to the makers.
    """
    text = ""
    for maker in makers:
        port = layout.ports[maker]
        text += _ASKED_MAKER.format(
            role=role,
            maker=maker,
            asker=asker,
            SECRET=Shared(asker, maker).name,
            port=port,
            chain_id=CHAIN_ID,
            stale_s=layout.stale_s,
        )
        if layout.makers[maker].is_streaming:
            text += f'ws_url = "ws://127.0.0.1:{port}/{CHAIN_ID}/ws"\n'
    return text


def _listings(chain: RunningChain, symbols: Iterable[str]) -> str:
    return "".join(
        _listing(chain.chain_id, chain.at(symbol), symbol, chain.decimals(symbol)) for symbol in symbols
    )


def _listing(chain_id: int, token: bytes, symbol: str, decimals: int) -> str:
    return _LISTING.format(
        chain_id=chain_id,
        address=to_hex(token),
        symbol=symbol,
        decimals=decimals,
        stable="true" if symbol in _STABLE else "false",
    )


def _far_chain(layout: Layout) -> str:
    """Generate the TOML tables of the second chain, and of the bridges between both chains."""
    near, far = layout.near, layout.far
    domain = devnet_domain(FAR_CHAIN_ID)
    text = (_FAR_CHAIN + _NODE).format(chain_id=FAR_CHAIN_ID, url=far.url, ws_url=far.ws_url, domain=domain)
    for name, option in layout.bridges.items():
        text += _BRIDGE.format(name=name, url=layout.bridge_url, stale_s=layout.stale_s, option=option)
        for symbol in layout.bridged if name == "across" else ("USDC",):
            ends = {"near": CHAIN_ID, "here": to_hex(near.at(symbol)), "far": FAR_CHAIN_ID}
            text += _CARRIED.format(name=name, there=to_hex(far.at(symbol)), **ends)
    return text + _listings(far, layout.bridged)
