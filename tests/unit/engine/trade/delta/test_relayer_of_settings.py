"""A relayer from settings: transactions that its key may sign, and the setting that an error names."""

from pathlib import Path
from typing import Any

import pytest

from cambist.config.errors import ConfigError, PolicyError
from cambist.config.settings import parse_settings
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.trade.delta.open_delta import relay_key, relayer_of

KEY = SigningKey(b"\x01" * 32)
DELTA = "0x" + "d1" * 20
TEXT = f"""
[chains.1]
delta_contract = "{DELTA}"
confirmations = 7
[keys.sender]
source = "env:KEY"
[relayers.1]
key = "sender"
fee_cap_wei = 9000000000
gas_max = 1000000
"""


def settings_of(text: str, key: str = "01" * 32) -> Any:
    return parse_settings(text, {"KEY": key}, Path())


def test_the_key_calls_delta_and_itself_and_nothing_else() -> None:
    key = relay_key(settings_of(TEXT), 1)
    assert key.address == KEY.address
    for target in (bytes.fromhex(DELTA[2:]), KEY.address):
        key.policy.check(1, target, 0, 1_000_000, 9_000_000_000)
    for refused in (
        (1, b"\x0e" * 20, 0, 21_000, 1),
        (10, KEY.address, 0, 21_000, 1),
        (1, KEY.address, 1, 21_000, 1),
        (1, KEY.address, 0, 1_000_001, 1),
        (1, KEY.address, 0, 21_000, 9_000_000_001),
        (1, b"", 0, 21_000, 1),
    ):
        with pytest.raises(PolicyError):
            key.policy.check(*refused)


def test_the_key_hands_messages_in_at_the_transmitter_of_cctp() -> None:
    transmitter = "0x" + "c7" * 20
    text = TEXT.replace("confirmations = 7", f'confirmations = 7\nmessage_transmitter = "{transmitter}"')
    key = relay_key(settings_of(text), 1)
    for target in (transmitter, DELTA):
        key.policy.check(1, bytes.fromhex(target[2:]), 0, 1_000_000, 9_000_000_000)
    with pytest.raises(PolicyError):
        relay_key(settings_of(TEXT), 1).policy.check(1, bytes.fromhex(transmitter[2:]), 0, 21_000, 1)


def test_a_key_that_everybody_knows_sends_nothing_to_a_real_chain() -> None:
    public = account_keys(DEV_MNEMONIC, 1)[0].secret32().hex()
    devnet = TEXT.replace("s.1]\ndelta", "s.31337]\nname = 'devnet'\ndelta").replace("s.1]", "s.31337]")
    assert relay_key(settings_of(devnet, public), 31_337)
    with pytest.raises(ConfigError, match=r"^keys.sender: is the public key of 0xf39F.*: on chain 1"):
        relay_key(settings_of(TEXT, public), 1)


def test_a_relayer_is_made_of_it() -> None:
    class OfChainOne:
        chain_id = 1

    unused: Any = None
    chain: Any = OfChainOne()
    relayer = relayer_of(settings_of(TEXT), chain, unused, unused, lambda: 0)
    assert not relayer.statistics().holds


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("", "01" * 32, r"^relayers\.1: is not set"),
        (
            TEXT.replace(f'delta_contract = "{DELTA}"', ""),
            "01" * 32,
            r"^chains\.1\.delta_contract: is not set",
        ),
        (TEXT, "nonsense", r"^keys\.sender: .*is neither a private key"),
    ],
)
def test_what_is_missing_is_named(text: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        relay_key(settings_of(text, key), 1)
