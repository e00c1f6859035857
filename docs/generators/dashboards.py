"""Generator of the Grafana dashboards in deploy/grafana/dashboards, one table of panels for each.

`make catalogue` writes the files; a test fails while a committed file differs from the generated one, and
another scrapes running roles for every metric of the panels.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

FOLDER = "deploy/grafana/dashboards"
_ROOT = Path(__file__).resolve().parents[2]
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3


class Panel(Struct, frozen=True):
    """A chart of a dashboard.

    Attributes:
        unit: Grafana's name of the unit, such as `s` or `short`.
        lines: expressions of Prometheus, each with the legend of its series.
    """

    title: str
    unit: str
    lines: Sequence[tuple[str, str]]


def _quantile(share: float, name: str) -> str:
    return f"histogram_quantile({share}, rate({name}_bucket[1m]))"


def _quantiles(name: str) -> list[tuple[str, str]]:
    """Lines of the median and the 99th percentile of a histogram of seconds, of each process."""
    return [
        (_quantile(share, name), f"{label} {{{{instance}}}}")
        for share, label in ((0.5, "p50"), (0.99, "p99"))
    ]


_REQUESTS = (
    Panel("Latency of requests, 99th percentile", "s", [
        (_quantile(0.99, "cambist_request_seconds"), "{{route}} {{instance}}"),
    ]),
)  # fmt: skip
_PROCESS = (
    Panel("Event loop lag", "s", _quantiles("cambist_loop_lag_seconds")),
    Panel("CPU", "percentunit", [("rate(process_cpu_seconds_total[1m])", "{{instance}}")]),
    Panel("Memory", "bytes", [("process_resident_memory_bytes", "{{instance}}")]),
)
_FEEDS = (
    Panel("Pairs by standing", "short", [
        ("sum by (maker, chain, standing) (cambist_feed_pairs)", "{{maker}} {{chain}} {{standing}}"),
    ]),
)  # fmt: skip

DASHBOARDS: Mapping[str, tuple[str, Sequence[Panel]]] = {
    "venue": ("cambist venue", (
        Panel("Ready", "short", [
            ("cambist_ready", "{{instance}}"),
            ("cambist_store_away", "store away {{instance}}"),
        ]),
        Panel("Requests a second", "reqps", [
            ("rate(cambist_server_requests_total[1m])", "{{instance}}"),
            ("rate(cambist_server_errors_total[1m])", "errors {{instance}}"),
        ]),
        Panel("Quotes a second by outcome", "reqps", [
            ("sum by (mode, outcome) (rate(cambist_quotes_total[1m]))", "{{mode}} {{outcome}}"),
        ]),
        *_REQUESTS,
        *_FEEDS,
        Panel("Firm quotes a second by outcome", "reqps", [
            ("sum by (maker, outcome) (rate(cambist_firm_quotes_total[1m]))", "{{maker}} {{outcome}}"),
        ]),
        Panel("Latency of firm quotes, 99th percentile", "s", [
            (_quantile(0.99, "cambist_firm_quote_seconds"), "{{maker}} {{chain}} {{instance}}"),
        ]),
        Panel("Delta orders by status", "short", [("sum by (status) (cambist_delta_orders)", "{{status}}")]),
        Panel("OTC orders by status", "short", [("sum by (status) (cambist_otc_orders)", "{{status}}")]),
        Panel("Auction rounds a second", "reqps", [
            ("sum by (chain) (rate(cambist_delta_rounds_total[1m]))", "{{chain}}"),
            ("sum by (chain) (rate(cambist_delta_rounds_void_total[1m]))", "void {{chain}}"),
        ]),
        Panel("Agents' failed questions a second", "reqps", [
            (
                "sum by (agent, whose) (rate(cambist_delta_agent_questions_failed_total[1m]))",
                "{{agent}} {{whose}}",
            ),
        ]),
        Panel("Shards of each engine", "short", [("cambist_delta_shards", "{{instance}}")]),
        Panel("Commit time", "s", _quantiles("cambist_store_commit_seconds")),
        Panel("Refused for their rate a second", "reqps", [
            ("sum by (tier) (rate(cambist_rate_limited_total[1m]))", "{{tier}}"),
        ]),
        *_PROCESS,
    )),
    "maker": ("cambist maker", (
        Panel("Ready", "short", [
            ("cambist_maker_ready", "{{instance}}"),
            ("cambist_maker_halted", "halted {{instance}} {{chain}}"),
        ]),
        Panel("Firm quotes a second by outcome", "reqps", [
            ("rate(cambist_maker_quotes_total[1m])", "{{instance}} {{outcome}}"),
        ]),
        Panel("Live firm quotes", "short", [("cambist_maker_live_quotes", "{{instance}} {{chain}}")]),
        Panel("Funds", "short", [("cambist_maker_funds", "{{instance}} {{token}}")]),
        Panel("Reserved by live quotes", "short", [("cambist_maker_reserved", "{{instance}} {{token}}")]),
        Panel("Pairs with a fresh price", "short", [("cambist_maker_pair_fresh", "{{instance}} {{pair}}")]),
        Panel("Grids of the price source a second", "reqps", [
            ("rate(cambist_maker_prices_total[1m])", "{{instance}} {{outcome}}"),
            ("rate(cambist_maker_source_restarts_total[1m])", "restarts {{instance}}"),
        ]),
        Panel("Open price sockets", "short", [("cambist_maker_consumers", "{{instance}}")]),
        Panel("Requests a second", "reqps", [("rate(cambist_server_requests_total[1m])", "{{instance}}")]),
        *_REQUESTS,
        *_PROCESS,
    )),
    "agent": ("cambist agent", (
        Panel("Ready", "short", [("cambist_agent_ready", "{{instance}}")]),
        Panel("Rounds, orders and bids a second", "reqps", [
            ("rate(cambist_agent_rounds_total[1m])", "rounds {{instance}}"),
            ("rate(cambist_agent_orders_total[1m])", "orders {{instance}}"),
            ("rate(cambist_agent_bids_total[1m])", "bids {{instance}}"),
        ]),
        Panel("Notices of the venue a second", "reqps", [
            ("sum by (notice) (rate(cambist_agent_notices_total[1m]))", "{{notice}}"),
        ]),
        Panel("Late rounds and faults of strategies", "short", [
            ("increase(cambist_agent_late_total[5m])", "late {{instance}}"),
            ("increase(cambist_agent_strategy_faults_total[5m])", "{{strategy}}"),
        ]),
        *_FEEDS,
        *_PROCESS,
    )),
    "relayer": ("cambist relayer", (
        Panel("Balance", "short", [("cambist_delta_relayer_balance_wei / 1e18", "chain {{chain}}")]),
        Panel("Relaying engine", "short", [("cambist_delta_relayer_holds", "{{instance}} {{chain}}")]),
        Panel("Starved", "short", [("cambist_delta_relayer_starved", "chain {{chain}}")]),
        Panel("Intents and transactions", "short", [
            ("cambist_delta_relayer_waiting", "waiting {{chain}}"),
            ("cambist_delta_relayer_pending", "pending {{chain}}"),
            ("cambist_delta_relayer_stuck", "stuck {{chain}}"),
            ("cambist_delta_relayer_at_cap", "at the fee cap {{chain}}"),
        ]),
        Panel("Transactions a minute by outcome", "short", [
            ("sum by (what) (increase(cambist_delta_relayer_transactions_total[1m]))", "{{what}}"),
        ]),
        Panel("Settlements a minute by outcome", "short", [
            ("sum by (outcome) (increase(cambist_delta_settlements_total[1m]))", "{{outcome}}"),
        ]),
        Panel("Settlements under way", "short", [("cambist_delta_settlements_under_way", "chain {{chain}}")]),
        Panel("Blocks that the index is behind", "short", [
            ("cambist_chain_head - cambist_delta_indexed_block", "{{instance}} {{chain}}"),
        ]),
        Panel("Re-organisations", "short", [
            ("cambist_delta_reorganisations_total", "{{instance}} {{chain}}"),
        ]),
    )),
}  # fmt: skip


def dashboard(name: str) -> str:
    """A dashboard as JSON that Grafana provisions."""
    title, panels = DASHBOARDS[name]
    told = {
        "uid": f"cambist-{name}",
        "title": title,
        "tags": ["cambist"],
        "timezone": "browser",
        "refresh": "10s",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "panels": [_panel(at, panel) for at, panel in enumerate(panels)],
    }
    return json.dumps(told, indent=1) + "\n"


def _panel(at: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": at + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "prometheus"},
        "gridPos": {
            "x": at % _COLUMNS * _WIDTH,
            "y": at // _COLUMNS * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend}
            for number, (expression, legend) in enumerate(panel.lines)
        ],
    }


def _write() -> None:
    for name in DASHBOARDS:
        (_ROOT / FOLDER / f"{name}.json").write_text(dashboard(name), encoding="utf-8")


if __name__ == "__main__":
    _write()
