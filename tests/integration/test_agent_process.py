"""`cambist agent serve` as a process: the agent bids, drains on SIGTERM, and reports wrong settings."""

import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, run
from urllib.parse import urlsplit

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Http1Limits
from cambist.config.errors import ConfigError
from cambist.config.settings import parse_settings
from cambist.engine.cli.offline.role_check import open_role
from cambist.engine.cli.offline.role_online import RoleFact
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.agent.app import opened_agent
from cambist.feeds.transport.http_client import HttpClient
from support.makers.agent_role import AGENT_ENVIRON, RunningAgent, agent_text, own_module
from support.patience import PATIENCE_S
from support.venue.venue_processes import ready
from support.venue.venue_role import CHAIN_ID, GRIDS, USER, running_makers, served_devnet

COMMAND = [sys.executable, "-m", "cambist", "agent", "serve"]
ONE, USDC = 10**18, 10**6


async def test_it_serves_bids_and_drains(tmp_path: Path) -> None:
    async with served_devnet(tmp_path) as devnet, running_makers(tmp_path, devnet, GRIDS) as makers:
        await devnet.allow(USER, "WETH", "delta")
        config = tmp_path / "agent.toml"
        config.write_text(agent_text(devnet, {name: port for name, (_, port) in makers.items()}))
        process = await trio.lowlevel.open_process(
            [*COMMAND, "--config", str(config)], env=os.environ | AGENT_ENVIRON, stderr=PIPE
        )
        assert process.stderr
        try:
            async with process.stderr as stream:
                with trio.fail_after(PATIENCE_S):
                    line = b""
                    while not line.endswith(b"\n"):
                        line += await stream.receive_some()
                serving = msgspec.json.decode(line)
                assert (serving["event"], serving["chains"]) == ("serving", [CHAIN_ID])
                port = urlsplit(serving["url"]).port
                assert port
                async with HttpClient("127.0.0.1", port, connections_max=2, limits=Http1Limits()) as client:
                    await ready(client)
                    settings = parse_settings(config.read_text(), AGENT_ENVIRON, tmp_path)
                    opened = opened_agent(settings, environ=AGENT_ENVIRON, folder=tmp_path, clock=WallClock())
                    async with opened as app:  # only to sign and settle with
                        agent = RunningAgent(app, devnet, client, port)
                        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
                        bids = await agent.solve(sale)
                        (settled,) = await agent.settle(bids[0])
                        assert settled.received >= int(bids[0].parts[0].promised_amount)
                process.send_signal(signal.SIGTERM)
                with trio.fail_after(PATIENCE_S):
                    assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


