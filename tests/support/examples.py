"""How many random examples a test draws: few in an ordinary run, many in one that searches."""

import os

import hypothesis

USUAL = 25
"""Of a test that says nothing else, in an ordinary run."""
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run is one that searches: `make test-long`."""


def examples(count: int) -> int:
    """So many in an ordinary run, and as many times more or fewer as the profile has it."""
    return max(1, count * hypothesis.settings().max_examples // USUAL)
