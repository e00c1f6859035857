"""From settings to credentials: checksums, keys behind policies, verifiers."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cambist.config.errors import AuthError, ConfigError, PolicyError
from cambist.config.secret import Secret
from cambist.config.settings import KeySettings, PolicySettings, Settings, parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.custody.keystore import encrypt_key
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from cambist.crypto.custody.signing_policy import PolicedKey
from cambist.crypto.hmac_auth import RequestSigner, RequestVerifier
from cambist.crypto.secp256k1 import SigningKey, recover_address
from cambist.engine.host.process.credentials import check_addresses, policed_key, request_verifier
from support.exception_chains import everything_told

DIGITS = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
SIGNER = bytes.fromhex("008aeeda4d805471df9b2a5b0f38a0c3bcba786b")
WETH = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
WRONG = "0xa0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
NOW_MS = 1_700_000_000_000


def settings(text: str, **environ: str) -> Settings:
    return parse_settings(text, environ, Path())


def key_settings(**policy: Any) -> KeySettings:
    said: dict[str, Any] = {"contracts": (f"1:{WETH}",)}
    return KeySettings(source=Secret(DIGITS, "env:KEY"), policy=PolicySettings(**said | policy))


def refusal(call: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        call()
    assert DIGITS not in everything_told(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "address", [USDC, USDC.lower(), "0x" + USDC[2:].upper(), ""], ids=["checksum", "lower", "upper", "none"]
)
def test_right_addresses_pass(address: str) -> None:
    check_addresses(settings(f"[chains.1]\nrouter = '{address}'"))


def test_shipped_addresses_are_right() -> None:
    check_addresses(settings(""))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(
            (f"[chains.56]\n{name} = '{WRONG}'", f"chains.56.{name}")
            for name in (
                "wrapped_native",
                "router",
                "delta_contract",
                "rfq_contract",
                "executor",
                "fee_vault",
            )
        ),
        (f"[[tokens]]\nchain_id = 1\naddress = '{WRONG}'\nsymbol = 'A'\ndecimals = 6", "tokens[0].address"),
        (f"[partners.p]\naddress = '{WRONG}'", "partners.p.address"),
    ],
)
def test_a_wrong_checksum_is_named_with_the_right_one(text: str, key: str) -> None:
    error = refusal(lambda: check_addresses(settings(text)))
    assert error.key == key
    assert str(error).startswith(f"{key}: expected the EIP-55 checksum {USDC}, got '{WRONG}'")


def test_a_key_signs_within_its_settings_and_not_beyond() -> None:
    key = policed_key(
        "maker", key_settings(amounts_max={f"1:{USDC.lower()}": "1000"}, expiry_min_s=60, expiry_max_s=90)
    )
    fine: dict[str, Any] = {
        "chain_id": 1,
        "contract": bytes.fromhex(WETH[2:]),
        "token": bytes.fromhex(USDC[2:]),
        "amount": 1_000,
        "expiry_s": 90,
        "now_s": 0,
    }
    assert recover_address(b"\1" * 32, *key.sign(b"\1" * 32, **fine)) == key.address == SIGNER
    beyond: list[dict[str, Any]] = [
        {"chain_id": 2},
        {"contract": b"\0" * 20},
        {"token": b"\0" * 20},
        {"amount": 1_001},
        {"expiry_s": 59},
        {"expiry_s": 91},
    ]
    for change in beyond:
        with pytest.raises(PolicyError):
            key.sign(b"\1" * 32, **fine | change)


@pytest.mark.parametrize("number", [0, 19])
def test_a_key_that_everybody_knows_signs_on_devnets_alone(number: int) -> None:
    known = account_keys(DEV_MNEMONIC, 20)[number]
    secret = Secret(known.secret32().hex(), "env:KEY")
    devnets = (f"31337:{WETH}", f"31338:{WETH}")

    def loaded(*contracts: str) -> PolicedKey:
        return policed_key("maker", KeySettings(source=secret, policy=PolicySettings(contracts=contracts)))

    assert loaded(*devnets).address == known.address
    error = refusal(lambda: loaded(*devnets, f"8453:{WETH}", f"10:{WETH}"))
    account = to_checksum(known.address)
    assert str(error) == f"keys.maker: is the public key of {account}: on chain 10 anybody may sign with it"
    assert known.secret32().hex() not in str(error)


def test_a_keystore_opens_with_its_password() -> None:
    text = encrypt_key(
        SigningKey(bytes.fromhex(DIGITS)), "pw", salt32=b"\1" * 32, iv16=b"\2" * 16, file_id="", scrypt_n=2
    ).decode()
    key = KeySettings(
        source=Secret(text, "file:maker.json"),
        password=Secret("pw", "env:PW"),
        policy=PolicySettings(contracts=(f"1:{WETH}",)),
    )
    assert policed_key("maker", key).address == SIGNER


POLICIES: dict[str, tuple[dict[str, Any], str]] = {
    "no contract": ({"contracts": ()}, "contracts: names no contract"),
    "bounds crossed": ({"expiry_min_s": 5, "expiry_max_s": 4}, "expiry_min_s: is above expiry_max"),
    "no chain": ({"contracts": (WETH,)}, f"contracts: expected chainId:address, got '{WETH}'"),
    "empty": ({"contracts": ("",)}, "contracts: expected chainId:address, got ''"),
    "chain zero": ({"contracts": (f"0:{WETH}",)}, "contracts: expected chainId:address"),
    "chain in hexadecimal": ({"contracts": (f"0x1:{WETH}",)}, "contracts: expected chainId:add"),
    "digit of another script": ({"contracts": (f"\u0661:{WETH}",)}, "contracts: expected chain"),
    "chain of 5000 digits": ({"contracts": ("9" * 5_000 + f":{WETH}",)}, "contracts: expected"),
    "a space": ({"contracts": (f"1: {WETH}",)}, "contracts: expected an address"),
    "no address": ({"contracts": ("1:",)}, "contracts: expected an address"),
    "more after it": ({"contracts": (f"1:{WETH}:x",)}, "contracts: expected an address"),
    "wrong checksum": ({"contracts": (f"1:{WRONG}",)}, f"contracts: expected the EIP-55 checksum {USDC}"),
    "token without chain": ({"amounts_max": {WETH: "1"}}, "amounts_max: expected chainId:address"),
    "fraction": ({"amounts_max": {f"1:{WETH}": "1.5"}}, f"amounts_max.1:{WETH}: expected"),
    "negative": ({"amounts_max": {f"1:{WETH}": "-1"}}, f"amounts_max.1:{WETH}: expected"),
    "empty amount": ({"amounts_max": {f"1:{WETH}": ""}}, f"amounts_max.1:{WETH}: expected"),
    "above uint256": ({"amounts_max": {f"1:{WETH}": str(2**256)}}, f"amounts_max.1:{WETH}: expec"),
    "one token twice": (
        {"amounts_max": {f"1:{WETH}": "1", f"1:{WETH.lower()}": "1000"}},
        "amounts_max: names a token twice",
    ),
}


@pytest.mark.parametrize(("policy", "said"), POLICIES.values(), ids=POLICIES)
def test_a_malformed_policy_is_refused_by_name(policy: dict[str, Any], said: str) -> None:
    assert str(refusal(lambda: policed_key("m", key_settings(**policy)))).startswith(f"keys.m.policy.{said}")


def test_an_empty_amount_list_is_a_list() -> None:
    assert policed_key("m", key_settings(amounts_max={})).policy.amounts_max == {}
    assert policed_key("m", key_settings()).policy.amounts_max is None


DOMAINS = """
[auth]
{options}
[auth.domains.venue]
keys = [{{ access_key = "k1", secret = "env:NEW" }}, {{ access_key = "k1", secret = "env:OLD" }}]
[auth.domains.other]
keys = [{{ access_key = "k1", secret = "env:CODED" }}]
secret_encoding = "base64"
"""
ENVIRON = {"NEW": "new", "OLD": "old", "CODED": base64.b64encode(b"\x00raw").decode()}


def verify(verifier: RequestVerifier, domain: str, secret: bytes, signed: str, arrives: str) -> bytes:
    headers = RequestSigner(domain, "k1", secret).headers(NOW_MS, "POST", signed, b"{}")
    raw_domain, access_key, timestamp, signature = (value.encode() for value in headers.values())
    return verifier.verify(
        raw_domain, access_key, timestamp, signature, b"POST", arrives.encode(), b"{}", NOW_MS
    )


@pytest.mark.parametrize(
    ("domain", "secret"), [("venue", b"new"), ("venue", b"old"), ("other", b"\x00raw")], ids=str
)
def test_every_configured_credential_verifies(domain: str, secret: bytes) -> None:
    verifier = request_verifier(settings(DOMAINS.format(options=""), **ENVIRON))
    for _ in range(2):
        assert verify(verifier, domain, secret, "/firm", "/firm") == domain.encode()
    with pytest.raises(AuthError):
        verify(verifier, domain, secret + b"x", "/firm", "/firm")
    with pytest.raises(AuthError):
        verify(verifier, domain, secret, "/firm", "/api/firm")


def test_options_of_auth_reach_the_verifier() -> None:
    options = "strip_prefix = '/api'\nreplay_window = true"
    verifier = request_verifier(settings(DOMAINS.format(options=options), **ENVIRON))
    assert verify(verifier, "venue", b"new", "/firm", "/api/firm") == b"venue"
    with pytest.raises(AuthError, match="already received"):
        verify(verifier, "venue", b"new", "/firm", "/api/firm")


def test_a_secret_of_another_encoding_is_refused_by_its_domain_and_not_repeated() -> None:
    read = settings(DOMAINS.format(options=""), **ENVIRON | {"CODED": "correct horse"})
    error = refusal(lambda: request_verifier(read))
    assert str(error) == "auth.domains.other: secret: is not base64 text"
    assert "horse" not in everything_told(error)
