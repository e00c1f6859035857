"""Settings of relayers."""

from pathlib import Path

import pytest

from cambist.config.errors import ConfigError
from cambist.config.sections.relayer import RelayerSettings
from cambist.config.settings import parse_settings

KEY = '[keys.sender]\nsource = "env:KEY"\n[relayers.1]\nkey = "sender"\n'


def test_defaults() -> None:
    settings = parse_settings(KEY, {"KEY": "01" * 32}, Path())
    assert settings.relayers == {1: RelayerSettings(key="sender")}
    assert settings.relayers[1].bump_bps == 1_250


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fee_cap_wei = 0", r"fee_cap_wei is 1 to"),
        ("tip_min_wei = 7\ntip_max_wei = 6", r"must not fall in this order"),
        ("gas_floor_wei = -1", r"gas_floor_wei is 0 to"),
        ("bump_bps = 999", r"bump_bps is 1000 to 10000, got 999"),
        ("stuck_s = 0", r"stuck_s is 1 to 3600"),
        ("in_flight_max = 33", r"in_flight_max is 1 to 32, got 33"),
        ("gas_max = 20999", r"gas_max is 21000 to"),
        ("fees = 1", r"relayers\.1\.fees: is not a setting"),
        ('[relayers.77]\nkey = "sender"', r"relayers\.77: unknown chain 77"),
        ('[relayers.10]\nkey = "nobody"', r"relayers\.10\.key: unknown key 'nobody'"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_settings(KEY + text, {"KEY": "01" * 32}, Path())
