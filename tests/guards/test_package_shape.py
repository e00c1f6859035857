"""The shape of the package: links, import direction, files that may do I/O, sizes, forbidden words."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from support.tracked_files import ROOT, tracked_files

LAYERS = ("config", "crypto", "codecs", "feeds", "engine")
MAY_DO_IO: frozenset[str] = frozenset(
    {
        "engine/roles/agent/app.py",
        "engine/roles/agent/coincidence.py",
        "engine/roles/agent/firm_quotes.py",
        "engine/roles/agent/market.py",
        "engine/roles/agent/solver.py",
        "engine/dev/bridge/attester.py",
        "engine/dev/bridge/devnet_bridge.py",
        "engine/dev/bridge/followed_logs.py",
        "engine/dev/bridge/relayer.py",
        "engine/dev/devnet/anvil.py",
        "engine/dev/devnet/facade.py",
        "engine/dev/embedded/embedded.py",
        "engine/dev/embedded/kept.py",
        "engine/dev/place/roles.py",
        "engine/dev/place/up.py",
        "engine/chain/nodes/failover.py",
        "engine/chain/nodes/heads.py",
        "engine/chain/index/indexer.py",
        "engine/chain/nodes/json_rpc.py",
        "engine/chain/pulse.py",
        "engine/chain/together.py",
        "engine/chain/relay/relayer.py",
        "engine/chain/nodes/rpc.py",
        "engine/chain/transact.py",
        "engine/cli/agent.py",
        "engine/cli/contracts/contract_acts.py",
        "engine/cli/contracts/contracts.py",
        "engine/cli/db.py",
        "engine/cli/dev/demo.py",
        "engine/cli/dev/devnet.py",
        "engine/cli/dev/up.py",
        "engine/cli/offline/config_check.py",
        "engine/cli/maker_show.py",
        "engine/cli/offline/role_online.py",
        "engine/cli/maker.py",
        "engine/cli/trading.py",
        "engine/cli/serve.py",
        "engine/trader/conformance/probe.py",
        "engine/trader/conformance/run.py",
        "engine/trader/conformance/stages/stage_firm.py",
        "engine/trader/conformance/stages/stage_stream.py",
        "engine/dev/demo/orders.py",
        "engine/dev/demo/stage.py",
        "engine/host/process/interrupts.py",
        "engine/dev/devnet/moves.py",
        "engine/dev/devnet/node.py",
        "engine/dev/devnet/serve.py",
        "engine/store/follower.py",
        "engine/trade/events/hub.py",
        "engine/trade/events/subscription.py",
        "engine/trade/events/open_webhooks.py",
        "engine/trade/events/webhooks.py",
        "engine/roles/maker/app.py",
        "engine/roles/maker/feed.py",
        "engine/roles/maker/quoting/funds.py",
        "engine/roles/maker/prices/random_walk.py",
        "engine/roles/maker/prices/replay.py",
        "engine/roles/maker/prices/static.py",
        "engine/roles/maker/serve.py",
        "engine/roles/maker/stream.py",
        "engine/roles/maker/quoting/takers.py",
        "engine/host/safety/kill_switch.py",
        "engine/trade/orders/scheduler.py",
        "engine/host/server/access_log.py",
        "engine/host/server/addresses.py",
        "engine/host/server/connection.py",
        "engine/host/server/listener.py",
        "engine/host/process/processes.py",
        "engine/host/server/pauses.py",
        "engine/host/server/reactor.py",
        "engine/host/process/running.py",
        "engine/host/server/streaming.py",
        "engine/host/server/turns.py",
        "engine/store/leases.py",
        "engine/store/process/line.py",
        "engine/store/process/open_store.py",
        "engine/store/process/process.py",
        "engine/store/process/process_link.py",
        "engine/store/retention.py",
        "engine/store/store.py",
        "engine/roles/telemetry/exposition.py",
        "engine/roles/telemetry/loop_lag.py",
        "engine/trade/events/event_streams.py",
        "engine/trade/quote/quote_streams.py",
        "engine/trade/orders/accounts_watch.py",
        "engine/roles/venue/app.py",
        "engine/trade/api/shared_answers.py",
        "engine/trade/served/asking.py",
        "engine/trade/served/open_bridges.py",
        "engine/trade/served/served_chain.py",
        "engine/trade/delta/bids/agent_client.py",
        "engine/trade/delta/auction/agents.py",
        "engine/trade/delta/auction/round_asking.py",
        "engine/trade/delta/auction/auction_queue.py",
        "engine/trade/delta/auction/auctioneer.py",
        "engine/trade/delta/engine.py",
        "engine/trade/delta/arriving/arrival_swaps.py",
        "engine/trade/delta/bridging/attester_client.py",
        "engine/trade/delta/bridge_desk.py",
        "engine/trade/delta/open_bridge_desk.py",
        "engine/trade/delta/bridging/bridge_rounds.py",
        "engine/trade/delta/bridging/courier.py",
        "engine/trade/delta/building/yield_watch.py",
        "engine/trade/delta/settlement/funds_watch.py",
        "engine/trade/quote/issued.py",
        "engine/trade/delta/open_delta.py",
        "engine/trade/delta/resting/price_watch.py",
        "engine/trade/delta/settlement/settling.py",
        "engine/trade/delta/auction/simulating.py",
        "engine/trade/delta/auction/slice_watch.py",
        "engine/trade/orders/live_rows.py",
        "engine/trade/orders/order_acts.py",
        "engine/trade/orders/order_engines.py",
        "engine/trade/tape/tape_follower.py",
        "engine/trade/tape/trade_streams.py",
        "engine/trade/otc/drafts.py",
        "engine/trade/otc/engine.py",
        "engine/trade/otc/funds_watch.py",
        "engine/trader/client/client.py",
        "engine/trader/client/order/order_cancelling.py",
        "engine/trader/client/public/asyncio_venue.py",
        "engine/trader/client/public/blocking.py",
        "engine/trader/client/public/delta_trading.py",
        "engine/trader/client/public/portal.py",
        "engine/trader/client/events.py",
        "engine/trader/client/following.py",
        "engine/trader/client/otc/otc_following.py",
        "engine/trader/client/swap/swapping.py",
        "engine/trade/market/transaction.py",
        "engine/trade/routing/gas_watch.py",
        "engine/trade/routing/makers.py",
        "engine/trade/routing/firm/firm_desk.py",
        "engine/trade/routing/firm/firm_scores.py",
        "engine/trade/routing/firm/fault_notices.py",
        "engine/trade/routing/firm/firm_proof.py",
        "feeds/bridges/lane_fees.py",
        "feeds/firm/firm_client.py",
        "feeds/transport/http_client.py",
        "feeds/transport/httpx_transport.py",
        "feeds/transport/signed_client.py",
        "feeds/transport/lean_stream.py",
        "feeds/transport/outward.py",
        "feeds/transport/streams.py",
        "feeds/transport/websocket.py",
        "feeds/transport/websocket_handshake.py",
        "feeds/transport/websocket_reader.py",
        "feeds/poll.py",
        "feeds/ticks.py",
        "feeds/slices.py",
        "feeds/stream.py",
        "feeds/supervisor.py",
    }
)
"""Files that may import trio, httpx, websockets or sockets. A new file is added here only on purpose."""
IO_MODULES = frozenset(
    {"trio", "httpx", "websockets", "socket", "ssl", "select", "selectors", "asyncio", "anyio"}
)

FUNCTION_LINES_MAX = 70
TOP_LEVEL = {
    *LAYERS, "bench", "tests", "docs", "deploy", "src", ".ci", "pyproject.toml", "README.md",
    "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "Makefile", ".gitignore",
}  # fmt: skip


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield path


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All statements, nested statements included; the contents of expressions are left out."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, ()))


@cache
def outline(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], list[tuple[int, str, int]]]:
    """The imports of a file, and its functions: line, name, lines without docstring and comments."""
    imports: list[ast.Import | ast.ImportFrom] = []
    functions = []
    text = path.read_text(encoding="utf-8")
    is_comment = [line.lstrip().startswith("#") for line in text.splitlines()]
    for node in statements(ast.parse(text).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
            if body and node.end_lineno:
                first, last = body[0].lineno, node.end_lineno
                functions.append((node.lineno, node.name, last - first - sum(is_comment[first:last])))
    return imports, functions


def assigned_callbacks(source: str, methods: Collection[str]) -> list[str]:
    """Statements that put a function into an attribute of an object other than `self`.

    Args:
        methods: names of methods; an attribute of one of these names counts as a function.
    """
    body = ast.parse(source).body
    functions = {one.name for one in statements(body) if isinstance(one, ast.FunctionDef)} - set(methods)
    return [
        ast.unparse(node)
        for node in statements(body)
        if isinstance(node, ast.Assign)
        and _is_function(node.value, functions, methods)
        and any(isinstance(one, ast.Attribute) and ast.unparse(one.value) != "self" for one in node.targets)
    ]


def _is_function(value: ast.expr, functions: Collection[str], methods: Collection[str]) -> bool:
    match value:
        case ast.Lambda() | ast.Call(func=ast.Name(id="partial")):
            return True
        case ast.Name(id=name):
            return name in functions
        case ast.Attribute(value=ast.Name(), attr=name):
            return name in methods
    return False


def method_names() -> set[str]:
    """Names of the methods of all classes of the package, without properties."""
    return {
        one.name
        for path in python_files(*LAYERS)
        for node in statements(ast.parse(path.read_text(encoding="utf-8")).body)
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("property" in ast.unparse(decorator) for decorator in one.decorator_list)
    }


def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Import statements of a file, at any depth."""
    return outline(path)[0]


