"""Keystore files: the definition's known answers, files that others can read, and hostile ones."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from cambist.config.errors import ConfigError
from cambist.crypto.custody.keystore import decrypt_key, encrypt_key
from cambist.crypto.secp256k1 import CURVE_ORDER, SigningKey
from support.exception_chains import everything_told
from support.oracles import Oracle

SECRET = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
PASSWORD = "testpassword"
FILE_ID = "3198bc9c-6672-5ab3-d995-4942343ae5b6"
QUICK_N = 4

PBKDF2: dict[str, Any] = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": FILE_ID,
    "version": 3,
}
SCRYPT: dict[str, Any] = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
        "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
        "kdf": "scrypt",
        "kdfparams": {
            "dklen": 32,
            "n": 262144,
            "r": 1,
            "p": 8,
            "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
        },
        "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
    },
    "id": FILE_ID,
    "version": 3,
}
"""Both from the Web3 Secret Storage Definition, "Test Vectors"."""


def written(password: str = PASSWORD, secret: bytes = SECRET) -> bytes:
    return encrypt_key(
        SigningKey(secret),
        password,
        salt32=b"\x5a" * 32,
        iv16=b"\xa5" * 16,
        file_id=FILE_ID,
        scrypt_n=QUICK_N,
    )


def refusal(text: bytes, password: str = PASSWORD) -> str:
    with pytest.raises(ConfigError) as caught:
        decrypt_key(text, password)
    told = everything_told(caught.value)
    assert SECRET.hex() not in told
    assert PASSWORD not in told
    assert str(caught.value).startswith("keystore: ")
    return str(caught.value).removeprefix("keystore: ")


@pytest.mark.parametrize("document", [PBKDF2, SCRYPT], ids=["pbkdf2", "scrypt"])
def test_known_answers_of_the_definition(document: dict[str, Any]) -> None:
    assert decrypt_key(json.dumps(document).encode(), PASSWORD).secret32() == SECRET


def test_what_is_written_is_read_again() -> None:
    for password in (PASSWORD, " ", "p" * 1_000, "pässwörd 東京 😀"):
        assert decrypt_key(written(password), password).secret32() == SECRET


def test_the_smallest_and_the_largest_key_are_kept_whole() -> None:
    for number in (1, CURVE_ORDER - 1):
        secret = number.to_bytes(32, "big")
        assert decrypt_key(written(secret=secret), PASSWORD).secret32() == secret


def test_a_written_file_has_the_members_that_wallets_read() -> None:
    document = json.loads(written())
    assert document["version"] == 3
    assert document["id"] == FILE_ID
    assert document["address"] == "008aeeda4d805471df9b2a5b0f38a0c3bcba786b"
    assert document["crypto"]["cipher"] == "aes-128-ctr"
    assert document["crypto"]["cipherparams"] == {"iv": "a5" * 16}
    assert document["crypto"]["kdf"] == "scrypt"
    assert document["crypto"]["kdfparams"] == {"dklen": 32, "n": QUICK_N, "r": 8, "p": 1, "salt": "5a" * 32}
    assert SECRET.hex() not in written().decode()


@pytest.mark.oracle
def test_a_written_file_is_read_by_eth_account(eth_account: Oracle) -> None:
    text = written("pässwörd").decode()
    assert eth_account.ask(ask="keystore", text=text, password="pässwörd")["key"] == SECRET.hex()


def test_the_key_of_early_wallets_is_written_large() -> None:
    document = json.loads(written())
    document["Crypto"] = document.pop("crypto")
    assert decrypt_key(json.dumps(document).encode(), PASSWORD).secret32() == SECRET


def test_members_that_we_do_not_know_are_left_alone() -> None:
    document = json.loads(written())
    document["x-ethers"] = {"client": "other"}
    document["crypto"]["comment"] = None
    del document["id"], document["address"]
    assert decrypt_key(json.dumps(document).encode(), PASSWORD).secret32() == SECRET


@pytest.mark.parametrize("password", ["", "Testpassword", PASSWORD + " ", "\0" + PASSWORD, "x" * 10_000])
def test_another_password_is_refused(password: str) -> None:
    assert refusal(written(), password) == "wrong password, or the file is damaged"


def test_a_password_that_has_no_bytes_is_refused() -> None:
    assert refusal(written(), "\udcfftest") == "the password is not UTF-8 text"


@pytest.mark.parametrize(
    ("password", "said"), [("", "the password is empty"), ("\udcff", "the password is not UTF-8 text")]
)
def test_nothing_is_written_under_such_a_password(password: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        written(password)


@pytest.mark.parametrize("name", ["ciphertext", "mac", "salt"])
def test_one_changed_digit_is_damage(name: str) -> None:
    document = json.loads(written())
    holder = document["crypto"]["kdfparams"] if name == "salt" else document["crypto"]
    holder[name] = ("0" if holder[name][0] != "0" else "1") + holder[name][1:]
    assert refusal(json.dumps(document).encode()) == "wrong password, or the file is damaged"


Change = Callable[[dict[str, Any]], object]
HOSTILE: dict[str, tuple[Change, str]] = {
    "version 1": (lambda file: file.update(version=1), "version 1 is not supported, only 3"),
    "version 4": (lambda file: file.update(version=4), "version 4 is not supported, only 3"),
    "version as text": (lambda file: file.update(version="3"), "not a version 3 keystore file"),
    "no version": (lambda file: file.pop("version"), "not a version 3 keystore file"),
    "no crypto": (lambda file: file.pop("crypto"), "not a version 3 keystore file"),
    "crypto is null": (lambda file: file.update(crypto=None), "not a version 3 keystore file"),
    "no mac": (lambda file: file["crypto"].pop("mac"), "not a version 3 keystore file"),
    "no kdf": (lambda file: file["crypto"].pop("kdf"), "not a version 3 keystore file"),
    "no iv": (lambda file: file["crypto"]["cipherparams"].pop("iv"), "not a version 3 keystore file"),
    "other cipher": (lambda file: file["crypto"].update(cipher="aes-256-ctr"), "only aes-128-ctr"),
    "cipher cbc": (lambda file: file["crypto"].update(cipher="aes-128-cbc"), "only aes-128-ctr"),
    "short iv": (lambda file: file["crypto"]["cipherparams"].update(iv="00" * 15), "only aes-128-ctr"),
    "long iv": (lambda file: file["crypto"]["cipherparams"].update(iv="00" * 17), "only aes-128-ctr"),
    "short ciphertext": (lambda file: file["crypto"].update(ciphertext="00" * 31), "only aes-128-ctr"),
    "long ciphertext": (lambda file: file["crypto"].update(ciphertext="00" * 64), "only aes-128-ctr"),
    "no ciphertext": (lambda file: file["crypto"].update(ciphertext=""), "only aes-128-ctr"),
    "ciphertext not hex": (lambda file: file["crypto"].update(ciphertext="zz"), "ciphertext is not hex"),
    "mac not hex": (lambda file: file["crypto"].update(mac="0x00"), "mac is not hexadecimal"),
    "empty mac": (lambda file: file["crypto"].update(mac=""), "wrong password, or the file is damaged"),
    "short mac": (lambda file: file["crypto"].update(mac="00"), "wrong password, or the file is damaged"),
    "unknown kdf": (lambda file: file["crypto"].update(kdf="argon2"), "kdf is neither scrypt nor pbkdf2"),
    "no kdf parameters": (lambda file: file["crypto"].update(kdfparams={}), "salt is not hexadecimal"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_file_of_another_kind_is_refused(change: Change, said: str) -> None:
    document = json.loads(written())
    change(document)
    assert refusal(json.dumps(document).encode()).startswith(said)


KDF: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # (file, what its kdfparams say instead, the refusal); none of them may cost time or memory
    (SCRYPT, {"n": 0}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": -2}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": 1}, "scrypt's n is no power of two"),
    (SCRYPT, {"n": 262_143}, "scrypt's n is no power of two"),
    (SCRYPT, {"n": 2**22, "r": 1}, "scrypt's n is no power of two, or it asks for more than 536870912"),
    (SCRYPT, {"n": 2**20, "r": 8, "p": 1}, "scrypt's n is no power of two, or it asks for more than"),
    (SCRYPT, {"n": 2**29, "r": 2**29, "p": 2**29}, "scrypt's n is no power of two, or it asks for more than"),
    (SCRYPT, {"n": 2**64}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": 10**400}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": 262_144.0}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": "262144"}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": True}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"n": None}, "kdfparams.n is not a whole number"),
    (SCRYPT, {"r": 0}, "kdfparams.r is not a whole number"),
    (SCRYPT, {"r": 2**31}, "kdfparams.r is not a whole number"),
    (SCRYPT, {"p": 0}, "kdfparams.p is not a whole number"),
    (SCRYPT, {"p": 17}, "scrypt's p is above 16"),
    (SCRYPT, {"n": 2, "r": 1, "p": 2**24}, "scrypt's n is no power of two, or it asks for more than"),
    (SCRYPT, {"dklen": 16}, "kdfparams.dklen is not 32"),
    (SCRYPT, {"dklen": 2**40}, "kdfparams.dklen is not 32"),
    (SCRYPT, {"salt": None}, "salt is not hexadecimal"),
    (SCRYPT, {"salt": 5}, "salt is not hexadecimal"),
    (SCRYPT, {"salt": "é"}, "salt is not hexadecimal"),
    (PBKDF2, {"c": 0}, "kdfparams.c is not a whole number"),
    (PBKDF2, {"c": 10_000_001}, "kdfparams.c is not a whole number from 1 to 10000000"),
    (PBKDF2, {"c": 2**63}, "kdfparams.c is not a whole number"),
    (PBKDF2, {"c": 1.5}, "kdfparams.c is not a whole number"),
    (PBKDF2, {"prf": "hmac-sha512"}, "kdfparams.prf is not hmac-sha256"),
    (PBKDF2, {"prf": None}, "kdfparams.prf is not hmac-sha256"),
    (PBKDF2, {"dklen": 64}, "kdfparams.dklen is not 32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "params", "said"),
    KDF,
    ids=[f"{row[0]['crypto']['kdf']} {row[1]}"[:40] for row in KDF],
)
def test_hostile_kdf_parameters_are_refused(
    document: dict[str, Any], params: dict[str, Any], said: str
) -> None:
    changed = copy.deepcopy(document)
    changed["crypto"]["kdfparams"] |= params
    assert refusal(json.dumps(changed).encode()).startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{}", b"[]", b"null", b"3", b'"x"', b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"\0" * 100,
        b"[" * 100_000, b'{"crypto":' * 100_000, b'{"crypto":{"kdfparams":' + b'{"a":' * 50_000,
        b'{"version":' + b"9" * 100_000 + b"}", b'{"version":1e400,"crypto":{}}', b'{"version":NaN}',
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_what_is_no_keystore_is_refused(text: bytes) -> None:
    assert refusal(text) == "not a version 3 keystore file"


def test_a_key_that_is_none_is_refused_even_under_the_right_password() -> None:
    document = json.loads(written())
    stream = bytes(
        a ^ b for a, b in zip(SECRET, bytes.fromhex(document["crypto"]["ciphertext"]), strict=True)
    )
    ciphertext = stream.hex()  # decrypts to zero
    document["crypto"]["ciphertext"] = ciphertext
    document["crypto"]["mac"] = mac_of(document)
    assert refusal(json.dumps(document).encode()) == (
        "a private key is 32 bytes, above zero and below the curve order"
    )


def mac_of(document: dict[str, Any]) -> str:
    """The MAC by the definition, from outside our code: keccak-256 of derived[16:32] and the ciphertext."""
    import hashlib

    from Crypto.Hash import keccak

    params = document["crypto"]["kdfparams"]
    salt = bytes.fromhex(params["salt"])
    derived = hashlib.scrypt(
        PASSWORD.encode(), salt=salt, n=params["n"], r=params["r"], p=params["p"], dklen=32
    )
    data = derived[16:] + bytes.fromhex(document["crypto"]["ciphertext"])
    return str(keccak.new(digest_bits=256, data=data).hexdigest())


def test_an_address_that_is_not_the_keys_is_refused() -> None:
    document = json.loads(written())
    for address in (document["address"], "0x" + document["address"].upper(), ""):
        assert (
            decrypt_key(json.dumps({**document, "address": address}).encode(), PASSWORD).secret32() == SECRET
        )
    assert "its address is not that of its key" in refusal(
        json.dumps({**document, "address": "00" * 20}).encode()
    )