ADDRESSES = {name: "0x" + f"{number:02x}" * 20 for number, name in enumerate(
    ("weth", "usdc", "router", "delta", "rfq", "executor"), 1
)}  # fmt: skip
SECRETS = {"VENUE": "top secret of the venue", "ALPHA": "top secret of alpha"}
RIGHT = """
state_dir = "."
[server]
port = 0
[chains.31337]
name = "devnet"
delta = true
wrapped_native = "{weth}"
delta_contract = "{delta}"
rfq_contract = "{rfq}"
executor = "{executor}"
[chains.31337.node]
urls = ["http://127.0.0.1:9"]
[[tokens]]
chain_id = 31337
address = "{usdc}"
symbol = "USDC"
decimals = 6
[agent]
margin_bps = 1
[agent.makers.alpha]
credentials = {{ domain = "agent", access_key = "key-1", secret = "env:ALPHA" }}
[agent.makers.alpha.chains.31337]
url = "http://127.0.0.1:10/31337"
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:VENUE" }}]
""".format_map(ADDRESSES)
MARGIN = "margin_bps = 1"
AUTH = '[auth.domains.venue]\nkeys = [{ access_key = "key-1", secret = "env:VENUE" }]\n'
STRATEGY = "agent.strategies: "
MARKET = f'market = true\nrouter = "{ADDRESSES["router"]}"'
WRONG = [
    # line of the settings, its replacement, the error
    (MARGIN, "margin_bps = -1", "agent: margin_bps is 0 to 1000, got -1"),
    (MARGIN, "margins = 1", "agent.margins: is not a setting"),
    (MARGIN, "strategies = []", "agent: strategies are 1 to 16, got 0"),
    (MARGIN, 'strategies = ["crossing", "crossing"]', "agent: strategies names a strategy twice"),
    (MARGIN, 'strategies = ["cross"]', f"{STRATEGY}expected crossing, firm_quotes or module:factory, got"),
    (MARGIN, 'strategies = ["no_module:Own"]', f"{STRATEGY}unknown module no_module, neither in "),
    (MARGIN, 'strategies = ["OWN:Absent"]', f"{STRATEGY}module OWN has no Absent"),
    (MARGIN, 'strategies = ["OWN:narrow"]', f"{STRATEGY}OWN:narrow is not called as narrow(options"),
    (MARGIN, 'strategies = ["OWN:still"]', f"{STRATEGY}OWN:still makes an object without `async def solve`"),
    (MARGIN, 'strategies = ["OWN:Deaf"]', f"{STRATEGY}OWN:Deaf makes an object with `async def notify`"),
    (MARGIN, 'strategies = ["OWN:Old"]', f"{STRATEGY}OWN:Old makes an object with `told`: its name is"),
    (MARGIN, 'strategies = ["OWN:picky"]', "agent.options.OWN:picky: OWN:picky does not take them"),
    (MARGIN, "options = { crossing = { a = 1 } }", "agent.options.crossing.a: is not an option"),
    (MARGIN, "options = { own = { a = 1 } }", "agent: options: own is not in strategies"),
    (MARGIN, "reserve_s = 0", "agent.reserve_s: "),
    (MARGIN, "orders_at_once = 0", "agent: orders_at_once is 1 to 256, got 0"),
    (MARGIN, 'name = ""', "agent: name is 1 to 128 characters"),
    (MARGIN, "firm = { soft_s = 5, hard_s = 1 }", "agent.firm: soft_s is above hard_s"),
    ("port = 0", "port = 0\nprocesses = 2", "server.processes: an agent is one process"),
    (AUTH, "", "agent.auth: requires signatures, but [auth.domains] is empty"),
    ("env:VENUE", "top secret", "auth.domains.venue.keys[0].secret: expected env:NAME or file:PATH"),
    ("delta = true", MARKET, "agent.makers.alpha.chains.31337: chains.31337 has no `delta`"),
    ("alpha.chains.31337", "alpha.chains.5", "agent.makers.alpha.chains.5: unknown chain 5 in [chains]"),
    ("alpha.chains.31337", "alpha.chains.1", "agent.makers.alpha.chains.1: the chain is not served"),
    (f'executor = "{ADDRESSES["executor"]}"', "", "chains.31337.executor: is not set"),
    ('["http://127.0.0.1:9"]', '["env:NOBODY"]', "chains.31337.node.urls[0]: environment variable"),
    ('"env:ALPHA"', '"env:ALPHA", secret_encoding = "hex"', "agent.makers.alpha.credentials: secret: is not"),
]  # fmt: skip
OWN_WRONG = """
def narrow(): ...
def still(options, context): return object()
def picky(options, context): return options["needed"]
class Deaf:
    def __init__(self, options, context): ...
    async def solve(self, request, market): ...
    async def notify(self, notice): ...
class Old:
    def __init__(self, options, context): ...
    async def solve(self, request, market): ...
    def told(self, notice): ...
"""


async def opened(text: str, folder: Path) -> None:
    settings = parse_settings(text, SECRETS, folder)
    async with opened_agent(settings, environ=SECRETS, folder=folder, clock=WallClock()):
        pass


async def check_role(text: str, folder: Path) -> list[RoleFact]:
    return await open_role("agent", parse_settings(text, SECRETS, folder), SECRETS, folder)


def test_what_is_right_is_opened(tmp_path: Path) -> None:
    trio.run(opened, RIGHT, tmp_path)
    assert trio.run(check_role, RIGHT, tmp_path)[0] == RoleFact("chain 31337", "makers alpha")


@pytest.mark.parametrize(("there", "instead", "says"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, there: str, instead: str, says: str) -> None:
    assert there in RIGHT
    own = own_module(tmp_path, OWN_WRONG)
    with pytest.raises(ConfigError) as refused:
        trio.run(opened, RIGHT.replace(there, instead.replace("OWN", own)), tmp_path)
    line = str(refused.value)
    assert line.startswith(says.replace("OWN", own))
    with pytest.raises(ConfigError) as checked:
        trio.run(check_role, RIGHT.replace(there, instead.replace("OWN", own)), tmp_path)
    assert str(checked.value) == line
    assert "\n" not in line
    assert not any(secret in line for secret in (*SECRETS.values(), "top secret"))


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    for text, says in (("", "has no [agent] table"), ("[agent]\nport = 1\n", "agent.port: is not a setting")):
        config.write_text(text)
        done = run(
            [*COMMAND, "--config", str(config)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 1
        assert says in done.stderr
        assert "Traceback" not in done.stderr