def absolute_imports_of_ours(path: Path) -> Iterator[int]:
    """Line numbers of absolute imports of the package in a file."""
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("cambist"):
            yield node.lineno


@cache
def imported_modules(path: Path) -> list[tuple[str, int]]:
    """Absolute dotted names that a file imports, relative ones resolved, with their line numbers."""
    return [*_imported(path)]


def _imported(path: Path) -> Iterator[tuple[str, int]]:
    package = ["cambist", *path.relative_to(ROOT).parent.parts]
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node.lineno
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            for name in node.names:
                yield f"{module}.{name.name}", node.lineno


def test_five_links_lead_to_the_five_folders() -> None:
    package = ROOT / "src" / "cambist"
    links = {path.name: str(path.readlink()) for path in package.iterdir() if path.is_symlink()}
    assert links == {layer: f"../../{layer}" for layer in LAYERS}


def test_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} <= TOP_LEVEL


def test_each_folder_names_its_files_in_reading_order() -> None:
    for path in python_files(*LAYERS):
        if path.name != "__init__.py":
            continue
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        reading = re.search(r"^Reading order: (.*?)\.$", text, re.MULTILINE | re.DOTALL)
        assert reading, f"{path.relative_to(ROOT)} has no line that begins with `Reading order:`"
        assert "\nIn: " in text, path.relative_to(ROOT)
        assert " Out: " in text, path.relative_to(ROOT)
        listed = re.findall(r"`([a-z0-9_/]+)`", reading[1])
        files = {file.stem for file in path.parent.glob("*.py")} - {"__init__"}
        folders = {f"{folder.parent.name}/" for folder in path.parent.glob("*/__init__.py")}
        assert sorted(listed) == sorted(files | folders), path.relative_to(ROOT)


