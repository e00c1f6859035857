"""Hooks that Schemathesis, a process of .venv-peers, loads: they record the status of each answer.

STATUSES names the file, a line for each answer: `GET /prices 400`. If EACH_FAULT is `once`, a query with an
invalid parameter is sent with one choice of the others, and not with each optional parameter in turn.
DEFAULTED names the members of bodies with a default: null stands for an absent one, as dialects.py of the
venue's messages has it, though the document does not say so.
"""

# pyright: reportMissingImports=false
import os
from typing import Any

import schemathesis

STATUSES = open(os.environ["STATUSES"], "a", buffering=1)  # noqa: PTH123, SIM115 - for as long as the process lives
IS_ONCE = os.environ["EACH_FAULT"] == "once"
DEFAULTED = frozenset(os.environ["DEFAULTED"].split(","))
tried_faults: set[tuple[str, ...]] = set()


def filter_case(context: Any, case: Any) -> bool:
    """Whether Schemathesis sends a request."""
    phase, mode = case.meta.phase, case.meta.generation.mode.value
    if mode == "negative" and isinstance(case.body, dict):
        nulls = {name for name, value in case.body.items() if value is None}
        if nulls & DEFAULTED:
            return False
    if not IS_ONCE or (phase.name.value, mode) != ("coverage", "negative"):
        return True
    tried = phase.data
    if tried.parameter_location is None or tried.parameter_location.value != "query":
        return True
    value = (case.query or {}).get(tried.parameter)
    fault = tuple(map(repr, (case.operation.label, tried.scenario, tried.parameter, value)))
    is_new = fault not in tried_faults
    tried_faults.add(fault)
    return is_new


def after_call(context: Any, case: Any, response: Any) -> None:
    """Record an answer."""
    STATUSES.write(f"{case.operation.label} {response.status_code}\n")


for hook in (filter_case, after_call):
    schemathesis.hook(hook)
