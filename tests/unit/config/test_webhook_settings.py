"""Settings of webhooks: errors name the setting, and `cambist config check` finds them."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cambist.config import timeouts
from cambist.config.errors import ConfigError
from cambist.config.sections.webhooks import WebhookSettings
from cambist.config.settings import parse_settings
from cambist.crypto.webhook_signature import (
    ID_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    WebhookSigner,
)
from cambist.engine.cli import cli
from support.stretched_bounds import OWN_S

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ENVIRON = {"HOOK": SECRET, "KEY": "a-key-of-an-integrator"}
GOOD = f"""
[partners.acme]
address = "0x{"ab" * 20}"
[venue.api_keys.acme]
secret = "env:KEY"
[venue.webhooks.acme]
url = "https://acme.example/orders"
secret = "env:HOOK"
partner = "acme"
chains = [1, 10]
statuses = ["COMPLETED", "FAILED"]
api_key = "acme"
posts_max = 4
"""


def test_what_is_not_said_has_a_default() -> None:
    text = '[venue.webhooks.all]\nurl = "http://127.0.0.1:9/x"\nsecret = "env:HOOK"'
    venue = parse_settings(text, ENVIRON, Path()).venue
    assert venue is not None
    hook = venue.webhooks["all"]
    assert (hook.partner, hook.chains, hook.statuses, hook.api_key) == ("", (), (), "")
    assert hook.surfaces == ("delta",)
    assert (hook.posts_max, hook.post_s, hook.give_up_s) == (8, timeouts.WEBHOOK_POST_S, 86_400)


def test_the_secret_is_nowhere_to_be_seen() -> None:
    settings = parse_settings(GOOD, ENVIRON, Path())
    assert SECRET.removeprefix("whsec_") not in repr(settings)
    assert "env:HOOK" in repr(settings)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("https://acme.example/orders", "ftp://acme.example/hush", "venue.webhooks.acme: url is http://"),
        ("https://acme.example/orders", "https:///hush", "venue.webhooks.acme: url names a host"),
        (
            "https://acme.example/orders",
            "https://acme.example:0/hush",
            "venue.webhooks.acme: url names a host",
        ),
        ("https://acme.example/orders", "https://me:hush@acme.example", "acme: url has neither user nor"),
        ("https://acme.example/orders", "https://acme.example/hu sh", "venue.webhooks.acme: url needs"),
        ('"env:HOOK"', '"whsec_hush"', "venue.webhooks.acme.secret: expected env:NAME or file:PATH"),
        ('"env:HOOK"', '"env:NOWHERE"', "venue.webhooks.acme.secret: environment variable NOWHERE"),
        ('partner = "acme"', 'partner = "other"', "webhooks.acme.partner: unknown partner 'other'"),
        ('api_key = "acme"', 'api_key = "hush"', "webhooks.acme: unknown key 'hush'"),
        ("chains = [1, 10]", "chains = [1, 999]", "venue.webhooks.acme.chains: unknown chain 999"),
        ("posts_max = 4", 'surfaces = ["market"]', "venue.webhooks.acme.surfaces"),
        ("posts_max = 4", "surfaces = []", "venue.webhooks.acme.surfaces: expected"),
        (
            "posts_max = 4",
            'surfaces = ["delta", "otc"]',
            "venue.webhooks.acme: surfaces has no otc where partner is set",
        ),
        ("posts_max = 4", "posts_max = 0", "venue.webhooks.acme.posts_max: expected"),
        ("posts_max = 4", "posts_max = 65", "venue.webhooks.acme.posts_max: expected"),
        ("posts_max = 4", "post_s = 0", "venue.webhooks.acme.post_s: expected"),
        ("posts_max = 4", "give_up_s = 2592001", "venue.webhooks.acme.give_up_s: expected"),
        ("posts_max = 4", "retries = 4", "venue.webhooks.acme.retries: is not a setting"),
    ],
)
def test_what_is_wrong_is_named(before: str, after: str, named: str) -> None:
    assert before in GOOD
    with pytest.raises(ConfigError, match=re.escape(named)) as refused:
        parse_settings(GOOD.replace(before, after, 1), ENVIRON, Path())
    if before != 'api_key = "acme"':
        assert "hush" not in str(refused.value)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-a", "ä", "a?b", "a%2fb", "a" * 129])
def test_names_that_cannot_stand_in_a_path(name: str) -> None:
    with pytest.raises(ConfigError, match="a webhook's name is 1 to 128 letters, digits"):
        parse_settings(GOOD.replace("webhooks.acme", f'webhooks."{name}"'), ENVIRON, Path())


@pytest.mark.parametrize("name", ["a", "9", "acme-2_b.c", "a" * 128])
def test_names_that_can(name: str) -> None:
    venue = parse_settings(GOOD.replace("webhooks.acme", f'webhooks."{name}"'), ENVIRON, Path()).venue
    assert venue is not None
    assert list(venue.webhooks) == [name]


# --- cambist config check -------------------------------------------------------------------------------


def check(text: str, tmp_path: Path, secret: str = SECRET) -> Result:
    path = tmp_path / "cambist.toml"
    path.write_text(text)
    result = CliRunner().invoke(
        cli, ["config", "check", "--config", str(path)], env=ENVIRON | {"HOOK": secret}
    )
    assert secret not in result.output
    return result


def test_config_check_names_the_webhooks(tmp_path: Path) -> None:
    at = '"0x' + "ab" * 20 + '"'
    contracts = "".join(
        f"{name} = {at}\n" for name in ("wrapped_native", "router", "rfq_contract", "executor", "fee_vault")
    )
    chain = f'[chains.31337]\nname = "devnet"\nmarket = true\n{contracts}node.urls = ["http://127.0.0.1:9"]\n'
    chain += "".join(
        f'[[tokens]]\nchain_id = 31337\naddress = "0x{digits * 20}"\nsymbol = "{symbol}"\ndecimals = 6\n'
        for digits, symbol in (("cd", "USDC"), ("ef", "DAI"))
    )
    result = check(f'state_dir = "."\nroute_seal_keys = ["env:KEY"]\n{GOOD}{chain}', tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "webhooks          acme" in result.stdout.splitlines()


@pytest.mark.parametrize(
    "secret", [SECRET[6:], "whsec_AAECAwQFBgc=", SECRET[:-4] + "!!!!", "whsec_" + "A" * 88]
)
def test_config_check_refuses_a_secret_that_is_none(secret: str, tmp_path: Path) -> None:
    result = check(GOOD, tmp_path, secret)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: venue.webhooks.acme.secret: expected whsec_ and the base64 of 24 to 64 bytes\n"
    )


def test_config_check_refuses_statuses_that_no_order_has(tmp_path: Path) -> None:
    result = check(GOOD.replace('"FAILED"', '"Failed"'), tmp_path)
    assert (result.exit_code, result.stderr) == (
        1, "Error: venue.webhooks.acme.statuses: expected statuses of delta orders, got 'Failed'\n",
    )  # fmt: skip


# --- webhooks.md -----------------------------------------------------------------------------------------


def block(language: str) -> str:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "webhooks.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_sample_shows_the_defaults() -> None:
    environ = {"ACME_API_KEY": "a-key-of-an-integrator", "ACME_WEBHOOK_SECRET": SECRET}
    venue = parse_settings(block("toml"), environ, Path()).venue
    assert venue is not None
    hook = venue.webhooks["acme"]
    plain = WebhookSettings(url=hook.url, secret=hook.secret)
    named = ("surfaces", "posts_max", "give_up_s")
    assert [getattr(hook, name) for name in named] == [getattr(plain, name) for name in named]
    assert hook.post_s == OWN_S["WEBHOOK_POST_S"]


def test_the_lines_that_check_a_delivery_do() -> None:
    scope: dict[str, Any] = {}
    exec(block("python"), scope)  # as a partner would run them
    now_s, body = int(time.time()), b'{"event":"order"}'
    headers = {
        ID_HEADER: "0" * 32,
        TIMESTAMP_HEADER: str(now_s),
        SIGNATURE_HEADER: WebhookSigner(SECRET)("0" * 32, now_s, body),
    }
    assert scope["is_genuine"](SECRET, headers, body)
    assert not scope["is_genuine"](SECRET, headers, body + b" ")
    assert not scope["is_genuine"](SECRET, headers | {TIMESTAMP_HEADER: str(now_s + 1)}, body)
    assert not scope["is_genuine"](SECRET, headers | {ID_HEADER: "1" * 32}, body)
