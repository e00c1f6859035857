"""Build every query of the store: SQL text for both dialects, and its values. Pure.

A listing is stable while orders come in: the first page carries its time, and the later pages are read as of
that time. A change of the sort column, such as `updatedAt`, still moves an order.

Source: spec 1.19, 2.8 and 2.9; interop.md 3; choices.md#otc-orders.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ...codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, OtcType
from .rows import NEVER_S, amount32
from .tables import (
    AUCTION_ROUND,
    CHAIN_INTENT,
    CHAIN_TX,
    DELIVERY,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
    EFFECT,
    ISSUED_ROUTE,
    ORDER_EVENT,
    OTC_ORDER,
    Table,
)

IDS_MAX = 1_000
_FIRST_OF_ORDER = (
    "NOT EXISTS (SELECT 1 FROM delivery e WHERE e.webhook = d.webhook AND e.order_hash = d.order_hash "
    "AND e.token < d.token AND e.state = 'WAITING')"
)
_OPEN_INTENT = "state IN ('WAITING', 'PENDING', 'MINED', 'REVERTED')"
"""SQL condition for unfinished relayer intents, the text of the partial index word for word: SQLite does not
use the index for an implied condition.
"""
_WORD = re.compile(r"\{(\w+)\}")
_OTC_KEYS = {
    "created_ms": "created_ms",
    "updated_ms": "updated_ms",
    "expires_s": f"(expires_s % {NEVER_S})",  # NEVER_S becomes 0, the last
}
_ONE = amount32(1)


class Query(Struct, frozen=True, array_like=True):
    """A query of the store: SQL text, the values of its `?` marks, and bounds on the rows by age.

    Attributes:
        sql: SQL text with `?` for each value, and names in braces for SQL that differs between dialects
            (`render`).
        values: values of the `?` marks in order: bytes, integers, texts.
        as_of: opaque text that the query `as_of_now` returned earlier, to leave out orders added since then;
            empty to leave out none.
        after: place in the log, (transaction, number), of the last event already read, in a query by
            `events_after`.
    """

    sql: str
    values: tuple[Any, ...]
    as_of: str = ""
    after: tuple[int, int] = (0, 0)


class DeltaFilter(Struct, frozen=True):
    """Filters of GET /v2/delta/orders; None or an empty tuple matches any order."""

    owner: bytes | None = None
    chain_ids: tuple[int, ...] = ()
    type: OrderType | None = None
    kind: OnChainOrderType | None = None
    statuses: tuple[OrderStatus, ...] = ()


class OtcFilter(Struct, frozen=True):
    """Filters of the listings of OTC orders.

    Attributes:
        maker, taker: account whose orders are listed, 20 bytes; exactly one of the two is set. `taker`
            matches the order's taker or the taker in the order's nonceAndMeta.
        swappable_min: (maker asset, least amount as 32 bytes) pairs for `hideSmallBalances`. An order is
            listed only if at least the pair's amount of the maker asset can be filled now, or 1 raw unit of
            an asset without a pair. None lists all orders.
        order_by: column to sort by, latest first; orders without expiry come last, and orders with equal
            times are sorted by hash.
    """

    chain_id: int
    maker: bytes | None = None
    taker: bytes | None = None
    type: OtcType | None = None
    swappable_min: tuple[tuple[bytes, bytes], ...] | None = None
    order_by: Literal["created_ms", "updated_ms", "expires_s"] = "created_ms"

    def __post_init__(self) -> None:
        if (self.maker is None) == (self.taker is None):
            raise ValueError("a listing is of a maker's orders, or of a taker's")


def by(table: Table, *values: Any, unique: int = 0) -> Query:
    """Select the row, at most one, that has given values in a set of unique columns of the table.

    Args:
        values: values of the set's columns, in order.
        unique: index of the set in `Table.unique`, 0 for the key; a row that does not meet the set's `where`
            condition is not found.
    """
    columns = table.unique[unique]
    found = " AND ".join(f"{name} = ?" for name in columns.columns)
    return Query(f"{_select(table)} WHERE {found}{f' AND {columns.where}' * bool(columns.where)}", values)


def among(table: Table, column: str, values: Sequence[Any]) -> Query:
    """Select a table's rows whose value in `column` is one of `values` (at most IDS_MAX), unsorted."""
    if column not in table.columns:
        raise ValueError(f"{table.name} has no column {column}")
    if len(values) > IDS_MAX:
        raise ValueError(f"at most {IDS_MAX} values, got {len(values)}")
    marks = ", ".join("?" * len(values)) or "NULL"
    return Query(f"{_select(table)} WHERE {column} IN ({marks})", tuple(values))


