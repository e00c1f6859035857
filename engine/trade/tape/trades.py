"""Derives trades from the rows of a chain's logs. Pure.

    DeltaFill + its order and settlement       -> a DELTA trade
    OtcFills of one transaction                -> a MARKET trade, if the Router received of a fill
    OtcFills by a configured maker             -> the maker's parts of the trade in the same transaction

The log of a fill names as taker the account that receives the maker's asset. The last hop of a swap by the
Router pays the Router, each hop before it the executor; the last hop of a settlement pays the Delta contract,
the agent's caller or an agent's own contract. The Router's fills of a transaction with a settlement are the
settlement's, since an agent may settle through the Router.

Source: contracts/Rfq.sol (`exchange`), contracts/Router.sol (`trade`), contracts/RfqExecutor.sol (`fill`).
Choice: A trade across chains is its settlement on the origin: the received amount is the amount that entered
    the bridge, in the bridge's token.
Choice: A Market trade has the net flow of its fills: fees are not taken off, and the wrapped token stands for
    the native one. A transaction whose fills show no single source and destination is no trade.
Choice: The agent of a Delta trade is the agent whose settlement was mined: the round's winner, or the
    runner-up that followed a failed settlement.
Choice: The surplus compares with the signed `expectedAmount`, pro rata for a part; an order without one, such
    as a TWAP, has no surplus.
Choice: The time to a fill is that of a MARKET order's first settlement, by the time of its block, which has
    whole seconds on most chains.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.eip712_orders.delta import AnyDeltaOrder
from ....codecs.iso_time import iso_ms
from ....codecs.messages.tape_messages import TradeKind, TradeMessage
from ....codecs.messages.vocabulary import OrderType, Side
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...store.rows import DeltaFill, DeltaOrderRow, OtcFill, amount_of
from ..delta.orders.terms import UnslicedOrder, part_of, side_of
from ..delta.settlement.settling import Settlement

LogId: TypeAlias = tuple[bytes, bytes, int]
"""(block hash, transaction hash, log index) of a log: the identity of a trade."""

LogPlace: TypeAlias = tuple[int, int]
"""(block number, log index): the place of a trade in its chain, by which trades are sorted."""

Worth: TypeAlias = Callable[[bytes, int], int | None]
"""Function (token, raw units) -> value in cents of a US dollar, floored; None if unknown."""

_TENTHS_ONE = 100_000
"""Tenths of a basis point in one whole."""


class MakerPart(Struct, frozen=True):
    """Fill of a configured maker within a trade.

    Attributes:
        token, amount: asset that the maker gave, and its raw units.
        cents: value, cents of a US dollar; None if unknown.
    """

    maker: str
    token: bytes
    amount: int
    cents: int | None = None


class TapeTrade(Struct, frozen=True, kw_only=True):
    """A trade on a venue's tape.

    Attributes:
        log_id: identity of the log that stands for the trade; of a Market trade its last fill's.
        place: place of that log in the chain.
        at_ms: time of the block, Unix milliseconds.
        src_amount, dest_amount: raw units.
        src_cents, dest_cents: values when this venue first saw the trade, cents of a US dollar; None if
            unknown.
        parts: fills of configured makers in the trade's transaction.
        surplus_tenths: improvement over the quoted amount, tenths of a basis point; None if unknown.
        fill_ms: milliseconds from submission to the block; None if the order waited or is unknown.
    """

    kind: TradeKind
    chain_id: int
    log_id: LogId
    place: LogPlace
    at_ms: int
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    src_cents: int | None = None
    dest_cents: int | None = None
    agent: str | None = None
    parts: tuple[MakerPart, ...] = ()
    surplus_tenths: int | None = None
    fill_ms: int | None = None

    @property
    def cents(self) -> int | None:
        """Value of the source, or of the destination if unknown; cents of a US dollar, None if unknown."""
        return self.dest_cents if self.src_cents is None else self.src_cents

    @property
    def is_valued(self) -> bool:
        """Whether both tokens and each maker's part have a value."""
        return None not in (self.src_cents, self.dest_cents, *(part.cents for part in self.parts))


