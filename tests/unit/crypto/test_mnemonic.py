"""Mnemonics: the published vectors of BIP-32, the well-known accounts, and eth-account's answers."""

import pytest

from cambist.config.errors import ConfigError
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys, derive
from support.chain.anvil import KEYS
from support.oracles import Oracle

HARDENED = 1 << 31
SEED_1 = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
MNEMONICS = (
    DEV_MNEMONIC,
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
    "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
    "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
)


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ((), "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"),
        ((HARDENED,), "edb2e14f9ee77d26dd93b4ecede8d16ed408ce149b6cd80b0715a2d911a0afea"),
        ((HARDENED, 1), "3c6cb8d0f6a264c91ea8b5030fadaa8e538b020f0a387421a12de9319dc93368"),
        ((HARDENED, 1, HARDENED + 2), "cbce0d719ecf7431d88e6a89fa1483e02e35092af60c042b1df2ff59fa424dca"),
        (
            (HARDENED, 1, HARDENED + 2, 2, 1_000_000_000),
            "471b76e389e528d6de6d816857e012c5455051cad6660850e58372a6c3e6e7c8",
        ),
    ],
)
def test_the_tree_of_bip_32s_first_vector(path: tuple[int, ...], secret: str) -> None:
    assert derive(SEED_1, path)[0].hex() == secret


def test_the_accounts_of_every_development_node() -> None:
    keys = account_keys(DEV_MNEMONIC, 4)
    assert tuple(key.secret32().hex() for key in keys) == KEYS
    assert keys[0].address.hex() == "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"


@pytest.mark.oracle
@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_as_eth_account_derives(mnemonic: str, eth_account: Oracle) -> None:
    answer = eth_account.ask(ask="mnemonic", mnemonic=mnemonic, count=3)
    assert answer["keys"] == [key.secret32().hex() for key in account_keys(mnemonic, 3)]


def test_white_space_between_the_words_does_not_count() -> None:
    keys = account_keys(f"  {DEV_MNEMONIC.replace(' ', '  ')}\n", 1)
    assert keys[0].secret32().hex() == KEYS[0]


@pytest.mark.parametrize("text", ["", "test junk", DEV_MNEMONIC + " test", DEV_MNEMONIC.replace("junk", "7")])
def test_what_is_no_mnemonic_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        account_keys(text, 1, "--mnemonic")
    assert refusal.value.key == "--mnemonic"
    assert "test" not in refusal.value.detail
