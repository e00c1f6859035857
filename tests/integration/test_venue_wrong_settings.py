"""A venue's report of wrong settings: one line that names the setting, without a secret."""

from pathlib import Path

import pytest
import trio

from cambist.config.errors import ConfigError
from cambist.config.settings import parse_settings
from cambist.engine.cli.offline.role_check import open_role
from cambist.engine.cli.offline.role_online import RoleFact
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.venue.app import opened_venue

ADDRESSES = {name: "0x" + f"{number:02x}" * 20 for number, name in enumerate(
    ("weth", "usdc", "router", "delta", "rfq", "executor", "vault"), 1
)}  # fmt: skip
SECRETS = {"ROUTE_SEAL": "the seal of all routes", "ALPHA": "top secret of alpha", "KEY": "key-of-somebody"}
ENVIRON = SECRETS | {"SHORT": "short", "SPACED": "hidden key", "NODE": "http://key:hidden@node:99999"}
RIGHT = """
state_dir = "."
route_seal_keys = ["env:ROUTE_SEAL"]
[server]
port = 0
[chains.31337]
name = "devnet"
delta = true
market = true
wrapped_native = "{weth}"
router = "{router}"
delta_contract = "{delta}"
rfq_contract = "{rfq}"
executor = "{executor}"
fee_vault = "{vault}"
[chains.31337.node]
urls = ["http://127.0.0.1:9"]
[[tokens]]
chain_id = 31337
address = "{weth}"
symbol = "WETH"
decimals = 18
[[tokens]]
chain_id = 31337
address = "{usdc}"
symbol = "USDC"
decimals = 6
stable_usd = true
[venue]
delta_gas = 1000
[venue.rate_tiers]
public = {{ per_s = 20, burst = 100 }}
keyed = {{ per_s = 200, burst = 100 }}
[venue.api_keys.known]
secret = "env:KEY"
[venue.makers.alpha]
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:ALPHA" }}
[venue.makers.alpha.chains.31337]
url = "http://127.0.0.1:10/31337"
""".format_map(ADDRESSES)
MAKER = "venue.makers.alpha.chains.31337"
KEY_LINE = 'credentials = { domain = "venue", access_key = "key-1", secret = "env:ALPHA" }'
ACCOUNT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
TWO_MAKERS = f"""
[venue.makers.beta]
accounts = ["{ACCOUNT}"]
chains.31337.url = "http://b"
[venue.makers.gamma]
accounts = ["{ACCOUNT.lower()}"]
chains.31337.url = "http://g"
"""
MAKER_URL = 'url = "http://127.0.0.1:10/31337"'
NODE_URL = 'urls = ["http://127.0.0.1:9"]'
KEYED = "keyed = { per_s = 200, burst = 100 }"
WRONG = [
    # line of the settings, its replacement, the error
    ("env:ROUTE_SEAL", "env:NOBODY", "route_seal_keys[0]: environment variable NOBODY is not set"),
    ("env:ROUTE_SEAL", "env:SHORT", "route_seal_keys[0]: at least 16 characters, got 5"),
    ('["env:ROUTE_SEAL"]', "[]", "route_seal_keys: names no key"),
    ("port = 0", "port = 70000", "server: port is 0 to 65535, got 70000"),
    ("port = 0", "processes = 2", "server.processes: a venue is one process"),
    ("market = true", 'market = "yes"', "chains.31337.market: "),
    (f'router = "{ADDRESSES["router"]}"', "", "chains.31337.router: is not set"),
    (f'rfq_contract = "{ADDRESSES["rfq"]}"', "", "chains.31337.rfq_contract: is not set"),
    (f'delta_contract = "{ADDRESSES["delta"]}"', "", "chains.31337.delta_contract: is not set"),
    (f'executor = "{ADDRESSES["executor"]}"', "", "chains.31337.executor: is not set"),
    (ADDRESSES["router"], "0x12", "chains.31337.router: expected an address"),
    (NODE_URL, "urls = []", f"{MAKER}: the chain is not served: chains.31337.node.urls names no node"),
    (NODE_URL, 'urls = ["node"]', "chains.31337.node: urls[0] is http://"),
    (NODE_URL, 'urls = ["env:NOBODY"]', "chains.31337.node.urls[0]: environment variable NOBODY is not set"),
    (NODE_URL, 'urls = ["env:NODE"]', "chains.31337.node.urls[0]: names a host, and a port of 1 to 65535"),
    (NODE_URL, 'urls = ["http://"]', "chains.31337.node.urls[0]: names a host, and a port of 1 to 65535"),
    (NODE_URL, f'{NODE_URL}\nws_urls = ["ws://a:0"]', "chains.31337.node.ws_urls[0]: names a host"),
    ("chain_id = 31337", "chain_id = 1", "tokens: none is listed of chain 31337"),
    ("decimals = 6", "decimals = 300", "tokens[1]: decimals is 0 to 36, got 300"),
    ('symbol = "USDC"', 'symbol = "WETH"', "tokens[1]: WETH is already listed on chain 31337"),
    ("delta_gas = 1000", "delta_gas = -1", "venue: delta_gas is 0 to"),
    ("delta_gas = 1000", "deltaGas = 1", "venue.deltaGas: is not a setting"),
    ("delta_gas = 1000", 'trusted_proxies = ["proxy"]', "venue: trusted_proxies are IP addresses"),
    ("delta_gas = 1000", "quote_streams_max = 0", "venue: quote_streams_max is at least 1"),
    ("delta_gas = 1000", "otc_small_usd = -0.5", "venue: otc_small_usd is 0 or more, got -0.5"),
    ("delta_gas = 1000", "event_streams_max = 0", "venue: event_streams_max is at least 1"),
    ("delta_gas = 1000", "trade_streams_max = 0", "venue: trade_streams_max is at least 1"),
    ("delta_gas = 1000", "blacklist_s = 0", "venue.blacklist_s: "),
    ("delta_gas = 1000", "firm = { soft_s = 5, hard_s = 1 }", "venue.firm: soft_s is above hard_s"),
    ("delta_gas = 1000", "firm = { soft_s = nan }", "venue.firm.soft_s: "),
    (KEYED, "bulk = { burst = 100 }", "venue.rate_tiers.bulk: object missing required field"),
    (KEYED, "keyed = { per_s = inf, burst = 100 }", "venue.rate_tiers.keyed: per_s is above 0"),
    ('"env:KEY"', '"env:SPACED"', "venue.api_keys.known.secret: expected visible ASCII"),
    ('"env:KEY"', '"env:KEY"\ntier = "gold"', "venue: api_keys.known: unknown tier gold"),
    ('"env:KEY"', '"env:KEY"\npartner = "acme"', "venue.api_keys.known.partner: unknown partner 'acme'"),
    (
        '"env:KEY"',
        '"env:KEY"\n[venue.api_keys.too]\nsecret = "env:KEY"',
        "venue.api_keys.too.secret: equals the",
    ),
    ("env:ALPHA", "env:NOBODY", "venue.makers.alpha.credentials.secret: environment variable NOBODY"),
    ("env:ALPHA", "top secret", "venue.makers.alpha.credentials.secret: expected env:NAME or file:PATH"),
    ('"env:ALPHA"', '"env:ALPHA", secret_encoding = "hex"', "venue.makers.alpha.credentials: secret: is not"),
    ('"key-1"', '"key\\n1"', "venue.makers.alpha.credentials: X-AUTH-ACCESS-KEY: expected visible ASCII"),
    (KEY_LINE, f'{KEY_LINE}\naccounts = ["0x12"]', "venue.makers.alpha: accounts are 0x and 40 hexadecimal"),
    (
        KEY_LINE,
        f"{KEY_LINE}\naccounts = {[ACCOUNT.lower()] * 17}",
        "venue.makers.alpha: accounts are at most 16, got 17",
    ),
    (
        KEY_LINE,
        f'{KEY_LINE}\naccounts = ["{ACCOUNT.swapcase().replace("0X", "0x")}"]',
        "venue.makers.alpha.accounts[0]: expected ",
    ),
    ("alpha.chains.31337", "alpha.chains.5", "venue.makers.alpha.chains.5: unknown chain 5 in [chains]"),
    ("alpha.chains.31337", "alpha.chains.1", "venue.makers.alpha.chains.1: the chain is not served"),
    (
        MAKER_URL,
        f"{MAKER_URL}{TWO_MAKERS}",
        f"venue: makers.gamma: {ACCOUNT.lower()} is an account of beta, too",
    ),
    (MAKER_URL, 'url = "ftp://maker"', f"{MAKER}: url is http://... or https://..."),
    (MAKER_URL, 'url = "http://"', f"{MAKER}: url names a host, and a port of 1 to 65535 if any"),
    (MAKER_URL, 'url = "http://maker:99999/1"', f"{MAKER}: url names a host, and a port of 1 to 65535"),
    (MAKER_URL, 'url = "http://us:hidden@maker"', f"{MAKER}: url has neither user nor fragment"),
    (MAKER_URL, 'url = "http://maker/1?key=hidden"', f"{MAKER}: url has no query"),
    (MAKER_URL, 'url = "http://maker/a b"', f"{MAKER}: url needs percent-encoding"),
    (MAKER_URL, f'{MAKER_URL}\nws_url = "ws://:80"', f"{MAKER}: ws_url names a host"),
    (
        MAKER_URL,
        f"{MAKER_URL}\nprices_every_s = 30\nstale_s = 3",
        f"{MAKER}: stale_s is above prices_every_s",
    ),
]


