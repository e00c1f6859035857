"""Number of random examples of a test: few in an ordinary run, many in a run that searches."""

import os

import hypothesis

USUAL = 25
"""Examples of a test that names no number, in an ordinary run."""
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run searches: `make test-long`."""


def examples(count: int) -> int:
    """Number of examples in this run: `count` in an ordinary run, scaled by the profile."""
    return max(1, count * hypothesis.settings().max_examples // USUAL)
