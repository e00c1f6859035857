"""structlog, imported without rich, which it wants for tracebacks that show local variables: we never print
those, and rich is half of the time in which a store process starts.

Whoever logs imports structlog from here. Whoever does not log is spared the import, which brings asyncio in.
"""

import sys
from typing import Any

__all__ = ["structlog"]

_modules: dict[str, Any] = sys.modules
if "structlog" in _modules or "rich.traceback" in _modules:
    import structlog
else:
    _rich = _modules.get("rich")
    _modules["rich"] = None
    try:
        import structlog
    finally:
        del _modules["rich"]
        if _rich is not None:
            _modules["rich"] = _rich
