"""The page of deploy/ as an operator follows it, in containers: `make test-kit`.

KIT_WITHOUT names services whose images this machine does not get, such as "grafana"; all others are healthy.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cambist.client import BlockingVenue
from support.chain.devnet import KEYS
from support.patience import PATIENCE_S
from support.programs import program
from support.tracked_files import tracked_files

pytestmark = [pytest.mark.process, pytest.mark.long]
ROOT = Path(__file__).parents[2]
URL = "http://127.0.0.1:8080"
NODE = "http://127.0.0.1:8545"
CHAIN = 31_337
BUILD_S = 900
"""Bound of a build with all its downloads."""
BARE = os.environ.get("KIT_BARE_IMAGE", "debian:bookworm-slim")
"""Image of a machine without Python, make or a checkout."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PACKAGES_S, CONSOLE_S = 300, 120
"""Bounds of the packages that README.md asks for, and of one command until the console answers."""
UP = """
(make up > /up.log 2>&1 || touch /failed) &
until python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8080/", timeout=3)' 2>/dev/null; do
  test ! -e /failed || { cat /up.log; exit 1; }
  sleep 0.1
done
"""


class Compose:
    """`docker compose` in a copy of deploy/, as an account without other rights runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = re.findall(
            r"^```text\n(cd deploy\n.*?)^```",
            (ROOT / "deploy/README.md").read_text(),
            re.MULTILINE | re.DOTALL,
        )

    def __call__(self, *words: str, timeout: float = PATIENCE_S) -> str:
        """Run `docker compose` with words; returns its output."""
        return self.shell(" ".join(["docker compose", *words]), timeout)

    def shell(self, text: str, timeout: float = PATIENCE_S) -> str:
        """Run a line of the shell in the folder; returns its output."""
        done = subprocess.run(
            text, shell=True, cwd=self.folder, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def services(self) -> list[str]:
        """Names of the services that this machine can run."""
        return [
            name for name in self("config", "--services").split()
            if name not in os.environ.get("KIT_WITHOUT", "").split()
        ]  # fmt: skip

    def states(self) -> dict[str, tuple[str, str, int]]:
        """State, health and exit status of each service's container."""
        rows = [json.loads(line) for line in self("ps", "--all", "--format", "json").splitlines()]
        return {row["Service"]: (row["State"], row["Health"], row["ExitCode"]) for row in rows}


def run(*words: str, timeout: float = PATIENCE_S) -> str:
    """Run a program that must succeed; returns its output."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is tracked."""
    program("docker")
    copy: Path = tmp_path_factory.mktemp("checkout")
    for path in tracked_files():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def kit(checkout: Path) -> Iterator[Compose]:
    compose = Compose(checkout / "deploy")
    (printed,) = compose.lines
    _, secrets, up = (line.partition("#")[0].strip() for line in printed.splitlines())
    compose.shell(secrets)
    try:
        compose.shell(f"{up} {' '.join(compose.services())}", BUILD_S)
        yield compose
    finally:
        subprocess.run(
            ["docker", "compose", "down", "--volumes"], cwd=compose.folder, check=False, capture_output=True
        )


def trade(account: int) -> str:
    """Swap, and settle an order, through the kit's proxy; returns the order's id."""
    with BlockingVenue.open(URL, CHAIN, rpc=NODE) as venue:
        assert venue.swap("WETH", "WBTC", 2, key=KEYS[account], slippage_bps=200).received.whole > 0
        end = venue.follow(venue.order("WETH", "USDC", 1, key=KEYS[account]))
        assert end.is_settled, end.reason
        return end.id


def inside(kit: Compose, query: str) -> Any:
    """Data of a path of Prometheus' API, asked within its container."""
    said = kit("exec", "--no-TTY", "prometheus", "wget", "-qO-", f"http://127.0.0.1:9090/api/v1/{query}")
    return json.loads(said)["data"]


