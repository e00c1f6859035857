"""Opens the makers of one chain: feeds of their books, clients for firm quotes, and the routing over both.

    settings of makers  -->  feeds -> index of books -> pathfinder, prices in dollars
                        '->  clients for firm quotes, health of makers -> firm-quote desk

The caller of `open_makers` starts the feeds and the gas watch by `start`.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from ssl import SSLContext

import trio
from msgspec import Struct

from ....codecs.eip712_orders.rfq import rfq_domain_separator
from ....codecs.http1 import Http1Limits
from ....config import limits
from ....config.errors import CambistError, ConfigError
from ....config.sections.nodes import NodeSettings, revealed
from ....config.sections.venue import FirmSettings, MakerCredentials, VenueMaker
from ....crypto.hmac_auth import RequestSigner, decode_secret
from ....feeds.books.pair_index import PairIndex
from ....feeds.books.usd_prices import UsdPrices
from ....feeds.firm.firm_client import FirmClient
from ....feeds.firm.maker_health import MakerHealth
from ....feeds.maker_cache import EXCLUDED
from ....feeds.supervisor import MakerFeed
from ....feeds.transport.signed_client import SignedClient
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Chain
from ...host.admission.ledger import Ledger
from .firm.fault_notices import FaultNotices
from .firm.firm_desk import FirmDesk
from .firm.firm_scores import FirmMaker
from .gas_watch import GasWatch
from .search.pathfinder import Pathfinder
from .served import ConfiguredChain

_CONNECTIONS_MAX = 4  # for a maker's polls on one chain: a connection for each resource
_ANSWER_LIMITS = Http1Limits(body_bytes_max=limits.MAKER_JSON_BYTES_MAX)


class MakersOpening(Struct, frozen=True):
    """Settings, clocks and TLS context for opening makers, the same for every chain.

    Attributes:
        field: path of the makers' table in the settings, for errors.
        makers: settings of the makers by name.
        blacklist_s: seconds for which the venue requests no quotes for a user from a maker that has
            blacklisted this user.
        wall_ms: returns the time, Unix milliseconds.
        random: source of jitter for the feeds' polls and restarts.
        ledger: ledger of the shares of makers' stock that callers reserve.
    """

    field: str
    makers: Mapping[str, VenueMaker]
    firm: FirmSettings
    blacklist_s: float
    wall_ms: Callable[[], int]
    random: Random
    tls: SSLContext
    ledger: Ledger


class OpenMakers(Struct, frozen=True):
    """The makers of one chain, with the pathfinder and the firm-quote desk that use them.

    Attributes:
        index: index of the makers' live books.
        usd: prices of tokens in US dollars, from the books.
        gas: watch of the chain's latest block and gas price.
        feeds: maker -> the feed of its books on this chain.
    """

    index: PairIndex
    usd: UsdPrices
    pathfinder: Pathfinder
    gas: GasWatch
    desk: FirmDesk
    feeds: Mapping[str, MakerFeed]

    def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks that keep books and gas prices current and test makers in a cool-down.

        The tasks run until `nursery` is cancelled.
        """
        nursery.start_soon(self.gas.run)
        nursery.start_soon(self.desk.scores.run)
        for feed in self.feeds.values():
            nursery.start_soon(feed.run)

    def barred(self, *users: bytes, now_ms: int) -> frozenset[str]:
        """Return the names of makers that have blacklisted any of these users, or that the operator excludes.

        Args:
            users: addresses, 20 bytes each.
            now_ms: present time, Unix milliseconds.
        """
        return frozenset(
            maker
            for maker, feed in self.feeds.items()
            if feed.cache.is_withheld(EXCLUDED)
            or any(feed.cache.blacklist.holds(user, now_ms) for user in users)
        )


def nodes_of(
    served: Mapping[int, ConfiguredChain],
    environ: Mapping[str, str],
    folder: Path,
    chains: Mapping[int, Chain],
) -> dict[int, NodeSettings]:
    """Collect the node settings of the served chains for which the caller has no client yet.

    The result has each `env:` or `file:` reference of the settings replaced by its URL.

    Args:
        served: chain id -> chain as the settings describe it.
        environ: environment variables, for `env:` references.
        folder: start of relative paths in `file:` references.
        chains: chain id -> client that the caller has.

    Raises:
        ConfigError: names the setting whose file or variable is missing.
    """
    return {
        chain_id: revealed(configured.settings.node, f"{configured.field}.node", environ, folder)
        for chain_id, configured in served.items()
        if chain_id not in chains
    }


