"""The Delta orders in memory, which may still change, with their documents, fills and settlements.

    add         store a new order         durable when it returns
    of_nonce    orders that end if an owner's nonce is used

An order in memory has, beside its row, its document, its settled amount, and the key of a settlement that has
not ended.

Source: ARCHITECTURE.md, "Orders", "Transitions".
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from .....codecs.messages.vocabulary import OrderStatus, Side
from .....codecs.rounding import mul_div_up
from .....config.errors import NonceUsed, StoreError
from .....config.limits import VENUE_LIVE_ORDER_BYTES
from ....store.leases import Leases
from ....store.queries import among
from ....store.rows import DeltaFill, DeltaOrderRow, Effect, OrderDocument, amount_of
from ....store.store import Store
from ....store.tables import DELTA_DOCUMENT, DELTA_FILL, EFFECT
from ....store.units import Change, Done, Duplicate, row_of
from ...orders.live_rows import Effects, LiveRows
from ...orders.order_units import DELTA, effect_key
from ...orders.places import OrderStake, unbacked
from ...orders.step import OrderStep
from .document import DeltaDocument, decode_document, encode_document, order_of, without_struct
from .life import OPEN, SETTLE, gave_way
from .terms import DeltaPart, OrderTerms, SettledOrder, next_part, sells_shares, terms_of
from .vault import VaultWorth


class LiveOrder(Struct, eq=False, gc=False):
    """A Delta order in memory, which may still change.

    Attributes:
        row: the order's row as last read or written.
        order, terms: the signed struct, and its terms.
        document: stored document, without the struct (`without_struct`).
        filled: settled raw units of the source token (SELL) or the destination token (BUY); of a TWAP, the
            number of settled slices.
        last_fill_s: time of the last fill, Unix seconds; 0 before the first.
        settling: key of the stored `settle` effect whose settlement is unfinished; None without one.
        ended_at: height of the block whose settlement closed the order; for any other end, the height to
            which the chain was indexed when the end was first seen; None for an open order.
        in_vain: number of failed settlements since the last fill, whatever the reason of a failure; each
            lengthens the pause before the next auction round.
        worth: last statement of the vault from which the order sells; None before the first, and for an order
            without a vault.
        causer: see `LiveRow`.
    """

    row: DeltaOrderRow
    order: SettledOrder
    document: DeltaDocument
    terms: OrderTerms
    filled: int = 0
    last_fill_s: int = 0
    settling: str | None = None
    ended_at: int | None = None
    in_vain: int = 0
    worth: VaultWorth | None = None
    causer: str = ""

    @property
    def order_hash(self) -> bytes:
        """The order's hash, 32 bytes."""
        return self.row.order_hash

    @property
    def awaits_bids(self) -> bool:
        """Whether the order can be auctioned: it is open, and no settlement of it is under way."""
        return self.settling is None and self.row.status in OPEN

    def part(self) -> DeltaPart | None:
        """Compute the amounts of the order's next settlement; None if the order is fully settled.

        The part of a sale of shares is worth the source tokens that its vault last stated.
        """
        part, worth = next_part(self.order, self.filled), self.worth
        is_told = worth is not None and worth.is_told and part is not None and worth.amount == part.amount
        if part is None or worth is None or not is_told or not sells_shares(self.order):
            return part
        return replace(part, src_amount=worth.assets)


class Sold(Struct, frozen=True, gc=False):
    """Number of orders of an owner that sell a token, and the raw units that they sell together."""

    count: int
    amount: int


_NOTHING_SOLD = Sold(0, 0)
_SELLING = OPEN | {OrderStatus.SUSPENDED}
"""States of signed orders that may still take their owner's tokens: anybody may submit unsigned ones."""


class _DeltaParts(Struct, frozen=True):
    """Stored data of a Delta order beside its row, from which the order in memory is made.

    Attributes:
        document: the order's document; None if the store has none.
        settling: `settle` effect of the settlement that has not ended; None without one.
        last: the last fill; None before the first.
    """

    document: OrderDocument | None
    settling: Effect | None
    last: DeltaFill | None