def test_only_listed_files_do_input_and_output() -> None:
    doing = {
        str(path.relative_to(ROOT))
        for path in python_files(*LAYERS)
        for name, _ in imported_modules(path)
        if name.split(".")[0] in IO_MODULES
    }
    assert doing == MAY_DO_IO


def test_inside_the_package_imports_are_relative() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in python_files(*LAYERS)
        for line in absolute_imports_of_ours(path)
    ]
    assert not wrong


def test_no_top_level_package_of_ours_is_imported() -> None:
    program = (
        "import sys, pkgutil, importlib, cambist\n"
        "for module in pkgutil.walk_packages(cambist.__path__, 'cambist.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        importlib.import_module(module.name)\n"
        "print(*sorted(set(sys.modules) & {'engine', 'config', 'crypto', 'feeds', 'bench', 'tests'}))\n"
        "print('stdlib' if 'site-packages' not in sys.modules['codecs'].__file__ else 'ours')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.splitlines() == ["", "stdlib"]


def test_no_function_has_grown_out_of_hand() -> None:
    long = []
    for path in python_files(*LAYERS, "bench", "tests"):
        for line, name, lines in outline(path)[1]:
            if lines >= FUNCTION_LINES_MAX:
                long.append(f"{path.relative_to(ROOT)}:{line} {name}")
    assert not long


@pytest.mark.parametrize(
    "statement",
    ["orders.changed = self.tend", "self.line.wake = lambda: 1", "a.b = partial(f, 1)", "a.b = f"],
)
def test_a_callback_assigned_into_another_object_is_seen(statement: str) -> None:
    assert assigned_callbacks(f"def f():\n    {statement}", {"tend"}) == [statement]
    assert not assigned_callbacks("def f():\n    self.tend = f\n    a.b = g\n    a.b = f(1)", {"tend"})


def test_no_callback_is_assigned_into_another_object() -> None:
    """Parts are whole when they are made: a part receives its callbacks in its constructor or by a method."""
    methods = method_names()
    found = {
        f"{path.relative_to(ROOT)}: {statement}"
        for path in python_files(*LAYERS)
        for statement in assigned_callbacks(path.read_text(encoding="utf-8"), methods)
    }
    assert not found


def test_make_takes_the_pythons_that_the_package_takes() -> None:
    makefile, project = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "pyproject.toml"))
    (least,) = re.findall(r"\(3, (\d+)\) <= sys\.version_info\[:2\] or", makefile)
    assert re.findall(r'^requires-python = ">=3\.(\d+)"$', project, re.MULTILINE) == [least]


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in python_files("tests") if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_unit_tests_of_the_embedded_chain_say_that_they_need_it() -> None:
    direct = re.compile(r"^from cambist\.engine\.dev\.embedded\.(?:embedded|evm) import (.+)", re.MULTILINE)
    named = {
        str(path.relative_to(ROOT / "tests"))
        for path in python_files("tests/unit")
        for names in direct.findall(path.read_text(encoding="utf-8"))
        if {"Evm", "EmbeddedChain"} & set(names.replace(",", " ").split())
    }
    marks = {name for name in named if 'mark.needs("pyrevm")' in (ROOT / "tests" / name).read_text("utf-8")}
    assert marks == named


