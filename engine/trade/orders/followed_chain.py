"""Follows a chain with one indexer, which the engines of Delta and OTC orders share.

    a step of the indexer -> changes of all projections, in one unit -> watches are notified

The chain's settings decide which contracts' logs are read: the RFQ contract's with `rfq`, the Delta
contract's with `delta`, regardless of the kinds of orders that the venue serves.
"""

from collections.abc import Callable, Iterator, Sequence

from ...chain.index.applied import IndexedContracts
from ...chain.index.indexer import Advance, Indexer, IndexerState, Projection
from ...chain.index.ring import Mark
from ...chain.index.watch import Watch, WatchedAccount
from ...store.store import Store
from ...store.units import Change
from ..served.served_chain import ServedChain, ServedChains

Touched = Callable[[int, frozenset[WatchedAccount]], None]
"""Function called with (chain id, followed accounts whose funds may have moved); see `Indexer`."""

Logged = Callable[[int], None]
"""Function called with the height above which rows of logs were added or deleted; see `Indexer`."""


class FollowedChain:
    """Log indexer of one chain, shared by all order engines that join it.

    Each engine adds a projection, which turns new logs into changes of orders, and a listener to moves of
    funds.

    Attributes:
        watch: set of accounts (token, owner) whose logs the indexer reports, in addition to the logs of the
            venue's contracts.
        indexer: reader of the chain's logs; `OrderEngines` runs it.
    """

    def __init__(self, served: ServedChain, store: Store, wall_ms: Callable[[], int]) -> None:
        self._projections: list[Projection] = []
        self._touched: list[Touched] = []
        self._logged: list[Logged] = []
        self.watch = Watch()
        self.indexer = Indexer(
            served.chain,
            store,
            IndexedContracts(
                rfq=served.rfq if served.settings.rfq else None,
                delta=served.delta if served.settings.delta else None,
            ),
            self.watch,
            begun=served.followed,
            touched=self._report_touched,
            logged=self._report_logged,
            now_ms=wall_ms,
            confirmations=served.settings.confirmations,
            projection=self,
        )

    def join(self, projection: Projection, touched: Touched) -> None:
        """Add an order engine's projection and its listener; the indexer must not run yet.

        Args:
            projection: derives changes of the engine's orders from the chain's logs.
            touched: called with the watched accounts whose funds may have moved.
        """
        self._projections.append(projection)
        self._touched.append(touched)

    def listen(self, logged: Logged) -> None:
        """Add a listener to changes of the stored logs; the indexer must not run yet.

        Args:
            logged: called after each such change is durable; must return quickly.
        """
        self._logged.append(logged)

    def read_to(self) -> Mark | None:
        """Return the last indexed block; None while the chain has blocks that are not indexed yet."""
        statistics = self.indexer.statistics()
        return (
            Mark(statistics.block_number, statistics.block_hash)
            if statistics.state is IndexerState.FOLLOWING
            else None
        )

    async def changes(self, advance: Advance) -> Sequence[Change]:
        """Collect the row changes that the joined engines' projections derive from a step of the indexer.

        Args:
            advance: the step, i.e. blocks and logs that the indexer adds or undoes at once.
        """
        changes: list[Change] = []
        for projection in self._projections:
            changes += await projection.changes(advance)
        return changes

    def _report_logged(self, above_height: int) -> None:
        for logged in self._logged:
            logged(above_height)

    def _report_touched(self, chain_id: int, pairs: frozenset[WatchedAccount]) -> None:
        for touched in self._touched:
            touched(chain_id, pairs)


class FollowedChains:
    """The venue's chains whose logs are indexed; a chain is added when `of` is first called for it.

    Args:
        served_chains: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, served_chains: ServedChains, store: Store, wall_ms: Callable[[], int]) -> None:
        self._served_chains = served_chains
        self._store = store
        self._wall_ms = wall_ms
        self._chains: dict[int, FollowedChain] = {}

    def __iter__(self) -> Iterator[tuple[int, FollowedChain]]:
        """Iterate over the followed chains as (chain id, followed chain)."""
        return iter(tuple(self._chains.items()))

    def of(self, chain_id: int) -> FollowedChain:
        """Return the followed chain with a chain id; the first call for a chain adds the chain.

        Raises:
            KeyError: the venue does not serve the chain.
        """
        if chain_id not in self._chains:
            self._chains[chain_id] = FollowedChain(self._served_chains[chain_id], self._store, self._wall_ms)
        return self._chains[chain_id]
