"""Unit of a machine's speed of Python code: the time to price an amount by a Decimal walk of 20 levels.

The unit varies between machines as other Python code does: 1.7 us where the limits were set, with 17.3 us for
a C signature; 4.7 us on a machine with 30 us for the signature.
"""

import itertools
from decimal import Decimal, localcontext
from time import process_time

from bench.bench_book import (
    BASE_DECIMALS,
    EXACT,
    amounts,
    apply,
    decode_grid,
    grid_json,
    levels_decimal,
    walk_decimal,
)


def walk_us() -> float:
    """Measure the CPU time, in microseconds, to price an amount by a Decimal walk of 20 levels."""
    raw = grid_json(1, 20)
    sold, levels = amounts(apply(decode_grid(raw))), levels_decimal(raw)
    with localcontext(EXACT):
        some = [Decimal(amount).scaleb(-BASE_DECIMALS) for amount in sold]
        began = process_time()
        walked = [*map(walk_decimal, itertools.repeat(levels), some)]
        taken_s = process_time() - began
    if None in walked:
        raise ValueError("an amount was beyond the depth")
    return 1e6 * taken_s / len(sold)
