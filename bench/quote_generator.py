"""Load of GET /v2/quote: a process of its own on uvloop, on another core than the venue.

    closed   every connection sends the next request after an answer: maximum quotes per second
    open     request k is due at start + k / rate: latency; see `bench.load_generator`

No request comes twice. Every answer's status is checked as it arrives, and after the measurement one answer
in `CHECK_ONE_IN` is compared: tokens, the fixed amount exactly, the other amount against mid prices. Prints
one JSON object, a `Measured`; runs in .venv-load.
"""

# pyright: reportMissingImports=false
import argparse
import json
import sys
from fractions import Fraction

import msgspec

from bench.load_generator import CorpusSpent, Load, drive, measured, options
from bench.measured import Measured
from bench.quote_work import TOLERANCE, Asked, asked_for, expected, request

CHECK_ONE_IN = 20


class Corpus:
    """Source of requests for GET /v2/quote, each used once, in sequence."""

    def __init__(self, first: int, count: int) -> None:
        self._first = first
        self.used = 0
        self._requests = [request(number) for number in range(first, first + count)]

    def take(self) -> tuple[int, bytes]:
        """Take the next request: (its number, its bytes)."""
        at = self.used
        if at == len(self._requests):
            raise CorpusSpent(f"all {at} requests are used: make more")
        self.used = at + 1
        return self._first + at, self._requests[at]


def fault(parameters: Asked, answer: bytes) -> str:
    """Return what is wrong with an answer to GET /v2/quote; empty if the answer is right."""
    try:
        block = json.loads(answer)["delta"]
        ends = block["route"]["origin"]["input"], block["route"]["destination"]["output"]
        gas = block["route"]["fees"]["gas"]
        tokens = [end["token"]["address"].lower() for end in ends]
        paid, received = (int(end["amount"]) for end in ends)
        gas_amount, gas_token = int(gas["amount"]), gas["token"]["address"].lower()
    except (ValueError, KeyError, TypeError) as error:
        return f"no price: {error!r} in {answer[:200]!r}"
    if tokens != [parameters.src.address, parameters.dest.address]:
        return f"tokens are {tokens}"
    fixed, other = (paid, received) if parameters.sells else (received, paid)
    if fixed != parameters.amount:
        return f"the amount is {fixed}, not {parameters.amount}"
    right = expected(parameters)
    allowed = right * TOLERANCE
    other_token = parameters.dest if parameters.sells else parameters.src
    if gas_token == other_token.address:
        allowed += Fraction(gas_amount)
    return "" if abs(other - right) <= allowed else f"{other}, at mid prices {int(right)}, gas {gas_amount}"


async def measure(chosen: argparse.Namespace) -> Measured:
    corpus = Corpus(chosen.first, int(chosen.requests))
    load = Load(corpus)
    use = await drive(load, chosen)
    faults = [(number, fault(asked_for(number), body)) for number, body in load.answers[::CHECK_ONE_IN]]
    load.failures += [f"request {number}: {text}" for number, text in faults if text]
    return measured(load, corpus, use, chosen)


if __name__ == "__main__":
    import uvloop

    chosen = options(__doc__, "closed", "open").parse_args()
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(measure(chosen))))
