"""What always holds of orders, whatever happens to them: the log of a venue's events goes by the life cycle's
table, the chain settled nothing beyond what was signed, and a record shows what the chain has.
"""

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.orders.lifecycles import DELTA_LIFECYCLE
from support.waiting_chain import Settlement
from support.waiting_model import INTERVAL_S, Known, left_of


class EventLog:
    """The events that a venue has written, as they are in the file of its store.

    Attributes:
        last: order hash -> (version, status) that its last event says.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self.last: dict[bytes, tuple[int, str]] = {}

    def check(self) -> None:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT n, order_hash, version, status FROM order_event WHERE n > ? ORDER BY n", (self._seen,)
            ).fetchall()
        for self._seen, order_hash, version, status in rows:
            name = order_hash.hex()[:8]
            if order_hash not in self.last:
                assert version == 1, f"{name} begins with version {version}"
                DELTA_LIFECYCLE.check_new(OrderStatus(status))
            else:
                before_version, before = self.last[order_hash]
                assert version == before_version + 1, f"{name}: {before_version} -> {version}"
                DELTA_LIFECYCLE.check(OrderStatus(before), OrderStatus(status), is_final=False)
            self.last[order_hash] = version, status


def check_settled(known: Known, settled: list[Settlement]) -> None:
    order, filled, last_s = known.order, 0, 0
    for one in settled:
        pieces = left_of(order, filled)
        assert pieces, f"{known} is overfilled"
        src, dest = pieces[0]
        if known.is_scheduled:
            assert one.filled == filled + 1, f"{known}: slice {one.filled} after {filled}"
            assert not last_s or one.time_s >= last_s + INTERVAL_S, f"{known} is early"
            assert (one.received == dest) if known.buys else (one.spent == src), f"{known}: a slice"
        else:
            amount = one.received if known.buys else one.spent
            assert one.filled == filled + amount, f"{known}: {filled} and {amount} are {one.filled}"
        assert one.spent <= src, f"{known} gave too much"
        if known.buys:
            most = Fraction(src * one.received, dest)
            assert one.spent <= most, f"{known} paid {one.spent}, more than {most}"
        else:
            least = Fraction(dest * one.spent, src)
            assert one.received >= least - 1, f"{known} got {one.received}, less than {least}"
        filled, last_s = one.filled, one.time_s
        assert filled <= known.whole, f"{known} is overfilled"
        assert one.is_closed == (filled == known.whole), f"{known}: closed"


def differences(known: Known, record: dict[str, Any], settled: list[Settlement]) -> list[str]:
    """How the record's fills are not the chain's."""
    shown = [
        (one["originTx"], int(one["spentAmount"]), int(one["receivedAmount"]))
        for one in record["transactions"]
    ]
    there = [(to_hex(one.tx_hash), one.spent, one.received) for one in settled]
    if shown != there:
        return [f"{known} shows {shown}, the chain has {there}"]
    end = record["input" if known.buys else "output"]["executedAmount"]
    total = sum(one.spent if known.buys else one.received for one in settled)
    if (int(end) if end is not None else 0) != total:
        return [f"{known} has executed {end}, the chain {total}"]
    percent = sum(Fraction(str(one["filledPercent"])) for one in record["transactions"])
    filled = settled[-1].filled if settled else 0
    if abs(percent - Fraction(100 * filled, known.whole)) > Fraction(1, 10**5):
        return [f"{known} says {percent} % are filled, the chain {filled} of {known.whole}"]
    return []
