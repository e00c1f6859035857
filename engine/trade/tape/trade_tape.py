"""The tape of one chain: its trades of the last 24 hours, sorted, with running statistics. Pure.

    entries    sorted by place in the chain, the latest TAPE_TRADES_MAX of the last TAPE_S seconds
    arrivals   the same entries in the order in which this process saw them, for streams
    sums       value of all entries up to each, so that the value of any hour is one subtraction

Counts, values and medians follow each entry that comes or goes: an answer costs no walk over the tape.

Guarantees: the statistics equal those of a computation from the entries alone.
Choice: Medians of an even number of trades are the lower of the two in the middle.
Choice: A trade's value is that of its source token, or of its destination token if the source has no price. A
    trade without both counts as a fill without volume.
Choice: A maker's share is its part of the volume of all makers' fills: a swap over two hops has two fills. An
    agent's share is its part of the volume of all Delta trades with an agent.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import TypeAlias

from ....codecs.iso_time import iso_ms
from ....codecs.messages.tape_messages import (
    AgentVolume,
    HourVolume,
    MakerVolume,
    TradeKind,
    TradeStatistics,
)
from ....codecs.messages.wire import encode
from ....config.limits import TAPE_ARRIVALS_MAX, TAPE_TRADES_MAX
from ....config.timeouts import TAPE_S
from ...store.follower import token_of
from .trades import LogId, LogPlace, TapeTrade, Worth, tenths_text, trade_message, usd_text, valued

_SPAN_MS = int(TAPE_S * 1_000)
_HOUR_MS = 3_600_000
_HOURS = _SPAN_MS // _HOUR_MS
_NONE_YET: LogPlace = (0, 0)
_PERCENT_TENTHS = 1_000
_END = float("inf")


class TapeEntry:
    """A trade on the tape; it is encoded once for all lists and streams."""

    __slots__ = ("_message", "trade")

    def __init__(self, trade: TapeTrade) -> None:
        self.trade = trade
        self._message = b""

    @property
    def message(self) -> bytes:
        """JSON message of the trade, as clients receive it."""
        if not self._message:
            self._message = encode(trade_message(self.trade))
        return self._message

    @property
    def token(self) -> str:
        """Resume token of the trade's place, 32 hexadecimal digits."""
        return token_of(*self.trade.place)


class _Tally:
    """Number and value of fills, and the sorted numbers of which medians are taken."""

    __slots__ = ("cents", "fill_ms", "fills", "surpluses")

    def __init__(self) -> None:
        self.fills = self.cents = 0
        self.surpluses: list[int] = []
        self.fill_ms: list[int] = []

    def count(self, sign: int, cents: int | None) -> None:
        """Add (`sign` 1) or take away (-1) a fill."""
        self.fills += sign
        self.cents += sign * (cents or 0)

    def count_trade(self, sign: int, trade: TapeTrade) -> None:
        """Add (`sign` 1) or take away (-1) a trade with its surplus and its time to the fill."""
        self.count(sign, trade.cents)
        for numbers, number in ((self.surpluses, trade.surplus_tenths), (self.fill_ms, trade.fill_ms)):
            if number is not None:
                if sign > 0:
                    insort(numbers, number)
                else:
                    del numbers[bisect_left(numbers, number)]


_Tallies: TypeAlias = dict[str, _Tally]


