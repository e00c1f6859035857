"""The files of deploy/ are well-formed, and name commands and files that exist."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from cambist.config.settings import parse_settings
from cambist.engine.dev import alert_rules, dashboards
from support.chain.devnet import cambist
from support.operators import operators_program
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")


def run(*command: str | Path, folder: Path = DEPLOY) -> str:
    """Output of a program that must succeed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_alert_rules_are_those_of_the_page_and_prometheus_takes_them() -> None:
    page = (ROOT / alert_rules.PAGE).read_text(encoding="utf-8")
    assert (ROOT / alert_rules.RULES).read_text(encoding="utf-8") == alert_rules.rules(page), "make catalogue"
    said = run(operators_program("promtool"), "check", "config", "prometheus/prometheus.yml")
    assert "17 rules found" in said


@pytest.mark.parametrize("name", dashboards.DASHBOARDS)
def test_a_dashboard_is_generated(name: str) -> None:
    committed = (ROOT / dashboards.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert committed == dashboards.dashboard(name), "make catalogue"


@pytest.mark.process
def test_an_alarm_fires_after_its_time_and_not_before(tmp_path: Path) -> None:
    """Prometheus itself evaluates two of the rules over given series."""
    (tmp_path / "alerts.yml").write_text((ROOT / alert_rules.RULES).read_text(encoding="utf-8"))
    (tmp_path / "rules_test.yml").write_text("""
rule_files: [alerts.yml]
evaluation_interval: 5s
tests:
  - interval: 5s
    input_series:
      - { series: 'cambist_maker_ready{instance="alpha:8081"}', values: "1 1 0x20" }
      - { series: 'cambist_feed_pairs{maker="beta",chain="1",standing="live"}', values: "2x10 0x40" }
    alert_rule_test:
      - { eval_time: 35s, alertname: MakerNotReady, exp_alerts: [] }
      - eval_time: 45s
        alertname: MakerNotReady
        exp_alerts: [{ exp_labels: { instance: "alpha:8081" }, exp_annotations: { summary:
          "the maker's /readyz has the reasons: no price, no funds, no node" } }]
      - { eval_time: 90s, alertname: MakerGone, exp_alerts: [] }
      - eval_time: 2m
        alertname: MakerGone
        exp_alerts: [{ exp_labels: { maker: beta, chain: "1" }, exp_annotations: { summary:
          "no pair of the maker is routed" } }]
""")
    run(operators_program("promtool"), "test", "rules", "rules_test.yml", folder=tmp_path)


@pytest.mark.process
def test_proxies_take_their_files(tmp_path: Path) -> None:
    caddy = operators_program("caddy")
    said = subprocess.run(
        [caddy, "validate", "--config", "proxy/Caddyfile"],
        cwd=DEPLOY, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={"HOME": str(tmp_path), "CAMBIST_SITE": ":8080", "CAMBIST_ENGINES": "127.0.0.1:8180"},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr


@pytest.mark.process
@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_a_unit_is_right_and_starts_a_command_that_exists(unit: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / unit).read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=/opt/cambist/bin/cambist (.+)$", text, re.MULTILINE)
    starts(command.split())
    program = tmp_path / "cambist"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    instance = tmp_path / unit.replace("@.", "@one.")
    instance.write_text(text.replace("/opt/cambist/bin/cambist", str(program)))
    run(operators_program("systemd-analyze"), "verify", "--man=no", instance, folder=tmp_path)


def starts(words: list[str]) -> None:
    """Assert that a command takes these words; its settings file may be elsewhere."""
    options = [word for word in words if word.startswith("--")]
    commands = words[: words.index(options[0])] if options else words
    said = run(*cambist(*commands, "--help", folder=ROOT), folder=ROOT)
    assert all(option in said for option in options), said


@pytest.mark.process
def test_compose_starts_commands_and_mounts_files_that_exist() -> None:
    commands = [json.loads(words) for words in re.findall(r"^ +command: (\[.*\])$", COMPOSE, re.MULTILINE)]
    assert len(commands) == 7
    for words in commands:
        starts(words)
    mounts = re.findall(r'"?(\./[\w./-]+):/', COMPOSE)
    assert {"./settings", "./proxy/Caddyfile", "./prometheus"} <= set(mounts)
    assert [path for path in set(mounts) - {"./secrets"} if not (DEPLOY / path).exists()] == []
    for path in re.findall(r"/etc/cambist/([\w.]+)", COMPOSE):
        assert path == "secrets" or (DEPLOY / "settings" / path).is_file()


def test_secrets_are_written_once_for_their_owner_alone(tmp_path: Path) -> None:
    kit = tmp_path / "deploy"
    kit.mkdir()
    (kit / "make-secrets").write_text((DEPLOY / "make-secrets").read_text(encoding="utf-8"))
    run("sh", "make-secrets", folder=kit)
    first = {path.name: path.read_text() for path in (kit / "secrets").iterdir()}
    assert {path.stat().st_mode & 0o777 for path in (kit / "secrets").iterdir()} == {0o600}
    run("sh", "make-secrets", folder=kit)
    assert {path.name: path.read_text() for path in (kit / "secrets").iterdir()} == first
    named = {
        name
        for path in (DEPLOY / "settings").glob("*.toml")
        for name in re.findall(r'"file:secrets/(\w+)"', path.read_text(encoding="utf-8"))
    }
    named |= set(re.findall(r"file: \./secrets/(\w+)", COMPOSE))
    assert named == set(first)
    for path in (DEPLOY / "settings").glob("*.toml"):
        (kit / path.name).write_text(path.read_text(encoding="utf-8"))
        parse_settings((kit / path.name).read_text(encoding="utf-8"), {}, kit)
