"""The kit of deploy/ at work: its settings, secrets, proxies, dashboards and alarms with real processes.

Addresses of the containers' network are replaced by ports of this machine, and nothing else.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.peers.ports import held_port, port_of
from bench.peers.postgres import postgres_programs
from msgspec import Struct
from msgspec.structs import replace

from cambist.client import BlockingVenue
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from support.chain.devnet import telling_process
from support.http_get import first_answer, http_get
from support.patience import PATIENCE_S, found_in_time
from support.programs import program
from support.promtool import holding, scrape

pytestmark = [pytest.mark.process, pytest.mark.seldom]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHAIN = 31_337
CAMBIST = (sys.executable, "-m", "cambist")
ROLES = {
    "alpha": ("maker", "serve"),
    "beta": ("maker", "serve"),
    "agent": ("agent", "serve"),
    "engine-1": ("serve",),
    "engine-2": ("serve",),
}
NAME = re.compile(r"\b((?:cambist|process)_\w+)")
LASTING = ("delta_order", "delta_document", "delta_fill", "order_event", "chain_tx")
FUNCTIONS_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


class Kit(Struct, frozen=True):
    """The running roles of the kit.

    Attributes:
        folder: the folder of the settings files is etc in it.
        node: URL of the play chain.
        ports: role -> (public port, inner port).
        keys: private keys of the chain's accounts.
        processes: the running process of each role.
        shared_s: seconds from the start of both engines until they shared the shards evenly.
    """

    folder: Path
    node: str
    ports: dict[str, tuple[int, int]]
    keys: list[str]
    processes: dict[str, subprocess.Popen[bytes]]
    shared_s: float = 0

    def start(self, role: str) -> None:
        """Start a role from its settings file."""
        with (self.folder / f"{role}.log").open("ab") as log:
            words = [*CAMBIST, *ROLES[role], "--config", str(self.folder / "etc" / f"{role}.toml")]
            self.processes[role] = subprocess.Popen(words, stderr=log, stdout=log)

    def inner(self, role: str, path: str) -> httpx.Response:
        """Ask a role at its inner listener."""
        return http_get(f"http://127.0.0.1:{self.ports[role][1]}{path}")


def localised(text: str, node: str, role: str, ports: dict[str, tuple[int, int]], folder: Path) -> str:
    """A settings file of the kit with this machine's addresses."""
    public, inner = ports[role]
    text = text.replace("http://chain:8545", node).replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
    for other in ("alpha", "beta", "agent"):
        text = text.replace(f"{other}:8080", f"127.0.0.1:{ports[other][0]}")
    text = text.replace("port = 8080", f"port = {public}").replace("port = 8081", f"port = {inner}")
    text = text.replace('"172.30.0.2"', '"127.0.0.1"')
    return text.replace('"/var/lib/cambist"', json.dumps(str(folder / f"state-{role}")))


def ready(kit: Kit, role: str) -> None:
    """Return once a role is ready."""
    url = f"http://127.0.0.1:{kit.ports[role][1]}/readyz"
    found_in_time(partial(first_answer, url), lambda answer: answer.status_code == 200)


def samples(kit: Kit, role: str) -> dict[str, float]:
    """Values of the metrics without labels that a role shows."""
    lines = [line for line in kit.inner(role, "/metrics").text.splitlines() if not {"#", "{"} & {*line}]
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines)}


@contextmanager
def running_kit(folder: Path, store_url: str) -> Iterator[Kit]:
    shutil.copytree(DEPLOY, folder / "deploy", ignore=shutil.ignore_patterns("secrets", ".env"))
    subprocess.run([folder / "deploy" / "make-secrets"], check=True, timeout=PATIENCE_S)
    settings = folder / "etc"
    shutil.copytree(folder / "deploy" / "secrets", settings / "secrets")
    (settings / "secrets" / "store_url").write_text(store_url)
    with ExitStack() as owned:
        told = owned.enter_context(telling_process("devnet", "--port", "0", folder=folder)).told
        node = told["chains"][0]["http"]
        ports = {
            role: (
                port_of(owned.enter_context(held_port())),
                port_of(owned.enter_context(held_port())),
            )
            for role in ROLES
        }
        kit = Kit(folder, node, ports, [account["key"] for account in told["accounts"]], {})
        owned.callback(kill_all, kit.processes)
        for role, command in ROLES.items():
            name = "venue" if role.startswith("engine") else role
            text = (DEPLOY / "settings" / f"{name}.toml").read_text(encoding="utf-8")
            path = settings / f"{role}.toml"
            path.write_text(localised(text, node, role, ports, folder), encoding="utf-8")
            if command[0] == "maker":
                words = [*CAMBIST, "maker", "approve", "--yes", "--config", str(path)]
                subprocess.run(words, check=True, timeout=PATIENCE_S, capture_output=True)
            kit.start(role)
        began = time.monotonic()
        for role in ROLES:
            ready(kit, role)
        for role in ("engine-1", "engine-2"):
            shares(kit, role, 128)
        yield replace(kit, shared_s=time.monotonic() - began)


