"""A market maker's settings: the start reports each error with the setting's name."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.config.errors import ConfigError
from cambist.config.sections.maker import MakerPair, MakerToken
from cambist.config.settings import parse_settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.maker.app import MakerApp
from support.makers.maker_role import CHAIN_ID, CONTRACT, ENVIRON, MAKER, USDC, WETH, a_chain, settings_of

FIELD = f"maker.chains.{CHAIN_ID}"


def token(**changes: Any) -> MakerToken:
    return msgspec.structs.replace(MakerToken(address=WETH, decimals=18, balance="1"), **changes)


def pair(**changes: Any) -> MakerPair:
    return msgspec.structs.replace(MakerPair(base="WETH", quote="USDC", liquidity_usd=Decimal(1)), **changes)


TOKENS = {"WETH": token(), "USDC": token(address=USDC, decimals=6)}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"key": "nobody"}, f"{FIELD}.key"),
    ({"takers": ()}, f"{FIELD}.takers"),
    ({"takers": ("0x12",)}, f"{FIELD}.takers"),
    ({"takers": ("0x" + "00" * 20,)}, "zero address"),
    ({"maker": "me"}, f"{FIELD}.maker"),
    ({"blacklist": ("0x12",)}, f"{FIELD}.blacklist"),
    ({"expiry_s": 3_601}, f"{FIELD}.expiry_s"),
    ({"tokens": {**TOKENS, "USDC": token(address=USDC, balance="")}}, f"{FIELD}.tokens.USDC.balance"),
    ({"tokens": {**TOKENS, "USDC": token(address=USDC, balance="1e3")}}, f"{FIELD}.tokens.USDC.balance"),
    ({"tokens": {**TOKENS, "USDC": token(address=USDC, quote_max="-1")}}, f"{FIELD}.tokens.USDC.quote_max"),
    ({"tokens": {**TOKENS, "USDC": token()}}, "that of another token"),
    (
        {"tokens": {**TOKENS, "USDC": token(address=USDC.replace("a0b", "A0b"))}},
        f"{FIELD}.tokens.USDC.address",
    ),
    ({"pairs": {"A": pair(), "B": pair()}}, f"{FIELD}.pairs.B"),
    ({"pairs": {"A": pair(), "B": pair(base="USDC", quote="WETH")}}, f"{FIELD}.pairs.B"),
    ({"pairs": {"A": pair(notional_max="x")}}, f"{FIELD}.pairs.A.notional_max"),
    ({"pairs": {"A": pair(open_notional_max="-")}}, f"{FIELD}.pairs.A.open_notional_max"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_setting_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        a_chain(grid=None, **changes)
    assert words in caught.value.detail


REFUSED = [
    ("expiry_s = 124", "expiry_s is at least 125"),
    ("takers_every_s = nan", "takers_every_s is above 0"),
    ("node_stale_s = inf", "node_stale_s is above 0"),
    ("node_head_max_s = nan", "node_head_max_s is 0 or more"),
    ("price_life_ms = 0", "price_life_ms is above 0"),
    ("unused_quotes_max = -1", "unused_quotes_max is 0 or more"),
    ('prefix = "maker"', "prefix is /path"),
    ('prefix = "/maker/"', "prefix is /path"),
    ('auth = "maybe"', "auth"),
    ("colour = 1", f"{FIELD}.colour: is not a setting"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_a_setting_that_cannot_be_is_refused_when_it_is_read(line: str, words: str) -> None:
    text = f"""
[maker.chains.{CHAIN_ID}]
key = "maker"
price_source = "static"
tokens = {{}}
pairs = {{}}
{line}
"""
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, ENVIRON, Path())
    assert words in caught.value.detail


def test_a_pair_of_a_token_that_is_not_listed_is_refused() -> None:
    text = f"""
[maker.chains.{CHAIN_ID}]
key = "maker"
price_source = "static"
tokens = {{}}
pairs = {{ "A/B" = {{ base = "A", quote = "B", liquidity_usd = 1 }} }}
"""
    with pytest.raises(ConfigError, match="base is no token of this chain"):
        parse_settings(text, ENVIRON, Path())


def test_the_rfq_contract_must_be_known_and_allowed_to_the_key() -> None:
    settings = settings_of()
    chain = settings.chains[CHAIN_ID]
    for contract, words in (("", "rfq_contract"), (MAKER, "keys.maker.policy.contracts")):
        changed = {**settings.chains, CHAIN_ID: msgspec.structs.replace(chain, rfq_contract=contract)}
        with pytest.raises(ConfigError, match=words):
            a_chain(msgspec.structs.replace(settings, chains=changed), grid=None)


def test_a_listener_for_health_is_the_admins(tmp_path: Path) -> None:
    settings = settings_of("[server.health]\n")
    with pytest.raises(ConfigError, match=r"server\.health: a maker tells of its health at \[maker\.admin\]"):
        MakerApp(settings, environ=ENVIRON, folder=tmp_path, clock=WallClock())


def test_without_a_node_the_settings_are_the_funds_and_with_one_they_bound_them() -> None:
    assert next(holding.funds for holding in a_chain().holdings) == 100 * 10**18
    role = a_chain(node_url="http://127.0.0.1:1")
    assert [holding.funds for holding in role.holdings] == [0, 0, 0]
    assert role.caps[bytes.fromhex(WETH[2:])] == 100 * 10**18
    assert role.desk.withheld


def test_the_domain_is_that_of_the_chains_contract() -> None:
    signer = a_chain().signer
    assert (signer.chain_id, signer.contract, signer.maker) == (
        CHAIN_ID,
        bytes.fromhex(CONTRACT[2:]),
        bytes.fromhex(MAKER[2:]),
    )
