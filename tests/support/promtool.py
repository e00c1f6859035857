"""Which alarms hold over scrapes of metrics, by Prometheus' own evaluation (`promtool test rules`).

    scrapes = [scrape(first.text), scrape(second.text)]
    holding({"ServerErrors": 'increase(cambist_server_errors_total[5m]) > 0'}, scrapes)     {"ServerErrors"}

Source: prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from support.patience import PATIENCE_S
from support.programs import program

Scrape = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""Samples of a moment: (name, labels) -> value."""

_NAME = re.compile(r"\bcambist_\w+")
_ABSENT = "_"


def scrape(text: str) -> Scrape:
    """Samples of a page of metrics."""
    families = text_string_to_metric_families(text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def holding(alarms: Mapping[str, str], scrapes: Sequence[Scrape]) -> set[str]:
    """Names of the alarms that hold at the last scrape, whatever time they take to fire.

    Args:
        alarms: name -> expression.
        scrapes: at least two, taken as a second apart.
    """
    assert len(scrapes) >= 2
    rules = [{"alert": name, "expr": expression} for name, expression in alarms.items()]
    names = {name for text in alarms.values() for name in _NAME.findall(text)}
    now = f"{len(scrapes) - 1}s"
    tests = {
        "rule_files": ["alarms.json"],
        "evaluation_interval": "1s",
        "tests": [
            {
                "interval": "1s",
                "input_series": _series(names, scrapes),
                "alert_rule_test": [
                    {"eval_time": now, "alertname": name, "exp_alerts": []} for name in alarms
                ],
            }
        ],
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "alarms.json").write_text(json.dumps({"groups": [{"name": "alarms", "rules": rules}]}))
        (folder / "tests.json").write_text(json.dumps(tests))
        done = subprocess.run(
            [program("promtool"), "test", "rules", "tests.json"],
            cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    said = done.stdout + done.stderr
    unexpected = {*re.findall(r"alertname: (\w+),", said)}
    assert bool(unexpected) is bool(done.returncode), said
    return unexpected


def _series(names: set[str], scrapes: Sequence[Scrape]) -> list[dict[str, Any]]:
    """The series of metrics as promtool reads them: a value for each scrape, or a sign that there is none."""
    keys = {key for each in scrapes for key in each if key[0] in names}
    return [
        {
            "series": f"{name}{{{','.join(f'{label}={json.dumps(of)}' for label, of in sorted(labels))}}}",
            "values": " ".join(_value(each.get((name, labels))) for each in scrapes),
        }
        for name, labels in sorted(keys, key=str)
    ]


def _value(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.17g}"