def test_nothing_is_left_to_do_and_no_host_or_machine_is_named() -> None:
    words = re.compile(
        r"\b(?:T[O]DO|F[I]XME|X[X]X)\b|pypi[.]org|python[h]osted|npmjs[.](?:org|com)|/(?:root|home|work)[/]"
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".mjs", ".in", ""}
        and path.name != "LICENSE"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line)
    ]
    assert not found


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Functions of a file, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            found.update(f"{node.name}.{one.name}" for one in methods)
    return frozenset(found)


def served_routes() -> frozenset[str]:
    """Routes of a venue, as `test_every_endpoint_is_on_the_page` holds docs/guides/api.md, and of a maker."""
    table = (ROOT / "docs" / "guides" / "api.md").read_text(encoding="utf-8").split("| Endpoint | Cost |")[1]
    of_venue = re.findall(r"`((?:GET|POST) /[^`]*)`", table.split("\n\n")[0])
    maker = (ROOT / "engine" / "roles" / "maker" / "surface.py").read_text(encoding="utf-8")
    of_maker = re.findall(r'surface\.(?:plain|coroutine)\("(GET|POST)", "([^"]+)"', maker)
    return frozenset(of_venue) | {f"{method} {path}" for method, path in of_maker}


def faults_of_flows(text: str) -> list[str]:
    """Names in flows of ARCHITECTURE.md that are not in the code.

    A row's file has to define the row's functions. A method named elsewhere has to be in the package, and a
    route in a table of endpoints.
    """
    faults = []
    for path, names in re.findall(r"^\| `([a-z_/0-9]+\.py)` \| (`[^|]+`) \|", text, re.MULTILINE):
        there = defined_in(ROOT / path)
        faults += [f"{path} {name}" for name in re.findall("`([^`]+)`", names) if name not in there]
    sources = {path: path.read_text(encoding="utf-8") for path in python_files(*LAYERS)}
    for named in set(re.findall(r"`(_?[A-Z]\w+)\.(\w+)`", text)):
        classes = [path for path, source in sources.items() if f"class {named[0]}" in source]
        if not any(".".join(named) in defined_in(path) for path in classes):
            faults.append(".".join(named))
    routes = re.findall(r"\b(?:GET|POST) /[\w/{}-]*", text)
    return faults + [route for route in routes if route not in served_routes()]


def test_the_flows_of_the_architecture_name_functions_and_routes_that_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    flows = page.split("\n## Five flows\n")[1].split("\n## Decisions\n")[0]
    assert flows.count("\n| `") > 60
    assert faults_of_flows(flows) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "| `engine/trade/otc/endpoints.py` | `OtcEndpoints.post` | Decodes. |",
            "engine/trade/otc/endpoints.py OtcEndpoints.post",
        ),
        (
            "| `engine/trade/otc/endpoints.py` | `OtcEndpoints._post` | POST /ft/orders: decodes. |",
            "POST /ft/orders",
        ),
        ("### GET /v2/price: no await", "GET /v2/price"),
        ("The watchers are called (`DeltaEngine.attend`).", "DeltaEngine.attend"),
    ],
)
def test_a_function_or_route_of_no_flow_is_found(text: str, fault: str) -> None:
    assert fault in faults_of_flows(text)


def test_the_architecture_names_files_by_their_whole_paths() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page)) - {"__init__.py"}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
