"""Settings of a chain's nodes: accepted and refused values; no text repeats a URL."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cambist.config.errors import ConfigError
from cambist.config.sections.nodes import NodeSettings, revealed
from cambist.config.settings import Settings, parse_settings

FIELD = "chains.1.node"


def settings(text: str, environ: Mapping[str, str] | None = None) -> Settings:
    return parse_settings(text, environ or {}, Path())


def test_defaults_name_no_node() -> None:
    assert settings("").chains[1].node == NodeSettings()
    assert NodeSettings().urls == ()


def test_a_section_and_the_environment_on_top() -> None:
    read = settings(
        '[chains.1.node]\nurls = ["https://a", "env:B", "file:c"]\nws_urls = ["wss://a"]\npoll_s = 2',
        {"CAMBIST__CHAINS__1__NODE__CALL_S": "3.5"},
    ).chains[1]
    assert read.name == "Ethereum"
    assert read.node.urls == ("https://a", "env:B", "file:c")
    assert read.node.ws_urls == ("wss://a",)
    assert (read.node.call_s, read.node.poll_s, read.node.lag_blocks_max) == (3.5, 2.0, 64)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'urls = ["ftp://a/secret"]',
            "chains.1.node: urls[0] is http://..., https://..., env:NAME or file:PATH",
        ),
        ('urls = ["https://a", "ws://secret"]', "urls[1] is http://"),
        ('ws_urls = ["https://secret"]', "ws_urls[0] is ws://..., wss://..., env:NAME or file:PATH"),
        (f"urls = {['https://a'] * 17}", "urls are at most 16, got 17"),
        ("call_s = 0", "call_s is above 0, at most 60, got 0"),
        ("poll_s = 61", "poll_s is above 0, at most 60, got 61"),
        ("lag_blocks_max = 0", "lag_blocks_max is 1 to 1000000, got 0"),
        ("retries = 3", "chains.1.node.retries: is not a setting"),
    ],
)
def test_refusals_name_the_setting_and_show_no_url(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(f"[chains.1.node]\n{line}")
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_references_lead_to_urls(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://b/key\n")
    read = revealed(
        NodeSettings(urls=("http://a", "file:url"), ws_urls=("env:WS",), poll_s=2),
        FIELD,
        {"WS": "wss://c/key"},
        tmp_path,
    )
    assert read == NodeSettings(urls=("http://a", "https://b/key"), ws_urls=("wss://c/key",), poll_s=2)


@pytest.mark.parametrize(
    ("urls", "ws_urls", "said"),
    [
        ((), (), "chains.1.node.urls: no node is set"),
        (("env:ABSENT",), (), "chains.1.node.urls[0]: environment variable ABSENT is not set"),
        (("http://a", "env:WRONG"), (), "chains.1.node.urls[1]: expected a reference to a URL of http://"),
        (("http://a",), ("env:WRONG",), "chains.1.node.ws_urls[0]: expected a reference to a URL of ws://"),
    ],
)
def test_references_that_lead_nowhere(urls: tuple[str, ...], ws_urls: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        revealed(NodeSettings(urls=urls, ws_urls=ws_urls), FIELD, {"WRONG": "ldap://hidden"}, Path())
    assert said in str(caught.value)
    assert "hidden" not in str(caught.value)
