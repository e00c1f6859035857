"""The roles and the capabilities they share; the composition root."""

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
if "httpx" not in _modules:
    # httpx imports rich for a command of its own: a sixth of the time in which a venue starts
    _modules.setdefault("httpx._main", None)