class TradeAccounts(Struct, frozen=True):
    """Accounts by which the trades of one chain are known.

    Attributes:
        router, executor: 20 bytes; empty for a contract that is not deployed.
        makers: signing address of a configured maker -> name of the maker.
    """

    router: bytes
    executor: bytes
    makers: Mapping[bytes, str]


class TradedOrder(Struct, frozen=True):
    """A Delta order with a settlement, as the store holds it.

    Attributes:
        settlement: settlement in the fill's transaction; None if this venue's relayer did not send it.
    """

    row: DeltaOrderRow
    order: AnyDeltaOrder
    settlement: Settlement | None


def id_of(row: DeltaFill | OtcFill) -> LogId:
    """Identity of a row's log."""
    return row.block_hash, row.tx_hash, row.log_index


def maker_parts(fills: Iterable[OtcFill], accounts: TradeAccounts) -> dict[bytes, tuple[MakerPart, ...]]:
    """Collect the fills of configured makers: hash of the transaction -> parts in the order of the logs."""
    found: defaultdict[bytes, list[MakerPart]] = defaultdict(list)
    for fill in sorted(fills, key=_place):
        maker = accounts.makers.get(fill.maker)
        if maker is not None:
            found[fill.tx_hash].append(MakerPart(maker, fill.maker_asset, amount_of(fill.maker_amount)))
    return {tx_hash: tuple(parts) for tx_hash, parts in found.items()}


def market_trades(
    fills: Iterable[OtcFill], settled: Collection[bytes], accounts: TradeAccounts
) -> list[TapeTrade]:
    """Derive the Market trades from fills of whole transactions.

    Args:
        fills: fills of the RFQ contract, all of each transaction.
        settled: hashes of the transactions with a settlement of a Delta order.
    """
    of_swaps: defaultdict[tuple[bytes, bytes], list[OtcFill]] = defaultdict(list)
    takers = {account for account in (accounts.router, accounts.executor) if account}
    for fill in fills:
        if fill.taker in takers and fill.tx_hash not in settled:
            of_swaps[fill.block_hash, fill.tx_hash].append(fill)
    found = (_swap(some, accounts) for some in of_swaps.values())
    return [trade for trade in found if trade is not None]


def _swap(fills: Sequence[OtcFill], accounts: TradeAccounts) -> TapeTrade | None:
    """Derive a Market trade from the fills of its transaction; None if they show no single swap."""
    flow: defaultdict[bytes, int] = defaultdict(int)
    for fill in fills:
        flow[fill.taker_asset] -= amount_of(fill.taker_amount)
        flow[fill.maker_asset] += amount_of(fill.maker_amount)
    given = [token for token, amount in flow.items() if amount < 0]
    # A token between may leave a rest, which goes to the user: only the last hop pays the Router.
    got = {fill.maker_asset for fill in fills if fill.taker == accounts.router}
    if len(given) != 1 or len(got) != 1:
        return None
    (src,), (dest,) = given, got
    if flow[dest] <= 0:
        return None
    last = max(fills, key=_place)
    return TapeTrade(
        kind=TradeKind.MARKET,
        chain_id=last.chain_id,
        log_id=id_of(last),
        place=_place(last),
        at_ms=last.at_ms,
        src_token=src,
        dest_token=dest,
        src_amount=-flow[src],
        dest_amount=flow[dest],
        parts=maker_parts(fills, accounts).get(last.tx_hash, ()),
    )


