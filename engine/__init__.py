"""The roles and the capabilities they share; the composition root."""

import sys
from typing import Any


def _leave_rich_out() -> None:
    """structlog imports rich for tracebacks that show local variables, which we never print, and httpx for a
    command of its own: half of the time in which a store process starts, a sixth of a venue's."""
    modules: dict[str, Any] = sys.modules
    if "httpx" not in modules:
        modules.setdefault("httpx._main", None)
    if "rich" not in modules and "structlog" not in modules:
        modules["rich"] = None
        try:
            import structlog  # noqa: F401
        finally:
            del modules["rich"]


_leave_rich_out()
