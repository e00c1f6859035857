"""The files of deploy/ are well-formed, and name commands and files that exist."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from docs.generators import alert_rules, dashboards

from cambist.config.settings import parse_settings
from support.chain.devnet import cambist
from support.patience import PATIENCE_S
from support.programs import program
from support.server.server_harness import make_certificate

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


def test_the_alert_rules_are_those_of_the_page() -> None:
    page = (ROOT / alert_rules.PAGE).read_text(encoding="utf-8")
    assert (ROOT / alert_rules.RULES).read_text(encoding="utf-8") == alert_rules.rules(page), "make catalogue"


@pytest.mark.process
@pytest.mark.needs("promtool")
def test_prometheus_takes_its_file_and_the_rules() -> None:
    said = run(program("promtool"), "check", "config", "prometheus/prometheus.yml")
    assert "17 rules found" in said


@pytest.mark.parametrize("name", dashboards.DASHBOARDS)
def test_a_dashboard_is_generated(name: str) -> None:
    committed = (ROOT / dashboards.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert committed == dashboards.dashboard(name), "make catalogue"


@pytest.mark.process
@pytest.mark.needs("promtool")
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
    run(program("promtool"), "test", "rules", "rules_test.yml", folder=tmp_path)


@pytest.mark.process
@pytest.mark.needs("caddy")
def test_caddy_takes_its_file(tmp_path: Path) -> None:
    said = subprocess.run(
        [program("caddy"), "validate", "--config", "proxy/Caddyfile"],
        cwd=DEPLOY, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={"HOME": str(tmp_path), "CAMBIST_SITE": ":8080", "CAMBIST_ENGINES": "127.0.0.1:8180"},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr


@pytest.mark.process
@pytest.mark.needs("nginx")
def test_nginx_takes_its_file_with_a_certificate(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    text = (DEPLOY / "proxy" / "nginx.conf").read_text(encoding="utf-8")
    text = text.replace("/etc/ssl/venue.example/fullchain.pem", certificate)
    text = text.replace("/etc/ssl/venue.example/privkey.pem", key)
    assert "/etc/ssl" not in text
    paths = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"pid {tmp_path}/pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off; {paths}\n{text} }}"
    (tmp_path / "nginx.conf").write_text(whole, encoding="utf-8")
    run(program("nginx"), "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf")


def test_logs_of_every_unit_are_shipped() -> None:
    vector = tomllib.loads((DEPLOY / "logs" / "vector.toml").read_text(encoding="utf-8"))
    shipped = {name.partition("@")[0] for name in vector["sources"]["journal"]["include_units"]}
    assert shipped == {path.stem.rstrip("@") for path in (DEPLOY / "systemd").iterdir()}
    steps = {**vector["sources"], **vector["transforms"]}
    for step in (*vector["transforms"].values(), *vector["sinks"].values()):
        assert set(step["inputs"]) <= set(steps)


@pytest.mark.process
@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_a_unit_is_right_and_starts_a_command_that_exists(unit: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / unit).read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/opt/cambist/bin/cambist (.+)$", text, re.MULTILINE)
    starts(line.split())
    command = tmp_path / "cambist"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    instance = tmp_path / unit.replace("@.", "@one.")
    instance.write_text(text.replace("/opt/cambist/bin/cambist", str(command)))
    systemd = program("systemd-analyze")
    run(systemd, "verify", "--man=no", instance, folder=tmp_path)
    # The exposure is at most 2.0 of 10.
    run(systemd, "security", "--offline=yes", "--threshold=20", instance, folder=tmp_path)


def starts(words: list[str]) -> None:
    """Assert that a command takes these words; its settings file may be elsewhere."""
    options = [word for word in words if word.startswith("--")]
    commands = words[: words.index(options[0])] if options else words
    said = run(*cambist(*commands, "--help", folder=ROOT), folder=ROOT)
    assert all(option in said for option in options), said


def test_secrets_are_written_once_for_their_owner_alone(tmp_path: Path) -> None:
    kit = tmp_path / "deploy"
    kit.mkdir()
    (kit / "make-secrets").write_text((DEPLOY / "make-secrets").read_text(encoding="utf-8"))
    run("sh", "make-secrets", folder=kit)
    first = {path.name: path.read_text() for path in (kit / "secrets").iterdir()}
    assert {path.stat().st_mode & 0o777 for path in (kit / "secrets").iterdir()} == {0o600}
    account = (kit / "secrets").stat().st_uid
    assert account == (os.getuid() or 10_001)
    assert (kit / ".env").read_text() == f"CAMBIST_UID={account}\nCOMPOSE_PROFILES=play\n"
    (kit / ".env").write_text(f"CAMBIST_UID={account}\n")  # a real chain
    run("sh", "make-secrets", folder=kit)
    assert {path.name: path.read_text() for path in (kit / "secrets").iterdir()} == first
    assert (kit / ".env").read_text() == f"CAMBIST_UID={account}\n"
    named = {
        name
        for path in (DEPLOY / "settings").glob("*.toml")
        for name in re.findall(r'"file:secrets/(\w+)"', path.read_text(encoding="utf-8"))
    }
    named |= set(re.findall(r"file: \./secrets/(\w+)", COMPOSE))
    assert named == set(first)
    folders = {path.name: path.stat().st_mode & 0o777 for path in (kit / "state").iterdir()}
    assert set(folders.values()) == {0o700}
    for path in (DEPLOY / "settings").glob("*.toml"):
        (kit / path.name).write_text(path.read_text(encoding="utf-8"))
        parse_settings((kit / path.name).read_text(encoding="utf-8"), {}, kit)