class LiveOrders(LiveRows[DeltaOrderRow, LiveOrder]):
    """The Delta orders in memory, i.e. the orders that may still change, also indexed by owner and nonce.

    Args:
        leases: leases of this engine's shards, which fence the writes of `step`: a write fails once another
            engine has the shard.

    Attributes:
        bytes: memory that the orders count for, by `weight_of`.
    """

    def __init__(self, store: Store, leases: Leases) -> None:
        super().__init__(DELTA, store, leases)
        self._of_nonce: dict[tuple[int, bytes, bytes], tuple[bytes, ...]] = {}
        self._sold: dict[tuple[int, bytes, bytes], Sold] = {}  # by chain, owner and token
        self._left: dict[bytes, int] = {}  # order hash -> what the order counts for in `_sold`
        self.bytes = 0

    def of_nonce(self, chain_id: int, owner: bytes, nonce32: bytes) -> frozenset[bytes]:
        """Return the hashes of an owner's orders in memory that have this nonce.

        Args:
            owner: address, 20 bytes.
            nonce32: nonce, 32 bytes.
        """
        return frozenset(self._of_nonce.get((chain_id, owner, nonce32), ()))

    def sold(self, chain_id: int, owner: bytes, token: bytes) -> Sold:
        """Number of an owner's orders that may still sell a token, and how much they sell together."""
        return self._sold.get((chain_id, owner, token), _NOTHING_SOLD)

    def settlement_failed(self, live: LiveOrder) -> None:
        """Count a failed settlement of an order, which lengthens the pause before its next auction round."""
        live.in_vain += 1

    def begin_anew(self, live: LiveOrder) -> None:
        """Reset the count of an order's failed settlements, since a settlement has filled a part of it."""
        live.in_vain = 0

    async def add(
        self,
        row: DeltaOrderRow,
        document: DeltaDocument,
        order: SettledOrder,
        terms: OrderTerms,
        causer: str = "",
    ) -> DeltaOrderRow:
        """Store a new order and put it into memory; for an order already stored, return the stored row.

        The new order enters memory only if this engine holds its shard; the watchers (`DeltaEngine.tend`) are
        then called. Otherwise the engine that holds the shard learns of the order by the log of events
        (`hear`).

        Args:
            row: row of the new order; its hash identifies the order.
            causer: network or key that submitted the order.

        Returns:
            `row` itself if the order is new, else the stored row.

        Raises:
            NonceUsed: another live or filled order has the nonce.
            StoreUnavailable: the order was not stored, or may have been: submitting again is safe.
        """
        # Stored first, then in memory: an order in memory alone would be auctioned, and lost by a crash.
        outcome = await self._store.write(DELTA.submitted(row, encode_document(document)))
        match outcome:
            case Done():
                self._accepted += 1
                self._put(LiveOrder(row, order, without_struct(document), terms, causer=causer))
                return row
            case Duplicate(unique=0):
                return DELTA.found(outcome.row)
            case Duplicate():
                raise NonceUsed(field="order.nonce", expected="a nonce of no live or filled order")
            case _:
                raise StoreError(f"an order was not kept: {outcome}")

    # --- Parts of `LiveRows` that are Delta's -----------------------------------------------------------

    async def _read_parts(
        self, rows: Sequence[DeltaOrderRow], effects: Effects
    ) -> Mapping[bytes, _DeltaParts]:
        hashes = [row.order_hash for row in rows]
        documents, fills = await self._store.read(
            among(DELTA_DOCUMENT, "order_hash", hashes), among(DELTA_FILL, "order_hash", hashes)
        )
        bodies = {kept.order_hash: kept for values in documents if (kept := row_of(DELTA_DOCUMENT, values))}
        last: dict[bytes, DeltaFill] = {}
        for values in fills:
            fill: DeltaFill = row_of(DELTA_FILL, values)
            known = last.get(fill.order_hash)
            if known is None or amount_of(known.filled) < amount_of(fill.filled):
                last[fill.order_hash] = fill
        return {
            key: _DeltaParts(bodies.get(key), _settling(effects.get(key, ())), last.get(key))
            for key in hashes
        }

    def _made(self, row: DeltaOrderRow, parts: _DeltaParts, known: LiveOrder | None) -> LiveOrder | None:
        live = known
        if live is None:
            if parts.document is None:
                return None
            document = decode_document(parts.document.body)
            order = order_of(document)
            live = LiveOrder(row, order, without_struct(document), terms_of(order), in_vain=row.failures)
        last = parts.last
        live.filled = 0 if last is None else amount_of(last.filled)
        live.last_fill_s = 0 if last is None else last.at_ms // 1_000
        live.settling = None if parts.settling is None else parts.settling.key
        if last is not None and last.is_closed:
            live.ended_at = last.block_number
        return live

    def _stepped(self, live: LiveOrder, found: OrderStep[DeltaOrderRow]) -> None:
        after = found.after
        if any(intent.kind == SETTLE for intent in found.effects):
            live.settling = effect_key(after.order_hash, after.version, SETTLE)
        elif any(_ends(change, live.settling) for change in found.more):
            live.settling = None

    def _stake(self, live: LiveOrder) -> OrderStake | None:
        """Stake of an order without signature or funds, and without a fill; all others keep their places."""
        is_waiting = live.row.status in (OrderStatus.AWAITING_SIGNATURE, OrderStatus.SUSPENDED)
        return unbacked(live.causer) if is_waiting and not live.filled and live.settling is None else None

    def _gives_way(self, row: DeltaOrderRow, now_ms: int) -> OrderStep[DeltaOrderRow] | None:
        return gave_way(row, now_ms)

    def _place(self, live: LiveOrder) -> None:
        super()._place(live)
        self._count_sold(live, _left_to_sell(live) if live.row.status in _SELLING else None)

    def _count_sold(self, live: LiveOrder, left: int | None) -> None:
        """Count an order with what it may still sell; None for an order that sells nothing any more."""
        before = self._left.get(live.order_hash)
        if left == before:
            return
        account = live.row.chain_id, live.terms.owner, live.terms.held_token
        sold = self._sold.get(account, _NOTHING_SOLD)
        count = sold.count + (left is not None) - (before is not None)
        if left is None:
            del self._left[live.order_hash]
        else:
            self._left[live.order_hash] = left
        if count:
            self._sold[account] = Sold(count, sold.amount + (left or 0) - (before or 0))
        else:
            del self._sold[account]

    def _added(self, live: LiveOrder) -> None:
        key = _nonce(live.row)
        self._of_nonce[key] = (*self._of_nonce.get(key, ()), live.order_hash)
        self.bytes += weight_of(live.terms, live.order.metadata, live.document.signature)

    def _dropped(self, live: LiveOrder) -> None:
        self.bytes -= weight_of(live.terms, live.order.metadata, live.document.signature)
        self._count_sold(live, None)
        key = _nonce(live.row)
        others = tuple(other for other in self._of_nonce.pop(key, ()) if other != live.order_hash)
        if others:
            self._of_nonce[key] = others


def weight_of(terms: OrderTerms, metadata: bytes, signature: bytes) -> int:
    """Memory, in bytes, that an order counts for: a fixed part, and the data that its owner chose."""
    return VENUE_LIVE_ORDER_BYTES + len(metadata) + len(terms.permit) + len(signature)


def _left_to_sell(live: LiveOrder) -> int:
    """Raw units of the held token that an order may still take, rounded up by its unfilled part."""
    terms, order = live.terms, live.order
    whole = terms.src_total if terms.side is Side.SELL else terms.dest_total
    if isinstance(order, TwapOrder | TwapBuyOrder):
        whole = order.num_slices
    return mul_div_up(terms.held_total, max(whole - live.filled, 0), max(whole, 1))


def _nonce(row: DeltaOrderRow) -> tuple[int, bytes, bytes]:
    return row.chain_id, row.owner, row.nonce


def _settling(effects: Sequence[Effect]) -> Effect | None:
    return next((effect for effect in effects if effect.kind == SETTLE), None)


def _ends(change: Change, key: str | None) -> bool:
    """Whether a change marks the effect with this key as done or failed."""
    return getattr(change, "table", "") == EFFECT.name and getattr(change, "key", ()) == (key,)