def test_the_commands_of_the_page_leave_every_service_healthy(kit: Compose) -> None:
    states = kit.states()
    assert sorted(states) == sorted(kit.services())
    once = {"alpha-approves", "beta-approves"}
    assert {name: state for name, state in states.items() if name in once} == dict.fromkeys(
        once, ("exited", "", 0)
    )
    assert {state for name, state in states.items() if name not in once} == {("running", "healthy", 0)}


def test_a_trader_trades_through_the_proxy_and_the_console_is_there(kit: Compose) -> None:
    name = trade(5)
    assert httpx.get(f"{URL}/v2/delta/orders/{name}", timeout=PATIENCE_S).json()["status"] == "COMPLETED"
    page = httpx.get(URL, timeout=PATIENCE_S)
    assert (page.status_code, "text/html" in page.headers["content-type"]) == (200, True)
    assert NODE in page.headers["content-security-policy"]
    assert [
        httpx.get(f"{URL}{path}", timeout=PATIENCE_S).status_code for path in ("/metrics", "/readyz")
    ] == [404] * 2


def test_no_container_of_ours_has_root_or_a_file_system_to_write(kit: Compose) -> None:
    for name in ("chain", "alpha", "beta", "agent", "engine-1", "engine-2"):
        looks = "id -u; touch /written 2>&1; ls /etc/cambist/secrets 2>&1; true"
        said = kit("exec", "--no-TTY", name, "sh", "-c", f"'{looks}'")
        assert not said.startswith("0\n"), name
        assert "Read-only file system" in said, name
        assert ("operator_key" in said) == name.startswith("engine"), name


def test_prometheus_scrapes_every_role_and_knows_every_alarm(kit: Compose) -> None:
    targets = inside(kit, "targets")["activeTargets"]
    assert {re.sub(r"http://(.+):.*", r"\1", each["scrapeUrl"]) for each in targets} == {
        "alpha", "beta", "agent", "engine-1", "engine-2"
    }  # fmt: skip
    assert {(each["health"], each["lastError"]) for each in targets} == {("up", "")}
    rules = [rule for group in inside(kit, "rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(re.findall(r"- alert:", (ROOT / "deploy/prometheus/alerts.yml").read_text()))


def test_a_killed_engine_leaves_the_venue_trading_and_comes_back(kit: Compose) -> None:
    kit("kill", "--signal", "KILL", "engine-1")
    assert trade(6)
    kit("up", "--wait", "--no-deps", "engine-1")
    assert trade(7)


def test_without_the_play_profile_no_chain_is_part_of_the_kit(kit: Compose) -> None:
    said = kit.shell("COMPOSE_PROFILES= docker compose config --services").split()
    assert {"engine-1", "engine-2", "alpha", "beta", "agent", "postgres", "proxy"} <= set(said)
    assert not {"chain", "alpha-approves", "beta-approves"} & set(said)


def test_a_bare_machine_has_a_console_by_one_command_within_two_minutes(checkout: Path) -> None:
    """README.md asks for Python and make; the command makes its environment from the registry."""
    shared = (f"{checkout}:/checkout:ro", f"{CERTIFICATES}:{CERTIFICATES}.host:ro")
    variables = [f"{name}={CERTIFICATES}.host" for name in ("SSL_CERT_FILE", "PIP_CERT")]
    machine = run(
        "docker", "run", "--detach", "--rm", *(word for each in shared for word in ("--volume", each)),
        *(word for each in variables for word in ("--env", each)), BARE, "sleep", "infinity",
    ).strip()  # fmt: skip
    try:
        packages = (
            "apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv make"
        )
        inside = ("docker", "exec", machine, "bash", "-c")
        run(*inside, f"{packages} && cp -r /checkout ~/cambist", timeout=PACKAGES_S)
        run(*inside, f"cd ~/cambist\n{UP}", timeout=CONSOLE_S)
    finally:
        run("docker", "kill", machine)