def between(table: Table, least: bytes, greatest: bytes) -> Query:
    """Select the orders with hashes from `least` to `greatest`, both included; at most IDS_MAX orders."""
    return Query(
        f"{_select(table)} WHERE order_hash >= ? AND order_hash <= ? LIMIT {IDS_MAX}", (least, greatest)
    )


def delta_page(wanted: DeltaFilter, limit: int, offset: int, as_of: str = "") -> tuple[Query, Query]:
    """Build the two queries for a page of Delta orders: (query of the page's rows, newest first; query of the
    number of all matching orders).
    """
    conditions = _conditions(owner=wanted.owner, type=wanted.type, kind=wanted.kind)
    conditions += _among(chain_id=wanted.chain_ids, status=wanted.statuses)
    return _page(DELTA_ORDER, conditions, "seq DESC", limit, offset, as_of)


def otc_page(
    wanted: OtcFilter,
    limit: int,
    offset: int,
    as_of: str = "",
    *,
    is_backwards: bool = False,
    counts: Sequence[int] = (),
) -> tuple[Query, Query]:
    """Build the two queries for a page of OTC orders: (hashes and sort keys of the page's orders; number of
    matching orders in each disjoint part of the listing, as `_otc_branches` splits it).

    Args:
        is_backwards: sort in the opposite order, so that pages near the end of the listing are fast.
        counts: numbers from an earlier run of the second query, so that the first query skips parts without
            orders; empty if unknown.
    """
    key, way = _OTC_KEYS[wanted.order_by], "ASC" if is_backwards else "DESC"
    branches = _otc_branches(wanted)
    if any(counts):  # if all are 0, all parts stay: a query needs one
        branches = [branch for branch, count in zip(branches, counts, strict=True) if count]
    rows = [f"SELECT order_hash, {key} AS place FROM otc_order WHERE {where}" for where, _ in branches]
    values = [value for _, some in branches for value in some]
    if len(branches) > 1:  # merged; PostgreSQL limits each part to the rows up to the page's end
        rows = [f"{{part}}{row} {{part_{way.lower()}}} ?{{part_end}}" for row in rows]
        values = [value for _, some in branches for value in (*some, limit + offset)]
    page = f"{' UNION ALL '.join(rows)} ORDER BY place {way}, order_hash {way} LIMIT ? OFFSET ?"
    counted = _otc_branches(wanted, is_count=wanted.swappable_min is None)
    count = ", ".join(f"(SELECT count(*) FROM otc_order WHERE {where})" for where, _ in counted)
    total = Query(f"SELECT {count}", tuple(value for _, some in counted for value in some), as_of)
    return Query(page, (*values, limit, offset), as_of), total


def live_otc(chain_id: int, maker: bytes, maker_asset: bytes | None = None) -> Query:
    """Select a maker's OTC drafts and its orders that may still be filled.

    Args:
        maker_asset: token that the orders sell, 20 bytes; None for any token.
    """
    of_asset = " AND maker_asset = ?" if maker_asset is not None else ""
    return Query(
        f"{_select(OTC_ORDER)} WHERE status IN ('DRAFT', 'PENDING', 'SUSPENDED') AND chain_id = ? "
        f"AND maker = ?{of_asset} ORDER BY maker_asset",
        (chain_id, maker, *(() if maker_asset is None else (maker_asset,))),
    )


def unfinished_otc(chain_id: int, maker: bytes) -> Query:
    """Select a maker's OTC orders that are not final: open orders, and orders whose fill or cancellation a
    reorganisation could still undo.
    """
    return Query(
        f"{_select(OTC_ORDER)} WHERE is_final = FALSE AND chain_id = ? AND maker = ? ORDER BY order_hash",
        (chain_id, maker),
    )


def open_orders(table: Table, shards: Sequence[int], after_hash: bytes, limit: int) -> Query:
    """Select a page of the orders in `shards` that are not final, sorted by arrival. An engine loads these
    orders when it claims the shards.

    Args:
        after_hash: hash of the last order of the previous page; empty for the first page.
    """
    marks = ", ".join("?" * len(shards)) or "NULL"
    return Query(
        f"{_select(table)} WHERE is_final = FALSE AND shard IN ({marks}) "
        f"AND seq > coalesce((SELECT seq FROM {table.name} WHERE order_hash = ?), 0) ORDER BY seq LIMIT ?",
        (*shards, after_hash, limit),
    )


