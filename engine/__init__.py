"""The roles and the capabilities they share; the composition root."""

import sys
from typing import Any


def import_structlog() -> None:
    """Import it without rich, which it takes for tracebacks that show local variables (we never print them),
    and leave httpx's command out: a sixth of the time in which a venue starts."""
    modules: dict[str, Any] = sys.modules
    if "httpx" not in modules:
        modules.setdefault("httpx._main", None)
    if "rich" not in modules and "structlog" not in modules:
        modules["rich"] = None
        try:
            import structlog  # noqa: F401
        finally:
            del modules["rich"]


if "cambist.engine.store.process" not in sys.orig_argv:  # which logs only when something is wrong
    import_structlog()