def delta_trade(fill: DeltaFill, traded: TradedOrder, parts: tuple[MakerPart, ...]) -> TapeTrade:
    """Derive the trade of a settlement of a Delta order.

    Args:
        parts: fills of configured makers in the settlement's transaction.
    """
    settlement = traded.settlement
    return TapeTrade(
        kind=TradeKind.DELTA,
        chain_id=fill.chain_id,
        log_id=id_of(fill),
        place=_place(fill),
        at_ms=fill.at_ms,
        src_token=traded.order.src_token,
        dest_token=traded.order.dest_token,
        src_amount=amount_of(fill.spent),
        dest_amount=amount_of(fill.received),
        agent=None if settlement is None else settlement.agent,
        parts=parts,
        surplus_tenths=_surplus_tenths(fill, traded),
        fill_ms=max(fill.at_ms - traded.row.created_ms, 0) if _is_due_at_once(fill, traded) else None,
    )


def _surplus_tenths(fill: DeltaFill, traded: TradedOrder) -> int | None:
    """Compare a settlement with the amount that was quoted: tenths of a basis point, floored.

    Positive if the owner of a sale received more, or that of a purchase spent less, than expected.
    """
    order, settlement = traded.order, traded.settlement
    amount = 0 if settlement is None else int(settlement.part_amount)
    if not amount or not isinstance(order, UnslicedOrder):
        return None
    expected = part_of(order, amount, amount).expected
    if not expected:
        return None
    if side_of(order) is Side.SELL:
        better = amount_of(fill.received) - expected
    else:
        better = expected - amount_of(fill.spent)
    return better * _TENTHS_ONE // expected


def _is_due_at_once(fill: DeltaFill, traded: TradedOrder) -> bool:
    """Whether a settlement is the first one of an order that waits neither for a price nor for a time."""
    if traded.row.type is not OrderType.MARKET or traded.settlement is None:
        return False
    is_sliced = not isinstance(traded.order, UnslicedOrder)
    return amount_of(fill.filled) == (1 if is_sliced else int(traded.settlement.part_amount))


def valued(trade: TapeTrade, worth: Worth) -> TapeTrade:
    """Return a trade with the values that are still unknown, as far as `worth` tells them now."""
    if trade.is_valued:
        return trade
    return replace(
        trade,
        src_cents=_kept(trade.src_cents, trade.src_token, trade.src_amount, worth),
        dest_cents=_kept(trade.dest_cents, trade.dest_token, trade.dest_amount, worth),
        parts=tuple(
            [replace(part, cents=_kept(part.cents, part.token, part.amount, worth)) for part in trade.parts]
        ),
    )


def _kept(cents: int | None, token: bytes, amount: int, worth: Worth) -> int | None:
    return worth(token, amount) if cents is None else cents


def trade_message(trade: TapeTrade) -> TradeMessage:
    """Convert a trade to the message that clients receive."""
    return TradeMessage(
        kind=trade.kind,
        chain_id=trade.chain_id,
        at=iso_ms(trade.at_ms),
        block_number=trade.place[0],
        transaction_hash=to_hex(trade.log_id[1]),
        src_token=to_checksum(trade.src_token),
        dest_token=to_checksum(trade.dest_token),
        src_amount=str(trade.src_amount),
        dest_amount=str(trade.dest_amount),
        src_usd=None if trade.src_cents is None else usd_text(trade.src_cents),
        dest_usd=None if trade.dest_cents is None else usd_text(trade.dest_cents),
        agent=trade.agent,
        makers=tuple(sorted({part.maker for part in trade.parts})),
        surplus_bps=None if trade.surplus_tenths is None else tenths_text(trade.surplus_tenths),
        fill_ms=trade.fill_ms,
    )


def usd_text(cents: int) -> str:
    """Write cents, 0 at least, as US dollars with two digits of fraction."""
    return f"{cents // 100}.{cents % 100:02}"


def tenths_text(tenths: int) -> str:
    """Write tenths as a decimal with one digit of fraction."""
    whole, tenth = divmod(abs(tenths), 10)
    return f"{'-' * (tenths < 0)}{whole}.{tenth}"


def _place(row: DeltaFill | OtcFill) -> LogPlace:
    return row.block_number, row.log_index