def intended_effects(shards: Sequence[int], after_key: str, limit: int) -> Query:
    """Select a page of the unfinished side effects of orders in the given shards, sorted by key.

    Args:
        after_key: key of the last side effect of the previous page; empty for the first page.
    """
    marks = ", ".join("?" * len(shards)) or "NULL"
    return Query(
        f"{_select(EFFECT)} WHERE state = 'INTENDED' AND shard IN ({marks}) AND key > ? ORDER BY key LIMIT ?",
        (*shards, after_key, limit),
    )


def open_transactions(chain_id: int, sender: bytes) -> Query:
    """Select a relayer account's transactions that wait to be mined or to become final, sorted by nonce."""
    return Query(
        f"{_select(CHAIN_TX)} WHERE chain_id = ? AND sender = ? AND status IN ('SIGNED', 'MINED') "
        "ORDER BY nonce, created_ms",
        (chain_id, sender),
    )


def settled_transactions(chain_id: int, sender: bytes, nonce_min: int, limit: int) -> Query:
    """Select a relayer account's transactions with the status FINAL or FAILED and a nonce of at least
    `nonce_min`, sorted by nonce.
    """
    return Query(
        f"{_select(CHAIN_TX)} WHERE chain_id = ? AND sender = ? AND nonce >= ? "
        "AND status IN ('FINAL', 'FAILED') ORDER BY nonce LIMIT ?",
        (chain_id, sender, nonce_min, limit),
    )


def signed_intents(chain_id: int, sender: bytes) -> Query:
    """Select a relayer account's unfinished intents (calls to get mined) for which transactions are
    signed.
    """
    return Query(
        f"{_select(CHAIN_INTENT)} WHERE chain_id = ? AND sender = ? "
        f"AND state IN ('PENDING', 'MINED', 'REVERTED') AND {_OPEN_INTENT}",
        (chain_id, sender),
    )


def waiting_intents(chain_id: int, sender: bytes, limit: int) -> Query:
    """Select a relayer account's waiting intents (calls to get mined), which have no transaction yet, oldest
    first.
    """
    return Query(
        f"{_select(CHAIN_INTENT)} WHERE chain_id = ? AND sender = ? AND state = 'WAITING' "
        f"AND {_OPEN_INTENT} ORDER BY created_ms, effect_key LIMIT ?",
        (chain_id, sender, limit),
    )


def open_intents_count(chain_id: int, sender: bytes) -> Query:
    """Select one row about a relayer account's intents (calls to get mined): number of waiting intents, and
    creation time of the oldest unfinished intent, Unix ms or None.
    """
    return Query(
        "SELECT count(CASE WHEN state = 'WAITING' THEN 1 END), min(created_ms) FROM chain_intent "
        f"WHERE chain_id = ? AND sender = ? AND {_OPEN_INTENT}",
        (chain_id, sender),
    )


def fills(order_hash: bytes) -> Query:
    """Select the settlements of a Delta order, oldest first."""
    return of_order(DELTA_FILL, order_hash)


def of_nonce(chain_id: int, owner: bytes, nonce32: bytes) -> Query:
    """Select the Delta orders of an owner that have a nonce, ended ones too; at most IDS_MAX orders."""
    return Query(
        f"{_select(DELTA_ORDER)} WHERE chain_id = ? AND owner = ? AND nonce = ? LIMIT {IDS_MAX}",
        (chain_id, owner, nonce32),
    )


def of_order(table: Table, order_hash: bytes) -> Query:
    """Select an order's rows in one of the tables of chain logs (CHAIN_LOGS), oldest first."""
    return Query(f"{_select(table)} WHERE order_hash = ? ORDER BY block_number, log_index", (order_hash,))


def above(table: Table, chain_id: int, block_number: int, limit: int) -> Query:
    """Select the rows of a table of chain logs (CHAIN_LOGS) for a chain's blocks above a height, highest
    first.
    """
    return Query(
        f"{_select(table)} WHERE chain_id = ? AND block_number > ? ORDER BY block_number DESC LIMIT ?",
        (chain_id, block_number, limit),
    )


def within(table: Table, chain_id: int, above_height: int, height_max: int, limit: int) -> Query:
    """Select the rows of a table of chain logs (CHAIN_LOGS) for some of a chain's blocks, highest first.

    Args:
        above_height: height below the lowest of these blocks.
        height_max: height of the highest of these blocks.
    """
    return Query(
        f"{_select(table)} WHERE chain_id = ? AND block_number > ? AND block_number <= ? "
        "ORDER BY block_number DESC LIMIT ?",
        (chain_id, above_height, height_max, limit),
    )