class TradeTape:
    """Trades of one chain in memory, with their statistics.

    Args:
        chain_id: chain of the trades.
        trades_max: most trades kept; the oldest is dropped first.
        arrivals_max: most trades that `arrived` returns.

    Attributes:
        chain_id: as the argument.
        version: number that changes with the content.
        end: number that the next arrival gets.
    """

    def __init__(
        self, chain_id: int, *, trades_max: int = TAPE_TRADES_MAX, arrivals_max: int = TAPE_ARRIVALS_MAX
    ) -> None:
        self.chain_id = chain_id
        self.version = self.end = 0
        self._trades_max = trades_max
        self._arrivals_max = arrivals_max
        self._floor = _NONE_YET  # trades up to here were dropped for their number
        self._entries: list[TapeEntry] = []
        self._sums: list[int] = []  # cents of the entries up to each, from any start
        self._by_id: dict[LogId, TapeEntry] = {}
        self._arrivals: deque[TapeEntry] = deque(maxlen=arrivals_max)
        self._all = _Tally()
        self._makers: _Tallies = {}
        self._agents: _Tallies = {}

    def __len__(self) -> int:
        """Number of trades on the tape."""
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        """Whether the tape has the most trades that it keeps."""
        return len(self._entries) >= self._trades_max

    @property
    def newest(self) -> LogPlace:
        """Place of the newest trade; (0, 0) of an empty tape."""
        return self._entries[-1].trade.place if self._entries else _NONE_YET

    def find(self, log_id: LogId) -> TapeTrade | None:
        """Return the trade of a log; None if the tape lacks it."""
        entry = self._by_id.get(log_id)
        return None if entry is None else entry.trade

    # --- Changes ------------------------------------------------------------------------------------

    def prepend(self, trades: Iterable[TapeTrade], now_ms: int) -> None:
        """Add trades that are older than all on the tape, as a start reads them; they are no arrivals.

        Trades older than TAPE_S seconds, and those beyond the most trades, are left out.

        Args:
            now_ms: present time, Unix milliseconds.
        """
        since_ms, oldest = now_ms - _SPAN_MS, self._entries[0].trade.place if self._entries else (_END,)
        found = [trade for trade in trades if trade.at_ms >= since_ms and trade.place < oldest]
        found.sort(key=_place_of)
        room = self._trades_max - len(self._entries)
        fitting = found[max(len(found) - room, 0) :]
        if len(fitting) < len(found):
            self._floor = max(self._floor, found[len(found) - len(fitting) - 1].place)
        entries = [self._kept(trade) for trade in fitting]
        self._entries[:0] = entries
        self._sum_from(0)
        self.version += bool(entries)

    def replace_above(self, height: int, trades: Iterable[TapeTrade], now_ms: int) -> int:
        """Make the trades of all blocks above a height those of `trades`; return the number of arrivals.

        A trade that stays keeps its values. A trade that `trades` lacks was undone by a re-organisation and
        is dropped; any other trade is an arrival.

        Args:
            trades: all trades of these blocks.
            now_ms: present time, Unix milliseconds.
        """
        since_ms = now_ms - _SPAN_MS
        wanted = {
            trade.log_id: trade for trade in trades if trade.at_ms >= since_ms and trade.place > self._floor
        }
        first = bisect_left(self._entries, (height + 1, 0), key=_entry_place)
        before = self._entries[first:]
        gone = [entry for entry in before if entry.trade.log_id not in wanted]
        for entry in gone:
            self._drop(entry)
        there = {entry.trade.log_id for entry in before}
        fresh = sorted((trade for log_id, trade in wanted.items() if log_id not in there), key=_place_of)
        arrived = [self._kept(trade) for trade in fresh]
        if gone or arrived:
            kept = [entry for entry in before if entry.trade.log_id in wanted]
            self._entries[first:] = sorted((*kept, *arrived), key=_entry_place)
            self._sum_from(first)
            self.version += 1
        self._arrivals.extend(arrived)
        self.end += len(arrived)
        over = len(self._entries) - self._trades_max
        if over > 0:
            self._floor = self._entries[over - 1].trade.place
            self._cut(over)
        return len(arrived)

    def forget(self, now_ms: int) -> None:
        """Drop the trades that are older than TAPE_S seconds.

        Args:
            now_ms: present time, Unix milliseconds.
        """
        self._cut(bisect_left(self._entries, now_ms - _SPAN_MS, key=_entry_ms))

    def revalue(self, worth: Worth) -> int:
        """Give values to trades that lack one; return the number of trades that still lack one.

        Args:
            worth: returns the present value of an amount.
        """
        changed = unknown = 0
        for at, entry in enumerate(self._entries):
            if entry.trade.is_valued:
                continue
            trade = valued(entry.trade, worth)
            unknown += not trade.is_valued
            if trade != entry.trade:
                changed += 1
                self._drop(entry)
                self._entries[at] = self._kept(trade)
        if changed:
            self._sum_from(0)
            self.version += 1
        return unknown

    def _kept(self, trade: TapeTrade) -> TapeEntry:
        entry = self._by_id[trade.log_id] = TapeEntry(trade)
        self._count(1, trade)
        return entry

    def _drop(self, entry: TapeEntry) -> None:
        del self._by_id[entry.trade.log_id]
        self._count(-1, entry.trade)

    def _cut(self, number: int) -> None:
        if number:
            for entry in self._entries[:number]:
                self._drop(entry)
            del self._entries[:number], self._sums[:number]
            self.version += 1

    def _sum_from(self, first: int) -> None:
        before = self._sums[first - 1] if first else 0
        values = [before, *(entry.trade.cents or 0 for entry in self._entries[first:])]
        self._sums[first:] = islice(accumulate(values), 1, None)

    def _count(self, sign: int, trade: TapeTrade) -> None:
        self._all.count_trade(sign, trade)
        if trade.agent is not None:
            self._agents.setdefault(trade.agent, _Tally()).count_trade(sign, trade)
            _forget_empty(self._agents, trade.agent)
        for part in trade.parts:
            self._makers.setdefault(part.maker, _Tally()).count(sign, part.cents)
            _forget_empty(self._makers, part.maker)

    # --- Answers ------------------------------------------------------------------------------------

    def listed(self, kind: TradeKind | None, limit: int) -> list[TapeEntry]:
        """Return the latest trades, the latest first.

        Args:
            kind: only trades of this kind; None for both.
            limit: most trades.
        """
        found = (entry for entry in reversed(self._entries) if kind in (None, entry.trade.kind))
        return list(islice(found, limit))

    def later(self, place: LogPlace, kind: TradeKind | None) -> list[TapeEntry]:
        """Return the trades after a place in the chain, the oldest first: the latest `arrivals_max` of them.

        Args:
            kind: only trades of this kind; None for both.
        """
        first = bisect_right(self._entries, place, key=_entry_place)
        first = max(first, len(self._entries) - self._arrivals_max)
        return [entry for entry in self._entries[first:] if kind in (None, entry.trade.kind)]

    def arrived(self, number: int, kind: TradeKind | None) -> list[TapeEntry]:
        """Return the arrivals from a number on that are still on the tape, the first to arrive first.

        A number that is too far back gets the last `arrivals_max` of them.

        Args:
            number: `end` at the last call.
            kind: only trades of this kind; None for both.
        """
        skipped = max(len(self._arrivals) - (self.end - number), 0)
        return [
            entry
            for entry in islice(self._arrivals, skipped, None)
            if kind in (None, entry.trade.kind) and entry.trade.log_id in self._by_id
        ]

    def statistics(self, now_ms: int) -> TradeStatistics:
        """Return the statistics of the TAPE_S seconds up to now; older trades are dropped first.

        Args:
            now_ms: present time, Unix milliseconds.
        """
        self.forget(now_ms)
        from_ms = now_ms - _SPAN_MS
        tally = self._all
        return TradeStatistics(
            chain_id=self.chain_id,
            from_=iso_ms(from_ms),
            to=iso_ms(now_ms),
            fills=tally.fills,
            volume_usd=usd_text(tally.cents),
            median_surplus_bps=_median_text(tally.surpluses),
            median_fill_ms=_median(tally.fill_ms),
            makers=tuple(
                [
                    MakerVolume(maker=maker, fills=of.fills, volume_usd=usd_text(of.cents), share=share)
                    for maker, of, share in _shares(self._makers)
                ]
            ),
            agents=tuple(
                [
                    AgentVolume(
                        agent=agent,
                        fills=of.fills,
                        volume_usd=usd_text(of.cents),
                        share=share,
                        median_surplus_bps=_median_text(of.surpluses),
                    )
                    for agent, of, share in _shares(self._agents)
                ]
            ),
            hours=tuple(self._hours(from_ms)),
        )

    def _hours(self, from_ms: int) -> Iterable[HourVolume]:
        # The last hour has no end: a chain's clock may be ahead of the venue's.
        begins = [from_ms + hour * _HOUR_MS for hour in range(_HOURS)]
        bounds = [bisect_left(self._entries, at_ms, key=_entry_ms) for at_ms in begins]
        for begin_ms, first, end in zip(begins, bounds, [*bounds[1:], len(self._entries)], strict=True):
            cents = 0
            if end > first:
                # The sums start anywhere, since entries before the first were dropped with theirs.
                cents = self._sums[end - 1] - self._sums[first] + (self._entries[first].trade.cents or 0)
            yield HourVolume(from_=iso_ms(begin_ms), fills=end - first, volume_usd=usd_text(cents))


def _forget_empty(tallies: _Tallies, name: str) -> None:
    if not tallies[name].fills:
        del tallies[name]


def _shares(tallies: _Tallies) -> list[tuple[str, _Tally, str]]:
    """Return (name, tally, share of the volume in percent), the largest volume first."""
    total = sum(tally.cents for tally in tallies.values())
    ordered = sorted(tallies.items(), key=lambda item: (-item[1].cents, -item[1].fills, item[0]))
    return [
        (name, tally, tenths_text(tally.cents * _PERCENT_TENTHS // total if total else 0))
        for name, tally in ordered
    ]


def _median(numbers: Sequence[int]) -> int | None:
    return numbers[(len(numbers) - 1) // 2] if numbers else None


def _median_text(tenths: Sequence[int]) -> str | None:
    median = _median(tenths)
    return None if median is None else tenths_text(median)


def _place_of(trade: TapeTrade) -> LogPlace:
    return trade.place


def _entry_place(entry: TapeEntry) -> LogPlace:
    return entry.trade.place


def _entry_ms(entry: TapeEntry) -> int:
    return entry.trade.at_ms