def kill_all(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """Kill every role."""
    for process in processes.values():
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory, postgres_server: Any) -> Iterator[Kit]:
    url = postgres_server.migrated_database()
    with running_kit(tmp_path_factory.mktemp("kit"), url) as running:
        yield running
    postgres_server.drop(url)


def every_metric(kit: Kit) -> set[str]:
    """Names of all metrics that the roles show."""
    return {
        name
        for role in ROLES
        for line in kit.inner(role, "/metrics").text.splitlines()
        if line.startswith("# TYPE ")
        for name in metric_names(*line.split()[2:4])
    }


def metric_names(name: str, kind: str) -> set[str]:
    return {name + end for end in FUNCTIONS_OF_HISTOGRAMS} if kind == "histogram" else {name}


def trade(url: str, kit: Kit, account: int) -> str:
    """Swap, and settle an order, through a venue's URL; returns the order's id."""
    with BlockingVenue.open(url, CHAIN, rpc=kit.node) as venue:
        key = kit.keys[account]
        assert venue.swap("WETH", "WBTC", 2, key=key, slippage_bps=200).received.whole > 0
        end = venue.follow(venue.order("WETH", "USDC", 1, key=key))
        assert end.is_settled, end.reason
        return end.id


def test_every_role_is_ready_and_both_engines_share_the_orders(kit: Kit) -> None:
    assert kit.shared_s < PATIENCE_S
    assert [samples(kit, role)["cambist_delta_engines"] for role in ("engine-1", "engine-2")] == [2, 2]


def test_traders_trade_at_either_engine_and_each_shows_the_others_orders(kit: Kit) -> None:
    urls = [f"http://127.0.0.1:{kit.ports[role][0]}" for role in ("engine-1", "engine-2")]
    ids = [trade(url, kit, 4) for url in urls]
    for url in urls:
        for name in ids:
            answer = http_get(f"{url}/v2/delta/orders/{name}")
            assert (answer.status_code, answer.json()["status"]) == (200, "COMPLETED")


