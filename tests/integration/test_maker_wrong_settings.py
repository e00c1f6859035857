"""A maker's wrong settings: `config check` and `maker serve` give the same line, without a secret."""

from pathlib import Path

import pytest
import trio

from cambist.config.errors import ConfigError
from cambist.config.settings import parse_settings
from cambist.engine.cli.offline.role_check import open_role
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.maker.app import MakerApp

ENVIRON = {
    "MAKER_KEY": "5d" * 32,
    "VENUE": "top secret of the venue",
    "SHORT": "12",
    "NODE": "ftp://hidden@node",
}
RFQ, TAKER = "0x" + "11" * 20, "0x" + "22" * 20
WETH, USDC = "0x" + "aa" * 20, "0x" + "bb" * 20
RIGHT = f"""
state_dir = "state"
[server]
port = 8080
[chains.1]
rfq_contract = "{RFQ}"
[keys.maker]
source = "env:MAKER_KEY"
[keys.maker.policy]
contracts = ["1:{RFQ}"]
[auth.domains.venue]
keys = [{{ access_key = "k1", secret = "env:VENUE" }}]
[maker.admin]
port = 8081
domains = ["venue"]
[maker.chains.1]
key = "maker"
takers = ["{TAKER}"]
node_url = "http://127.0.0.1:9"
price_source = "random_walk"
expiry_s = 150
price_options.pairs."WETH/USDC" = {{ start = "2500", size = "1" }}
tokens.WETH = {{ address = "{WETH}", decimals = 18 }}
tokens.USDC = {{ address = "{USDC}", decimals = 6 }}
pairs."WETH/USDC" = {{ base = "WETH", quote = "USDC", liquidity_usd = 1 }}
"""
CHAIN = "maker.chains.1"
WRONG = [
    # text of the settings, its replacement, the error
    ("env:MAKER_KEY", "env:NOBODY", "keys.maker.source: environment variable NOBODY is not set"),
    ("env:MAKER_KEY", "env:SHORT", "env:SHORT: "),
    (f'contracts = ["1:{RFQ}"]', "contracts = []", "keys.maker.policy.contracts: names no contract"),
    (f'contracts = ["1:{RFQ}"]', f'contracts = ["2:{RFQ}"]', f"keys.maker.policy.contracts: lacks 1:{RFQ}"),
    ('key = "maker"', 'key = "nobody"', f"{CHAIN}.key: "),
    ("port = 8080", 'port = "8080"', "server.port: "),
    ("port = 8080", "port = 8080\nhealth = { port = 1 }", "server.health: a maker tells of its health at"),
    (
        'domains = ["venue"]',
        'domains = ["nobody"]',
        "maker.admin.domains: names of [auth.domains], got n",
    ),
    ('domains = ["venue"]', "domains = []", "maker.admin.domains: names of [auth.domains], got none"),
    (
        "env:VENUE",
        "top secret of the venue",
        "auth.domains.venue.keys[0].secret: expected env:NAME",
    ),
    (f'rfq_contract = "{RFQ}"', "", "chains.1.rfq_contract: "),
    (f'rfq_contract = "{RFQ}"', 'rfq_contract = "0x12"', "chains.1.rfq_contract: expected an address"),
    (f'takers = ["{TAKER}"]', 'takers = ["me"]', f"{CHAIN}.takers"),
    ("http://127.0.0.1:9", "env:NODE", f"{CHAIN}.node_url: expected a URL of http or https"),
    ("http://127.0.0.1:9", "env:NOBODY", f"{CHAIN}.node_url: environment variable NOBODY is not set"),
    ('"random_walk"', '"nothing"', f"{CHAIN}.price_source: "),
    ('"random_walk"', '"no_such_module:Prices"', f"{CHAIN}.price_source: "),
    ('start = "2500", ', "", f"{CHAIN}.price_options.pairs"),
    ('start = "2500", ', 'start = "2500", colour = 1, ', f"{CHAIN}.price_options.pairs"),
    ("expiry_s = 150", "expiry_s = 5", f"{CHAIN}: expiry_s is at least"),
    (WETH, "0x12", f"{CHAIN}.tokens.WETH.address"),
    (WETH, USDC, f"{CHAIN}.tokens"),
    ('base = "WETH"', 'base = "ETH"', f"{CHAIN}"),
    ("liquidity_usd = 1", "liquidity_usd = 1, colour = 2", f"{CHAIN}.pairs.WETH/USDC.colour"),
    ("[maker.chains.1]", "[maker.chains.one]", "maker.chains"),
]


def opened(text: str, folder: Path) -> None:
    settings = parse_settings(text, ENVIRON, folder)
    MakerApp(settings, environ=ENVIRON, folder=folder, clock=WallClock())


async def checked(text: str, folder: Path) -> None:
    await open_role("maker", parse_settings(text, ENVIRON, folder), ENVIRON, folder)


def test_the_settings_are_right_otherwise(tmp_path: Path) -> None:
    opened(RIGHT, tmp_path)
    trio.run(checked, RIGHT, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("there", "instead", "says"), WRONG)
def test_a_check_names_the_setting_with_the_line_of_serve(
    tmp_path: Path, there: str, instead: str, says: str
) -> None:
    assert there in RIGHT
    text = RIGHT.replace(there, instead)
    with pytest.raises(ConfigError) as refused:
        opened(text, tmp_path)
    line = str(refused.value)
    assert line.startswith(says)
    assert "\n" not in line
    with pytest.raises(ConfigError) as told:
        trio.run(checked, text, tmp_path)
    assert str(told.value) == line
    assert not any(secret in line for secret in ("5d5d", "top secret", "hidden"))
