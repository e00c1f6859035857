"""The tape equals a list of the same trades, whatever came, went or was undone; statistics are recomputed."""

from statistics import median_low

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cambist.codecs.iso_time import iso_ms
from cambist.codecs.messages.tape_messages import TradeKind
from cambist.engine.trade.tape.trade_tape import TradeTape
from cambist.engine.trade.tape.trades import MakerPart, TapeTrade, tenths_text, usd_text
from support.store.stores import NOW_MS, USDC, WETH, hash_of

DAY_MS, HOUR_MS, BLOCK_MS = 86_400_000, 3_600_000, 1_800_000
TRADES_MAX, ARRIVALS_MAX = 12, 5
CENTS = st.none() | st.integers(0, 10**9)
PARTS = st.lists(st.tuples(st.sampled_from(["alpha", "beta"]), CENTS), max_size=3)


@st.composite
def trades(draw: st.DrawFn, first: int, branch: int) -> list[TapeTrade]:
    """Trades of some blocks from `first` on; `branch` tells blocks of the same height apart."""
    places = [
        (number, log)
        for number in range(first, first + draw(st.integers(0, 4)))
        for log in range(draw(st.integers(0, 2)))
    ]
    return [
        TapeTrade(
            kind=draw(st.sampled_from(TradeKind)),
            chain_id=1,
            log_id=(hash_of(1_000 * number + branch), hash_of(number), log),
            place=(number, log),
            at_ms=NOW_MS + number * BLOCK_MS,
            src_token=WETH,
            dest_token=USDC,
            src_amount=1,
            dest_amount=1,
            src_cents=draw(CENTS),
            dest_cents=draw(CENTS),
            agent=draw(st.sampled_from([None, "ann", "bob"])),
            parts=tuple([MakerPart(maker, USDC, 1, cents) for maker, cents in draw(PARTS)]),
            surplus_tenths=draw(st.none() | st.integers(-500, 500)),
            fill_ms=draw(st.none() | st.integers(0, 9)),
        )
        for number, log in places
    ]


class TapeLives(RuleBasedStateMachine):
    """A chain whose blocks come and go, and the tape of its trades."""

    def __init__(self) -> None:
        super().__init__()
        self.tape = TradeTape(1, trades_max=TRADES_MAX, arrivals_max=ARRIVALS_MAX)
        self.chain: list[TapeTrade] = []  # all trades that the tape has to have
        self.top = 0
        self.branch = 0
        self.now_ms = NOW_MS
        self.floor = (0, 0)

    @rule(data=st.data(), back=st.integers(0, 6))
    def blocks(self, data: st.DataObject, back: int) -> None:
        """Blocks are undone, others mined in their place."""
        self.branch += 1
        above = max(self.top - back, 0)
        kept = [trade for trade in self.chain if trade.place[0] <= above]
        fresh = data.draw(trades(above + 1, self.branch))
        self.top = max(self.top, above + 4)
        self.now_ms = max(self.now_ms, NOW_MS + self.top * BLOCK_MS)
        fresh = [trade for trade in fresh if trade.at_ms >= self.now_ms - DAY_MS and trade.place > self.floor]
        number = self.tape.end
        assert self.tape.replace_above(above, fresh, self.now_ms) == len(fresh)
        self.chain = self._bounded(kept + fresh)
        there = [trade for trade in fresh if trade in self.chain]
        told = [entry.trade for entry in self.tape.arrived(number, None)]
        assert told == [trade for trade in fresh[-ARRIVALS_MAX:] if trade in there]

    @rule(above=st.integers(0, 60))
    def read_again(self, above: int) -> None:
        """The same blocks are read once more."""
        version = self.tape.version
        same = [trade for trade in self.chain if trade.place[0] > above]
        assert self.tape.replace_above(above, same, self.now_ms) == 0
        if all(trade.at_ms >= self.now_ms - DAY_MS for trade in self.chain):
            assert self.tape.version == version

    @rule(cents=st.integers(0, 10**6))
    def prices_come(self, cents: int) -> None:
        assert self.tape.revalue(lambda *_: cents) == 0
        self.chain = [entry.trade for entry in reversed(self.tape.listed(None, TRADES_MAX))]
        assert all(trade.is_valued for trade in self.chain)

    @rule(hours=st.integers(1, 20))
    def time_passes(self, hours: int) -> None:
        self.now_ms += hours * HOUR_MS

    def _bounded(self, found: list[TapeTrade]) -> list[TapeTrade]:
        if len(found) > TRADES_MAX:
            self.floor = found[-TRADES_MAX - 1].place
        return found[-TRADES_MAX:]

    @invariant()
    def is_the_chain_s(self) -> None:
        self.tape.forget(self.now_ms)
        since_ms = self.now_ms - DAY_MS
        self.chain = [trade for trade in self.chain if trade.at_ms >= since_ms]
        listed = [entry.trade for entry in self.tape.listed(None, TRADES_MAX)]
        assert listed == self.chain[::-1]
        assert all(self.tape.find(trade.log_id) == trade for trade in self.chain)

    @invariant()
    def statistics_are_those_of_the_trades(self) -> None:
        told = self.tape.statistics(self.now_ms)
        from_ms = self.now_ms - DAY_MS
        found = [trade for trade in self.chain if trade.at_ms >= from_ms]
        assert (told.fills, told.volume_usd) == (len(found), volume(found))
        assert told.median_surplus_bps == median_text(found)
        times = [trade.fill_ms for trade in found if trade.fill_ms is not None]
        assert told.median_fill_ms == (median_low(times) if times else None)
        for hour, (begin_ms, of) in zip(told.hours, hours(found, from_ms), strict=True):
            assert (hour.from_, hour.fills, hour.volume_usd) == (iso_ms(begin_ms), len(of), volume(of))
        parts = [part for trade in found for part in trade.parts]
        assert {(one.maker, one.fills, one.volume_usd) for one in told.makers} == {
            (
                name,
                sum(part.maker == name for part in parts),
                usd_text(sum(part.cents or 0 for part in parts if part.maker == name)),
            )
            for name in {part.maker for part in parts}
        }
        assert {(one.agent, one.fills, one.volume_usd, one.median_surplus_bps) for one in told.agents} == {
            (name, len(of), volume(of), median_text(of))
            for name in {trade.agent for trade in found} - {None}
            for of in [[trade for trade in found if trade.agent == name]]
        }
        for shares in (told.makers, told.agents):
            assert sum(float(one.share) for one in shares) <= 100.0


def volume(found: list[TapeTrade]) -> str:
    return usd_text(sum(trade.cents or 0 for trade in found))


def median_text(found: list[TapeTrade]) -> str | None:
    tenths = [trade.surplus_tenths for trade in found if trade.surplus_tenths is not None]
    return tenths_text(median_low(tenths)) if tenths else None


def hours(found: list[TapeTrade], from_ms: int) -> list[tuple[int, list[TapeTrade]]]:
    begins = [from_ms + at * HOUR_MS for at in range(24)]
    return [
        (
            begin,
            [
                trade
                for trade in found
                if begin <= trade.at_ms and (trade.at_ms < begin + HOUR_MS or begin == begins[-1])
            ],
        )
        for begin in begins
    ]


TestTapeLives = TapeLives.TestCase