async def opened(text: str, folder: Path) -> None:
    settings = parse_settings(text, ENVIRON, folder)
    async with opened_venue(
        settings, environ=ENVIRON, folder=folder, clock=WallClock(), store_in_process=True
    ):
        pass


async def check_role(text: str, folder: Path) -> list[RoleFact]:
    return await open_role("venue", parse_settings(text, ENVIRON, folder), ENVIRON, folder)


def test_what_is_right_is_opened_and_leaves_no_trace_when_checked(tmp_path: Path) -> None:
    facts = trio.run(check_role, RIGHT, tmp_path)
    assert facts[0] == RoleFact("chain 31337", "Market, OTC; tokens WETH, USDC, ETH; makers alpha")
    assert "no relayer settles its orders" in facts[1].text
    assert list(tmp_path.iterdir()) == []
    trio.run(opened, RIGHT, tmp_path)


@pytest.mark.parametrize(("there", "instead", "says"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, there: str, instead: str, says: str) -> None:
    assert there in RIGHT
    with pytest.raises(ConfigError) as refused:
        trio.run(opened, RIGHT.replace(there, instead), tmp_path)
    line = str(refused.value)
    assert line.startswith(says)
    assert "\n" not in line
    with pytest.raises(ConfigError) as checked:
        trio.run(check_role, RIGHT.replace(there, instead), tmp_path)
    assert str(checked.value) == line
    assert not any(secret in line for secret in (*SECRETS.values(), "hidden", "top secret"))


def test_a_book_of_contracts_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "contracts.json").write_text("{nonsense")
    with pytest.raises(ConfigError, match=r"contracts\.json: "):
        trio.run(opened, RIGHT, tmp_path)


def test_two_venues_do_not_share_a_state_directory(tmp_path: Path) -> None:
    async def both() -> None:
        settings = parse_settings(RIGHT, ENVIRON, tmp_path)
        async with opened_venue(
            settings, environ=ENVIRON, folder=tmp_path, clock=WallClock(), store_in_process=True
        ):
            await opened(RIGHT, tmp_path)

    with pytest.RaisesGroup(
        pytest.RaisesExc(ConfigError, match="one engine owns a SQLite file"),
        allow_unwrapped=True,
        flatten_subgroups=True,
    ):
        trio.run(both)