def auction_rounds(auction_id: int) -> Query:
    """Select the orders of a closed auction round, sorted by hash."""
    return Query(f"{_select(AUCTION_ROUND)} WHERE auction_id = ? ORDER BY order_hash", (auction_id,))


def latest_rounds(chain_id: int, after: int, limit: int) -> Query:
    """Select the orders of a chain's closed auction rounds, the latest round first, `limit` rows at most.

    Args:
        after: id of a round; only later rounds are selected.
    """
    return Query(
        f"{_select(AUCTION_ROUND)} WHERE auction_id > ? AND chain_id = ? "
        "ORDER BY auction_id DESC, order_hash DESC LIMIT ?",
        (after, chain_id, limit),
    )


def last_rounds(order_hash: bytes, limit: int) -> Query:
    """Select the closed auction rounds of an order, the latest first."""
    return Query(
        f"{_select(AUCTION_ROUND)} WHERE order_hash = ? ORDER BY auction_id DESC LIMIT ?",
        (order_hash, limit),
    )


def refunds(order_hash: bytes) -> Query:
    """Select the refunds of a Delta order, oldest first."""
    return Query(f"{_select(DELTA_REFUND)} WHERE order_hash = ? ORDER BY at_ms, tx_hash", (order_hash,))


def events_after(after: tuple[int, int], limit: int, owner: bytes | None = None) -> Query:
    """Select the events in the log after a place, as rows (transaction, number, the event's columns...).

    Args:
        after: place of an event in the log, (transaction, number); `follower.token_of` explains both.
        owner: account whose orders' events are selected, 20 bytes; None for all orders.
    """
    columns = ", ".join(ORDER_EVENT.columns)
    of_owner = " AND owner = ?" if owner is not None else ""
    return Query(
        f"SELECT {{tx}}, n, {columns} FROM order_event WHERE {{after}}{of_owner} "
        "ORDER BY {by_place} LIMIT ?",
        (*(() if owner is None else (owner,)), limit),
        after=after,
    )


def last_event() -> Query:
    """Select the place in the log, (transaction, number), of the newest event that is safe to resume from.

    No running transaction can still insert an event before this one. The result is empty if no event is safe.
    """
    return Query("SELECT {tx}, n FROM order_event WHERE {settled} ORDER BY {newest} LIMIT 1", ())


def as_of_now(table: Table) -> Query:
    """Select an opaque text that marks the present content of a table of orders.

    A later query with this text in `Query.as_of` leaves out the orders added in between.
    """
    return Query(f"SELECT {{now_{table.name}}}", ())


def expired_routes(before_ms: int, limit: int) -> Query:
    """Select the issued routes of Delta orders that expired before `before_ms` (Unix ms), oldest first."""
    return Query(
        f"{_select(ISSUED_ROUTE)} WHERE expires_ms < ? ORDER BY expires_ms LIMIT ?", (before_ms, limit)
    )


def due_deliveries(webhook: str, now_ms: int, limit: int) -> Query:
    """Select a webhook's deliveries that are due to be posted at `now_ms`, longest overdue first.

    Of the waiting deliveries about one order, only the first is selected.
    """
    return Query(
        f"{_select(DELIVERY)} d WHERE webhook = ? AND state = 'WAITING' AND due_ms <= ? "
        f"AND {_FIRST_OF_ORDER} ORDER BY due_ms, token LIMIT ?",
        (webhook, now_ms, limit),
    )


def next_delivery(webhook: str) -> Query:
    """Select the Unix ms at which a webhook's next delivery is due to be posted; no row if none waits."""
    return Query(
        f"SELECT due_ms FROM delivery d WHERE webhook = ? AND state = 'WAITING' AND {_FIRST_OF_ORDER} "
        "ORDER BY due_ms LIMIT 1",
        (webhook,),
    )


def overdue_deliveries(webhook: str, before_ms: int, limit: int) -> Query:
    """Select a webhook's waiting deliveries created before `before_ms` (Unix ms), oldest first.

    The venue attempts no further POST for deliveries of this age.
    """
    return Query(
        f"{_select(DELIVERY)} WHERE webhook = ? AND state = 'WAITING' AND created_ms < ? "
        "ORDER BY created_ms, token LIMIT ?",
        (webhook, before_ms, limit),
    )


