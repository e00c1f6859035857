"""Values of the file have the settings' types, variables are text; a key that is almost right is named."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cambist.config.errors import ConfigError
from cambist.config.settings import Settings, parse_settings


def settings(text: str = "", environ: Mapping[str, str] | None = None) -> Settings:
    return parse_settings(text, environ or {}, Path())


def refusal(text: str = "", environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(text, environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[server]\nport = "8180"', "server.port: expected `int`, got `str`"),
        ("[server]\nhost = 8180", "server.host: expected `str`, got `int`"),
        ('[chains.1]\nmarket = "true"', "chains.1.market: expected `bool`, got `str`"),
        ('[chains.1]\nconfirmations = "12"', "chains.1.confirmations: expected `int`, got `str`"),
        (
            '[venue.rate_tiers]\npublic = { per_s = "20" }',
            "venue.rate_tiers.public.per_s: expected `float`, got `str`",
        ),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, says: str) -> None:
    assert refusal(text) == says


def test_a_variable_is_text_of_any_type() -> None:
    environ = {
        "CAMBIST__SERVER__PORT": "8180",
        "CAMBIST__SERVER__IDLE_S": "30.5",
        "CAMBIST__CHAINS__1__MARKET": "true",
        "CAMBIST__CHAINS__1__CONFIRMATIONS": "20",
        "CAMBIST__STATE_DIR": "8180",
    }
    read = settings("[server]\nport = 1\n", environ)
    assert (read.server.port, read.server.idle_s, read.state_dir) == (8180, 30.5, "8180")
    assert (read.chains[1].market, read.chains[1].confirmations) == (True, 20)
    assert refusal("", {"CAMBIST__SERVER__PORT": "many"}).startswith("server.port: ")


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("[servers]\nport = 1", "servers", "server"),
        ("[server]\nprot = 1", "server.prot", "server.port"),
        ("[server]\nzebra = 1", "server.zebra", ""),
        ("[chains.1.node]\nurl = []", "chains.1.node.url", "chains.1.node.urls"),
        (
            '[venue.makers.a.chains.1]\nurl = "http://a.example"\nstales_s = 1',
            "venue.makers.a.chains.1.stales_s",
            "venue.makers.a.chains.1.stale_s",
        ),
    ],
)
def test_a_key_that_is_almost_right_is_named(text: str, key: str, meant: str) -> None:
    assert refusal(text) == f"{key}: is not a setting" + (f": did you mean {meant}?" if meant else "")
