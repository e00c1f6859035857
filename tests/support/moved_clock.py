"""The `cambist` command on a machine whose system clock is moved while it runs.

    MOVED_CLOCK=FILE python -m support.moved_clock serve --config venue.toml

The file says by how many seconds the system's clock is ahead. Python's readings of that clock are moved by
as much; the monotonic clock goes on as before.
"""

import os
import time
from pathlib import Path

_FILE = Path(os.environ["MOVED_CLOCK"])
_system_ns = time.time_ns


def moved_ns() -> int:
    """Unix nanoseconds."""
    return _system_ns() + int(_FILE.read_text()) * 1_000_000_000


if __name__ == "__main__":
    time.time_ns = moved_ns
    time.time = lambda: moved_ns() / 1e9
    import support.stretched_bounds  # noqa: F401  before the modules that copy the bounds

    # isort: split
    from cambist.engine.cli import main

    main()