def deliveries(webhook: str, state: str, after_token: str, limit: int) -> Query:
    """Select a page of a webhook's deliveries in a state, sorted by the events' places in the log.

    Args:
        after_token: resume token of the event of the previous page's last delivery.
    """
    return Query(
        f"{_select(DELIVERY)} WHERE webhook = ? AND state = ? AND token > ? ORDER BY token LIMIT ?",
        (webhook, state, after_token, limit),
    )


def delivery_counts(webhook: str) -> Query:
    """Select the number of a webhook's deliveries in each state, as rows (state, number)."""
    return Query("SELECT state, count(*) FROM delivery WHERE webhook = ? GROUP BY state", (webhook,))


def render(query: Query, words: Mapping[str, str]) -> str:
    """Return a query's SQL with the names in braces replaced by the SQL of one dialect.

    Args:
        words: name, without braces -> SQL:
            `tx`: number of the transaction that wrote an event;
            `settled`: condition that no event can still be inserted before this one;
            `after`: condition that an event is later in the log than `Query.after`;
            `by_place`, `newest`: columns that sort events by place, ascending or descending;
            `as_of`: condition that an order is not newer than `Query.as_of`;
            `now_<table>`: text for the state of a table, see `as_of_now`;
            `part`, `part_asc` or `part_desc`, `part_end`: pieces of SQL around each SELECT of a UNION ALL.
            The query has `part` before the SELECT, `part_asc` or `part_desc` after the SELECT, then a number
            and `part_end`. In PostgreSQL, the pieces sort the SELECT's rows and limit their count to the
            number, because the database would otherwise read all rows. In SQLite, the pieces have no effect.
    """
    return _WORD.sub(lambda found: words[found[1]], query.sql)


def _select(table: Table) -> str:
    return f"SELECT {', '.join(table.columns)} FROM {table.name}"


def _conditions(**wanted: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [(f"{column} = ?", (value,)) for column, value in wanted.items() if value is not None]


def _among(**wanted: tuple[Any, ...]) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        (f"{column} IN ({', '.join('?' * len(values))})", values)
        for column, values in wanted.items()
        if values
    ]


def _otc_branches(wanted: OtcFilter, *, is_count: bool = False) -> list[tuple[str, tuple[Any, ...]]]:
    """Split the condition of an OTC listing into disjoint (SQL condition, values) parts, each of which an
    index can serve.

    Args:
        is_count: whether the query counts orders. The conditions then suit the index that contains the
            order type; for other queries, the conditions keep the database from using that index.
    """
    accounts = ["maker = ?"]
    if wanted.maker is None:
        accounts = ["taker_from_meta = ?", "taker = ? AND taker <> taker_from_meta"]
    of = wanted.taker if wanted.maker is None else wanted.maker
    rest: list[str] = ["chain_id = ?"]
    values: list[Any] = [of, wanted.chain_id]
    if wanted.type is not None:
        rest.append("type = ?" if is_count else "type || '' = ?")
        values.append(wanted.type)
    elif is_count:
        rest.append(f"type IN ({', '.join(repr(kind.value) for kind in OtcType)})")
    if wanted.swappable_min is not None:
        least, amounts = _swappable_min(wanted.swappable_min)
        rest += ["status = 'PENDING'", f"swappable >= {least}"]  # other states have no swappable amount
        values += amounts
    return [(" AND ".join([account, *rest, "{as_of}"]), tuple(values)) for account in accounts]


def _swappable_min(by_token: Sequence[tuple[bytes, bytes]]) -> tuple[str, list[bytes]]:
    """Build an SQL expression, and its values, for the fillable amount that an order needs to be listed.

    Args:
        by_token: (maker asset, least amount of 32 bytes) pairs; for other assets the least amount is 1 raw
            unit.
    """
    if not by_token:
        return "?", [_ONE]
    cases = " ".join(["WHEN ? THEN ?"] * len(by_token))
    amounts = [value for token, least in by_token for value in (token, max(least, _ONE))]
    return f"CASE maker_asset {cases} ELSE ? END", [*amounts, _ONE]


def _page(
    table: Table,
    conditions: list[tuple[str, tuple[Any, ...]]],
    order: str,
    limit: int,
    offset: int,
    as_of: str,
) -> tuple[Query, Query]:
    where = " AND ".join([*(text for text, _ in conditions), "{as_of}"])
    values = tuple(value for _, some in conditions for value in some)
    rows = f"{_select(table)} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
    return (
        Query(rows, (*values, limit, offset), as_of),
        Query(f"SELECT count(*) FROM {table.name} WHERE {where}", values, as_of),
    )
