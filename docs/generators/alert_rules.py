"""Generator of deploy/prometheus/alerts.yml: the alarms of docs/guides/operations.md as rules of Prometheus.

`make catalogue` writes the file; a test fails while the committed file differs from the generated one.
"""

import json
import re
from pathlib import Path

PAGE = "docs/guides/operations.md"
RULES = "deploy/prometheus/alerts.yml"
_ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (\d+[smh]) \| (.+?) \|$", re.MULTILINE)


def rules(page: str) -> str:
    """The rules of all alarms in the text of docs/guides/operations.md, as YAML."""
    lines = [
        "# Generated from the alarms of docs/guides/operations.md by `make catalogue`.",
        "groups:",
        "  - name: cambist",
        "    rules:",
    ]
    for name, expression, lasting, meaning in _ROW.findall(page):
        lines += [
            f"      - alert: {name}",
            f"        expr: {json.dumps(expression)}",
            f"        for: {lasting}",
            "        annotations:",
            f"          summary: {json.dumps(meaning.replace('`', ''))}",
        ]
    return "\n".join(lines) + "\n"


def _write() -> None:
    page = (_ROOT / PAGE).read_text(encoding="utf-8")
    (_ROOT / RULES).write_text(rules(page), encoding="utf-8")


if __name__ == "__main__":
    _write()
