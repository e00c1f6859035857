"""Sources of signing keys; no error or text repeats a key."""

import pytest

from cambist.config.errors import ConfigError
from cambist.config.secret import Secret
from cambist.crypto.custody.keys import signing_key
from cambist.crypto.custody.keystore import encrypt_key
from cambist.crypto.secp256k1 import CURVE_ORDER, SigningKey
from support.exception_chains import everything_told

DIGITS = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
KEYSTORE = encrypt_key(
    SigningKey(bytes.fromhex(DIGITS)),
    "testpassword",
    salt32=b"\x5a" * 32,
    iv16=b"\xa5" * 16,
    file_id="",
    scrypt_n=2,
).decode()
PASSWORD = Secret("testpassword", "env:PASSWORD")


@pytest.mark.parametrize(
    ("text", "password"),
    [
        pytest.param(DIGITS, None, id="digits"),
        pytest.param("0x" + DIGITS, None, id="0x"),
        pytest.param("0x" + DIGITS.upper(), None, id="upper case"),
        pytest.param(f"  0x{DIGITS}\n\n", None, id="white space around"),
        pytest.param(KEYSTORE, PASSWORD, id="keystore"),
        pytest.param("\n " + KEYSTORE, PASSWORD, id="keystore after white space"),
    ],
)
def test_a_key(text: str, password: Secret | None) -> None:
    assert signing_key(Secret(text, "env:KEY"), password).secret32().hex() == DIGITS


NOT_A_KEY = "is neither a private key of 64 hexadecimal digits nor a keystore"


@pytest.mark.parametrize(
    ("text", "password", "said"),
    [
        pytest.param(KEYSTORE, None, "is an encrypted keystore and needs a password", id="no password"),
        pytest.param(DIGITS, PASSWORD, "is a plain key, but a password is given", id="needless password"),
        pytest.param(KEYSTORE, Secret("x", "env:P"), "keystore: wrong password", id="wrong password"),
        pytest.param(KEYSTORE, Secret("\udcff", "env:P"), "keystore: the password is not", id="odd password"),
        pytest.param(
            "{" + DIGITS, PASSWORD, "keystore: not a version 3 keystore file", id="damaged keystore"
        ),
        pytest.param("", None, NOT_A_KEY, id="empty"),
        pytest.param(" \n", None, NOT_A_KEY, id="white space"),
        pytest.param("0x", None, NOT_A_KEY, id="0x alone"),
        pytest.param(DIGITS[:-1], None, NOT_A_KEY, id="63 digits"),
        pytest.param(DIGITS[:-2], None, NOT_A_KEY, id="62 digits"),
        pytest.param(DIGITS + "00", None, NOT_A_KEY, id="66 digits"),
        pytest.param("0x0x" + DIGITS, None, NOT_A_KEY, id="0x twice"),
        pytest.param(DIGITS[:-1] + "g", None, NOT_A_KEY, id="not hexadecimal"),
        pytest.param(DIGITS[:-1] + "\u0661", None, NOT_A_KEY, id="digit of another script"),
        pytest.param(DIGITS[:-1] + "\udcff", None, NOT_A_KEY, id="lone surrogate"),
        pytest.param("00" * 32, None, NOT_A_KEY, id="zero"),
        pytest.param(f"{CURVE_ORDER:064x}", None, NOT_A_KEY, id="the curve's order"),
        pytest.param("ff" * 32, None, NOT_A_KEY, id="above the order"),
        pytest.param("radar blur cabbage chef fix engine", None, NOT_A_KEY, id="words"),
    ],
)
def test_no_key(text: str, password: Secret | None, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        signing_key(Secret(text, "env:KEY"), password)
    assert caught.value.key == "env:KEY"
    assert str(caught.value).startswith(f"env:KEY: {said}")
    told = everything_told(caught.value)
    assert DIGITS[:16] not in told
    assert "radar" not in told
    assert "testpassword" not in told