async def open_chains(
    owned: AsyncExitStack, nodes: Mapping[int, NodeSettings], chains: Mapping[int, Chain]
) -> dict[int, Chain]:
    """Open a client for each chain's node; return these clients and those of `chains`, by chain id.

    Closing `owned` closes the opened clients' connections.
    """
    found = dict(chains)
    for chain_id, node in nodes.items():
        found[chain_id] = await owned.enter_async_context(RpcChain.open(chain_id, node, known_errors()))
    return found


async def open_makers(
    owned: AsyncExitStack, opening: MakersOpening, served: ConfiguredChain, chain: Chain
) -> OpenMakers:
    """Open the book feeds and quote clients of a chain's makers, with the pathfinder and desk that use them.

    Closing `owned` closes the connections of all feeds and clients.

    Raises:
        ConfigError: a maker's secret does not decode.
    """
    index, at = PairIndex(), served.addresses
    firm = opening.firm
    feeds: dict[str, MakerFeed] = {}
    makers: dict[str, FirmMaker] = {}
    for name, settings in served.makers.items():
        signer = request_signer(f"{opening.field}.{name}.credentials", opening.makers[name].credentials)
        polls = SignedClient(
            settings.url,
            signer=signer,
            wall_ms=opening.wall_ms,
            connections_max=_CONNECTIONS_MAX,
            limits=_ANSWER_LIMITS,
            tls=opening.tls,
        )
        feed = feeds[name] = MakerFeed(
            name,
            served.chain_id,
            settings,
            signer=signer,
            index=index,
            decimals=served.decimals,
            blacklist_ms=round(opening.blacklist_s * 1_000),
            client=polls,
            tls=opening.tls,
            wall_ms=opening.wall_ms,
            random=opening.random,
        )
        client = FirmClient(
            name,
            settings.url,
            signer=signer,
            connections_max=firm.connections_max,
            wall_ms=opening.wall_ms,
            tls=opening.tls,
        )
        # Each client belongs to `owned` once it is open: a wrong secret of a later maker closes them all.
        await owned.enter_async_context(client)
        health = MakerHealth(round(firm.rest_s * 1_000), round(firm.rest_s_max * 1_000))
        notices = None
        if url := opening.makers[name].notify_url:
            notify_client = SignedClient(
                url,
                signer=signer,
                wall_ms=opening.wall_ms,
                connections_max=1,  # `FaultNotices.run` posts one request at a time
                limits=_ANSWER_LIMITS,
                tls=opening.tls,
            )
            notices = FaultNotices(name, served.chain_id, await owned.enter_async_context(notify_client))
        # The feed's own cache: the desk's cool-downs and blacklist have to hold for the books of the feed.
        makers[name] = FirmMaker(client, health, feed.cache, notices)
    pathfinder = Pathfinder(index, at["wrapped_native"])
    rfq, executor = at["rfq_contract"], at["executor"]
    desk = FirmDesk(
        makers,
        pathfinder,
        index,
        chain,
        rfq=rfq,
        executor=executor,
        separator=rfq_domain_separator(served.settings.rfq_domain_name, served.chain_id, rfq),
        settings=firm,
        ledger=opening.ledger,
        wall_ms=opening.wall_ms,
    )
    usd = UsdPrices(index, served.decimals, served.stables)
    return OpenMakers(index, usd, pathfinder, GasWatch(chain, opening.wall_ms), desk, feeds)


def request_signer(field: str, credentials: MakerCredentials | None) -> RequestSigner | None:
    """Create the signer of requests to a maker's server; None if the maker has no credentials.

    Requests to a maker without credentials are not signed.

    Args:
        field: path of the credentials in the settings, for errors.

    Raises:
        ConfigError: the secret does not decode.
    """
    if credentials is None:
        return None
    try:
        secret = decode_secret(credentials.secret.reveal(), credentials.secret_encoding)
        return RequestSigner(credentials.domain, credentials.access_key, secret)
    except CambistError as error:
        raise ConfigError(field, error.detail) from None
