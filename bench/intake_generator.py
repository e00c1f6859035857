"""Load of POST /v2/delta/orders: a process of its own on uvloop, on another core than the venue.

Every connection submits the next order after an answer; no order comes twice. Every answer's status is
checked as it arrives, and after the measurement one record in `CHECK_ONE_IN` is compared: owner, hash,
status, amounts. Prints one JSON object, a `Measured`; runs in .venv-load.
"""

# pyright: reportMissingImports=false
import argparse
import json
import sys
from pathlib import Path

import msgspec

from bench.delta_work import Ground, Orders
from bench.load_generator import CorpusSpent, Load, drive, measured, options
from bench.measured import Measured

CHECK_ONE_IN = 20


class Corpus:
    """Source of requests that submit signed Delta orders, each order once, in sequence."""

    def __init__(self, orders: Orders, first: int, count: int) -> None:
        self._first = first
        self.used = 0
        self._requests = [orders.request(number) for number in range(first, first + count)]

    def take(self) -> tuple[int, bytes]:
        """Take the next request: (number of its order, bytes)."""
        at = self.used
        if at == len(self._requests):
            raise CorpusSpent(f"all {at} orders are used: sign more")
        self.used = at + 1
        return self._first + at, self._requests[at]


def fault(orders: Orders, number: int, answer: bytes) -> str:
    """Return what is wrong with the record that answers the submission of an order; empty if it is right."""
    signed = orders.signed(number)
    wanted = {
        "status": "PENDING",
        "orderHash": "0x" + signed.order_hash.hex(),
        "owner": "0x" + signed.order.owner.hex(),
        "input": str(signed.order.src_amount),
    }
    try:
        record = json.loads(answer)
        got = {**record, "owner": record["owner"].lower(), "input": record["input"]["amount"]}
    except (ValueError, KeyError, TypeError) as error:
        return f"no record: {error!r} in {answer[:200]!r}"
    return ", ".join(f"{name} is {got[name]}" for name in wanted if got[name] != wanted[name])


async def measure(chosen: argparse.Namespace) -> Measured:
    orders = Orders(msgspec.json.decode(chosen.ground.read_bytes(), type=Ground))
    corpus = Corpus(orders, chosen.first, int(chosen.requests))
    load = Load(corpus)
    use = await drive(load, chosen)
    if not chosen.floor:
        faults = [(number, fault(orders, number, body)) for number, body in load.answers[::CHECK_ONE_IN]]
        load.failures += [f"order {number}: {text}" for number, text in faults if text]
    return measured(load, corpus, use, chosen)


if __name__ == "__main__":
    import uvloop

    parser = options(__doc__, "closed")
    parser.add_argument("--ground", type=Path, required=True, help="where the server left its contracts")
    parser.add_argument("--floor", action="store_true", help="answers hold nothing")
    chosen = parser.parse_args()
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(measure(chosen))))