def test_dashboards_and_alarms_name_metrics_that_the_roles_show(kit: Kit) -> None:
    shown = every_metric(kit)
    named = {}
    for path in (DEPLOY / "grafana" / "dashboards").iterdir():
        panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
        named[path.name] = {
            name for panel in panels for target in panel["targets"] for name in NAME.findall(target["expr"])
        }
    alarms = (DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    named["alerts.yml"] = set(NAME.findall(" ".join(re.findall(r"expr: (.*)", alarms))))
    assert {name: sorted(names - shown) for name, names in named.items() if names - shown} == {}


@contextmanager
def prometheus(kit: Kit, folder: Path) -> Iterator[str]:
    """Prometheus with the kit's file, which scrapes more often here."""
    shutil.copytree(DEPLOY / "prometheus", folder / "prometheus")
    text = (folder / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    for role in ROLES:
        text = text.replace(f'"{role}:8081"', f'"127.0.0.1:{kit.ports[role][1]}"')
    text = re.sub(r"_interval: 5s", "_interval: 200ms", text)
    (folder / "prometheus" / "prometheus.yml").write_text(text, encoding="utf-8")
    with held_port() as held:
        process = subprocess.Popen(
            [
                program("prometheus"), f"--config.file={folder}/prometheus/prometheus.yml",
                f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port_of(held)}",
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port_of(held)}/api/v1"
        finally:
            process.terminate()
            process.wait()


def asked(url: str, **query: str) -> Any:
    """Data of Prometheus' answer; None while it does not listen yet."""
    try:
        answer = http_get(url, **query)
    except httpx.ConnectError:
        return None
    return (
        answer.json().get("data") if answer.status_code in (200, 503) and answer.content[:1] == b"{" else None
    )


@pytest.mark.needs("prometheus")
def test_prometheus_scrapes_every_role_and_has_a_series_for_every_panel(kit: Kit, tmp_path: Path) -> None:
    lines = [
        (path.stem, target["expr"], target["legendFormat"])
        for path in sorted((DEPLOY / "grafana" / "dashboards").iterdir())
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        for target in panel["targets"]
    ]
    engine = f"http://127.0.0.1:{kit.ports['engine-1'][0]}"
    trade(engine, kit, 7)  # a counter with labels has no series before it counts
    with BlockingVenue.open(engine, CHAIN, rpc=kit.node) as venue:
        venue.otc("WETH", "USDC", 1, price=2_500, key=kit.keys[7])
    with prometheus(kit, tmp_path) as url:
        found_in_time(lambda: missing_panels(url, lines), lambda missing: not missing)
        found_in_time(lambda: healths(url), lambda found: found == ["up"] * len(ROLES))
        rules = [rule for group in asked(f"{url}/rules")["groups"] for rule in group["rules"]]
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
        assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def missing_panels(url: str, lines: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Panels without a series that has the labels of their legend."""
    found = [asked(f"{url}/query", query=expression) for _, expression, _ in lines]
    return [
        line
        for line, data in zip(lines, found, strict=True)
        if not data or not any(series_fits(each["metric"], line[2]) for each in data["result"])
    ]


def healths(url: str) -> list[str]:
    """Health of each target of Prometheus: a single scrape within 200 ms may come too late."""
    return [target["health"] for target in asked(f"{url}/targets")["activeTargets"]]


def series_fits(labels: dict[str, str], legend: str) -> bool:
    """Whether a series has every label that a legend names."""
    return set(re.findall(r"{{(\w+)}}", legend)) <= labels.keys()


@contextmanager
def nginx(ports: tuple[int, int], folder: Path) -> Iterator[str]:
    held = held_port()
    with held:
        text = (DEPLOY / "proxy" / "nginx.conf").read_text(encoding="utf-8")
        text = re.sub(r"listen 443 ssl http2;", f"listen 127.0.0.1:{port_of(held)};", text)
        text = re.sub(r"\n    ssl_certificate.*;", "", text)
        for shown, port in zip((8180, 8181), ports, strict=True):
            text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{port}")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        whole = f"daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\n"
        whole += f"http {{ access_log off; {paths}\n{text} }}"
        (folder / "nginx.conf").write_text(whole, encoding="utf-8")
        process = subprocess.Popen(
            [program("nginx"), "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL
        )
        try:
            yield f"http://127.0.0.1:{port_of(held)}"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def caddy(ports: tuple[int, int], folder: Path) -> Iterator[str]:
    held = held_port()
    with held:
        site = f"http://127.0.0.1:{port_of(held)}"
        engines = " ".join(f"127.0.0.1:{port}" for port in ports)
        process = subprocess.Popen(
            [program("caddy"), "run", "--config", DEPLOY / "proxy" / "Caddyfile"],
            env=os.environ | {"HOME": str(folder), "CAMBIST_SITE": site, "CAMBIST_ENGINES": engines},
            stderr=subprocess.DEVNULL,
        )
        try:
            yield site
        finally:
            process.terminate()
            process.wait()


PROXIES = pytest.mark.parametrize(
    "proxy",
    [pytest.param(each, id=each.__name__, marks=pytest.mark.needs(each.__name__)) for each in (nginx, caddy)],
)


def engines(kit: Kit) -> tuple[int, int]:
    """Ports of the two engines."""
    return kit.ports["engine-1"][0], kit.ports["engine-2"][0]


@contextmanager
def silent_port() -> Iterator[int]:
    """Port that answers no attempt to connect, like a machine that is gone."""
    with socket.socket() as listener, ExitStack() as owned:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # more than the queue of the listener holds
            waiting = owned.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@PROXIES
def test_an_engine_whose_machine_is_gone_costs_no_request(kit: Kit, tmp_path: Path, proxy: Any) -> None:
    with silent_port() as gone, proxy((gone, engines(kit)[1]), tmp_path) as url:
        answers = [
            first_answer(f"{url}/tokens/{CHAIN}"),
            *(http_get(f"{url}/chains") for _ in range(8)),
        ]
        assert [answer.status_code for answer in answers] == [200] * 9
        trade(url, kit, 5)


@PROXIES
def test_a_proxy_passes_trades_streams_and_sockets_and_hides_what_is_inner(
    kit: Kit, tmp_path: Path, proxy: Any
) -> None:
    with proxy(engines(kit), tmp_path) as url:
        tokens = first_answer(f"{url}/tokens/{CHAIN}")
        assert tokens.status_code == 200
        for path in ("/metrics", "/readyz", "/healthz"):
            assert http_get(url + path).status_code == 404
        token = {each["symbol"]: each["address"] for each in tokens.json()["tokens"]}
        pair = f"srcToken={token['WETH']}&srcDecimals=18&destToken={token['USDC']}&destDecimals=6"
        wish = f"chainId={CHAIN}&{pair}&amount={10**18}&mode=MARKET"
        with httpx.stream("GET", f"{url}/v2/quote/stream?{wish}", timeout=PATIENCE_S) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: quote"  # at once: nothing waits for a full buffer
            assert next(lines).startswith("data: {")
        trade(url, kit, 5)  # follows its order over a WebSocket
        with BlockingVenue.open(url, CHAIN, rpc=kit.node) as venue:
            order = venue.order("WETH", "USDC", 1, key=kit.keys[5])
            with venue.watch(order) as records:
                assert [record.status.value for record in records][-1] == "COMPLETED"
        with httpx.Client(timeout=PATIENCE_S) as client:
            counted = [
                client.get(f"{url}/tokens/{CHAIN}", headers={"x-forwarded-for": f"10.0.0.{at}"}).headers
                for at in range(20)
            ]
        limit = int(counted[0]["ratelimit-limit"])
        left = min(int(each["ratelimit-remaining"]) for each in counted)
        assert left < limit - 1  # a caller cannot name itself anew: its bucket is that of its address


@pytest.mark.needs("nginx")
def test_engines_are_restarted_one_after_the_other_behind_a_proxy_while_traders_trade(
    kit: Kit, tmp_path: Path
) -> None:
    with nginx(engines(kit), tmp_path) as url:
        for role in ("engine-1", "engine-2"):
            kit.processes[role].terminate()
            assert kit.processes[role].wait(PATIENCE_S) == 0
            trade(url, kit, 6)
            kit.start(role)
            ready(kit, role)
            trade(url, kit, 6)
    for role in ("engine-1", "engine-2"):
        shares(kit, role, 128)


def shares(kit: Kit, role: str, shards: int) -> None:
    """Return once an engine holds so many shards."""
    found_in_time(partial(samples, kit, role), lambda found: found["cambist_delta_shards"] == shards)


def test_a_dump_of_the_database_is_restored_with_every_order(
    kit: Kit, tmp_path: Path, postgres_server: Any
) -> None:
    url, restored = (kit.folder / "etc/secrets/store_url").read_text(), postgres_server.empty_database()
    programs = postgres_programs()
    assert programs is not None
    engine = f"http://127.0.0.1:{kit.ports['engine-1'][0]}"
    traded = {trade(engine, kit, 6), trade(engine, kit, 6)}
    dump = tmp_path / "orders.dump"
    before = lasting_rows(url, tmp_path)
    for words in (
        ("pg_dump", "--format=custom", f"--file={dump}", url),
        ("pg_restore", "--no-owner", f"--dbname={restored}", dump),
    ):
        subprocess.run([programs / words[0], *words[1:]], check=True, timeout=PATIENCE_S)
    kept, after = lasting_rows(restored, tmp_path), lasting_rows(url, tmp_path)
    assert all(
        before[table] <= kept[table] <= after[table] for table in LASTING
    )  # the engines go on meanwhile
    assert kept["delta_order"] >= 2
    orders = completed(engine, kit)
    assert traded <= orders
    with engine_on(restored, kit) as another:
        assert completed(another, kit) == orders
    postgres_server.drop(restored)


def completed(url: str, kit: Kit) -> set[str]:
    """Ids of an account's completed orders, as a venue lists them."""
    owner = to_checksum(SigningKey(bytes.fromhex(kit.keys[6].removeprefix("0x"))).address)
    query = {"userAddress": owner, "status": "COMPLETED", "limit": "100"}
    answer = http_get(f"{url}/v2/delta/orders", **query)
    assert answer.status_code == 200, answer.text
    return {order["id"] for order in answer.json()["data"]}


@contextmanager
def engine_on(url: str, kit: Kit) -> Iterator[str]:
    """A further engine from the kit's settings, on a database of its own."""
    with held_port() as public, held_port() as inner:
        ports = {"engine-1": (port_of(public), port_of(inner))}
        text = (kit.folder / "etc" / "engine-1.toml").read_text(encoding="utf-8")
        for old, new in zip(kit.ports["engine-1"], ports["engine-1"], strict=True):
            text = text.replace(f"port = {old}\n", f"port = {new}\n")
        text = text.replace('"file:secrets/store_url"', json.dumps(url))
        text = text.replace("state-engine-1", "state-restored")
        (kit.folder / "etc" / "restored.toml").write_text(text, encoding="utf-8")
        further = replace(kit, ports=ports, processes={})
        try:
            with (kit.folder / "restored.log").open("ab") as log:
                words = [*CAMBIST, "serve", "--config", str(kit.folder / "etc" / "restored.toml")]
                further.processes["engine-1"] = subprocess.Popen(words, stderr=log, stdout=log)
            ready(further, "engine-1")
            yield f"http://127.0.0.1:{port_of(public)}"
        finally:
            kill_all(further.processes)


def lasting_rows(url: str, folder: Path) -> dict[str, int]:
    """Number of rows of each table that only grows, as `cambist db status` counts them."""
    settings = folder / "status.toml"
    settings.write_text(f'state_dir = "."\n[store]\nurl = "{url}"\n')
    done = subprocess.run(
        [*CAMBIST, "db", "status", "--json", "--config", settings],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["contents"]["rows"]
    return {table: rows[table] for table in LASTING}


def firing(kit: Kit, role: str) -> set[str]:
    """Alarms of makers and agents that hold in a role's metrics now."""
    rules = (DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    alarms = dict(re.findall(r'alert: (\w+)\n +expr: "((?:[^"\\]|\\.)*)"', rules))
    names = ("MakerNotReady", "MakerHalted", "AgentNotReady", "StrategyFaults")
    return holding({name: alarms[name] for name in names}, [scrape(kit.inner(role, "/metrics").text)] * 2)


@pytest.mark.needs("promtool")
def test_a_stopped_maker_and_its_agent_raise_their_alarms_and_are_well_again(kit: Kit) -> None:
    assert [firing(kit, role) for role in ("alpha", "beta", "agent")] == [set()] * 3
    for maker in ("alpha", "beta"):
        act(kit, maker, "halt")
    settled(kit, "alpha", {"MakerNotReady", "MakerHalted"})
    settled(kit, "agent", {"AgentNotReady"})
    for maker in ("alpha", "beta"):
        act(kit, maker, "resume")
    for role in ("alpha", "beta", "agent"):
        settled(kit, role, set())
    for role in ("engine-1", "engine-2"):  # other tests trade with both makers at once
        found_in_time(partial(routed, kit, role), {"alpha", "beta"}.issubset)


def routed(kit: Kit, role: str) -> set[str]:
    """Makers of which an engine routes a pair."""
    samples = scrape(kit.inner(role, "/metrics").text).items()
    pairs = [(dict(labels), count) for (name, labels), count in samples if name == "cambist_feed_pairs"]
    return {labels["maker"] for labels, count in pairs if labels["standing"] == "live" and count}


def act(kit: Kit, maker: str, command: str) -> None:
    """Use a maker's kill switch by the command."""
    path = kit.folder / "etc" / f"{maker}.toml"
    words = [*CAMBIST, "maker", command, "all", "--config", str(path)]
    subprocess.run(words, check=True, timeout=PATIENCE_S, capture_output=True)


def settled(kit: Kit, role: str, alarms: set[str]) -> None:
    """Return once just these alarms hold."""
    found_in_time(partial(firing, kit, role), lambda found: found == alarms)
