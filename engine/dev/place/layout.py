"""Settings files of a venue, market makers and agents on a devnet, as their operators would write them. Pure.

A `Layout` describes the roles; `maker_text`, `agent_text` and `venue_text` generate a role's settings file.
The venue serves the second chain too, to which bridges carry tokens, and so do the makers that have pairs
there and the agents that trade with them.
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

_SERVER = """
state_dir = "."
[server]
port = {port}
{server}"""
_NAMES = {CHAIN_ID: "devnet", FAR_CHAIN_ID: "second devnet"}
_CHAIN = """
[chains.{chain_id}]
name = "{chain_name}"
confirmations = 1
"""
_NODE = """
[chains.{chain_id}.node]
urls = ["{url}"]
ws_urls = ["{ws_url}"]
"""
_MAKER_KEY = """
[keys.maker]
source = "env:{NAME}_KEY"
policy.contracts = [{contracts}]
"""
_MAKER = """
rfq = true
rfq_contract = "{rfq}"
[maker.chains.{chain_id}]
key = "maker"
node_url = "{url}"
node_every_ms = 250
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
"""
_ASKED_CHAIN = """
[{role}.makers.{maker}.chains.{chain_id}]
url = "http://127.0.0.1:{port}/{chain_id}"
prices_every_s = 0.5
stale_s = {stale_s}
"""
_FAR_CHAIN = """
market = {market}
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
        pairs: pairs that the maker quotes on the first chain, such as `WETH/USDC`.
        prices: TOML lines of the maker's price source, for the table [maker.chains.ID] of its settings file.
        far_pairs, far_prices: likewise, on the second chain; empty if the maker does not serve it.
        is_streaming: whether venue and agents read the maker's prices from its WebSocket instead of by polls.
        account: address that signs the maker's quotes, 20 bytes.
    """

    pairs: Sequence[str]
    prices: str
    account: bytes
    far_pairs: Sequence[str] = ()
    far_prices: str = ""
    is_streaming: bool = False

    def on(self, chain: RunningChain) -> tuple[Sequence[str], str]:
        """Pairs and price source on a chain; empty if the maker does not serve it."""
        return (
            (self.far_pairs, self.far_prices) if chain.chain_id == FAR_CHAIN_ID else (self.pairs, self.prices)
        )


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

    def chains_of(self, makers: Iterable[str]) -> list[RunningChain]:
        """Chains on which one of these makers quotes a pair."""
        return [
            chain for chain in (self.near, self.far) if any(self.makers[name].on(chain)[0] for name in makers)
        ]

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
    chains = layout.chains_of([name])
    contracts = ", ".join(f'"{chain.chain_id}:{to_hex(chain.at("rfq"))}"' for chain in chains)
    text = _SERVER.format(port=layout.ports[name], server="")
    text += _MAKER_KEY.format(NAME=name.upper(), contracts=contracts)
    text += "".join(_maker_chain(layout, layout.makers[name], chain) for chain in chains)
    return text + _asked_by(name, layout.askers_of(name))


def _maker_chain(layout: Layout, plan: MakerPlan, chain: RunningChain) -> str:
    pairs, prices = plan.on(chain)
    text = (_CHAIN + _MAKER).format(
        chain_id=chain.chain_id,
        chain_name=_NAMES[chain.chain_id],
        url=chain.url,
        rfq=to_hex(chain.at("rfq")),
        executor=to_hex(chain.at("executor")),
        stale_s=layout.stale_s,
        prices=prices,
    )
    for symbol in _served(layout, chain):
        text += _MAKER_LISTING.format(
            chain_id=chain.chain_id,
            symbol=symbol,
            address=to_hex(chain.at(symbol)),
            decimals=chain.decimals(symbol),
        )
    for pair in pairs:
        base, quote = pair.split("/")
        text += _MAKER_PAIR.format(chain_id=chain.chain_id, pair=pair, base=base, quote=quote)
    return text


def agent_text(layout: Layout, name: str) -> str:
    """Generate the settings file (TOML) of an agent."""
    makers = layout.agents[name]
    chains = layout.chains_of(makers)
    text = _SERVER.format(port=layout.ports[name], server="")
    for chain in chains:
        text += (_CHAIN + "delta = true\n" + _NODE).format(
            chain_id=chain.chain_id,
            chain_name=_NAMES[chain.chain_id],
            url=chain.url,
            ws_url=chain.ws_url,
        )
    text += _AGENT.format(name=name) + layout.agent
    text += _asked_makers("agent", name, layout, makers)
    listings = "".join(_listings(chain, _served(layout, chain)) for chain in chains)
    return text + _asked_by(name, (VENUE,)) + listings


def venue_text(layout: Layout) -> str:
    """Generate the settings file (TOML) of the venue."""
    near = layout.near
    text = (_SERVER + _CHAIN + _VENUE + _NODE + _STRATEGY + _VENUE_KEYS).format(
        chain_id=CHAIN_ID,
        chain_name=_NAMES[CHAIN_ID],
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
    return text + _listings(near, _served(layout, near)) + shares + _far_chain(layout)


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
        text += _ASKED_MAKER.format(role=role, maker=maker, asker=asker, SECRET=Shared(asker, maker).name)
        if role == VENUE:
            text += f'accounts = ["{to_hex(layout.makers[maker].account)}"]\n'
        for chain in layout.chains_of([maker]):
            text += _ASKED_CHAIN.format(
                role=role, maker=maker, port=port, chain_id=chain.chain_id, stale_s=layout.stale_s
            )
            if layout.makers[maker].is_streaming:
                text += f'ws_url = "ws://127.0.0.1:{port}/{chain.chain_id}/ws"\n'
    return text


def _served(layout: Layout, chain: RunningChain) -> Sequence[str]:
    """Symbols of the tokens that are traded on a chain."""
    return layout.bridged if chain.chain_id == FAR_CHAIN_ID else layout.tokens


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
    text = (_CHAIN + _FAR_CHAIN + _NODE).format(
        chain_id=FAR_CHAIN_ID,
        chain_name=_NAMES[FAR_CHAIN_ID],
        url=far.url,
        ws_url=far.ws_url,
        domain=domain,
        market="true" if far in layout.chains_of(layout.makers) else "false",
    )
    for name, option in layout.bridges.items():
        text += _BRIDGE.format(name=name, url=layout.bridge_url, stale_s=layout.stale_s, option=option)
        for symbol in layout.bridged if name == "across" else ("USDC",):
            ends = {"near": CHAIN_ID, "here": to_hex(near.at(symbol)), "far": FAR_CHAIN_ID}
            text += _CARRIED.format(name=name, there=to_hex(far.at(symbol)), **ends)
    return text + _listings(far, _served(layout, far))
