"""Follows a chain for all order engines with one indexer, shared by their projections and funds watches.

    a step of the indexer -> changes of all projections, in one store transaction -> watches are notified

The chain's settings decide which contracts' logs are read: the RFQ contract's with `rfq`, the Delta
contract's with `delta`, regardless of the kinds of orders that the venue serves.
"""

from collections.abc import Callable, Iterator, Sequence

from ..chain.index.applied import IndexedContracts
from ..chain.index.indexer import Advance, Indexer, IndexerState, Projection
from ..chain.index.ring import Mark
from ..chain.index.watch import Watch, WatchedAccount
from ..served.served_chain import ServedChain, ServedChains
from ..store.store import Store
from ..store.units import Change

Touched = Callable[[int, frozenset[WatchedAccount]], None]
"""Listener to (chain id, followed accounts whose funds may have moved); see `Indexer`."""


class FollowedChain:
    """A chain's indexer, and the projections and listeners that use it.

    Attributes:
        watch: set of accounts whose logs the indexer reports, beside the logs of the venue's contracts.
        indexer: reader of the chain's logs; `OrderEngines` runs it.
    """

    def __init__(self, place: ServedChain, store: Store, wall_ms: Callable[[], int]) -> None:
        self._projections: list[Projection] = []
        self._touched: list[Touched] = []
        self.watch = Watch()
        self.indexer = Indexer(
            place.chain,
            store,
            IndexedContracts(
                rfq=place.rfq if place.settings.rfq else None,
                delta=place.delta if place.settings.delta else None,
            ),
            self.watch,
            touched=self._report_touched,
            now_ms=wall_ms,
            confirmations=place.settings.confirmations,
            projection=self,
        )

    def join(self, projection: Projection, touched: Touched) -> None:
        """Add an engine's projection and its listener to fund movements. Call this before the indexer
        runs."""
        self._projections.append(projection)
        self._touched.append(touched)

    def read_to(self) -> Mark | None:
        """Return the last indexed block; None while that is not the chain's head."""
        told = self.indexer.statistics()
        return Mark(told.block_number, told.block_hash) if told.state is IndexerState.FOLLOWING else None

    async def changes(self, advance: Advance) -> Sequence[Change]:
        """Collect the changes of all joined projections, in joining order; see `Projection.changes`."""
        changes: list[Change] = []
        for projection in self._projections:
            changes += await projection.changes(advance)
        return changes

    def _report_touched(self, chain_id: int, pairs: frozenset[WatchedAccount]) -> None:
        for touched in self._touched:
            touched(chain_id, pairs)


class FollowedChains:
    """The followed chains of a venue; a chain is followed from the first call of `of` for it.

    Args:
        places: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, places: ServedChains, store: Store, wall_ms: Callable[[], int]) -> None:
        self._places = places
        self._store = store
        self._wall_ms = wall_ms
        self._chains: dict[int, FollowedChain] = {}

    def __iter__(self) -> Iterator[tuple[int, FollowedChain]]:
        """Iterate over (chain id, chain) of all followed chains."""
        return iter(tuple(self._chains.items()))

    def of(self, chain_id: int) -> FollowedChain:
        """Return a chain, and follow it from now on if it was not followed.

        Raises:
            KeyError: the venue does not serve the chain.
        """
        if chain_id not in self._chains:
            self._chains[chain_id] = FollowedChain(self._places[chain_id], self._store, self._wall_ms)
        return self._chains[chain_id]
