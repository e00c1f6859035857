"""`cambist typed-data`: what a wallet would sign, on the example of EIP-712."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cambist.engine.cli import cli

COW = "c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4"  # keccak256("cow")
COW_ADDRESS = "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"
MAIL: dict[str, Any] = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "version", "type": "string"},
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "to", "type": "Person"},
            {"name": "contents", "type": "string"},
        ],
    },
    "primaryType": "Mail",
    "domain": {
        "name": "Ether Mail",
        "version": "1",
        "chainId": 1,
        "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
    },
    "message": {
        "from": {"name": "Cow", "wallet": COW_ADDRESS},
        "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
        "contents": "Hello, Bob!",
    },
}
HASHES = {
    "primaryType": "Mail",
    "digest": "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2",
    "typeHash": "0xa0cedeb2dc280ba39b857546d74f5549c3a1d7bdc2dd96bf881f76108e23dac2",
    "structHash": "0xc52c0ee5d84264471806290a3f2c4cecfc5490626bf912d01f240d7a274b371e",
    "domainSeparator": "0xf2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f",
}


def run(*arguments: str, document: object = None, **environ: str) -> Result:
    """Run a command with the document on standard input."""
    raw = document if isinstance(document, bytes) else json.dumps(document or MAIL).encode()
    return CliRunner().invoke(cli, ["typed-data", *arguments], input=raw, env=environ)


def printed(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    answer: dict[str, str] = json.loads(result.stdout)
    return answer


def test_hash_prints_every_hash_of_the_eips_example() -> None:
    assert printed(run("hash", "-")) == HASHES


def test_hash_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mail.json"
    path.write_text(json.dumps(MAIL))
    assert printed(run("hash", str(path))) == HASHES


def test_hash_takes_what_build_returns_as_to_sign() -> None:
    types = {name: members for name, members in MAIL["types"].items() if name != "EIP712Domain"}
    to_sign = {"domain": MAIL["domain"], "types": types, "value": MAIL["message"]}
    assert printed(run("hash", "-", document=to_sign)) == HASHES


def test_sign_and_recover_agree() -> None:
    signed = printed(run("sign", "-", "--key", "env:KEY", KEY=COW))
    assert {name: signed[name] for name in HASHES} == HASHES
    assert signed["signer"] == COW_ADDRESS
    assert len(bytes.fromhex(signed["signature"][2:])) == 65
    assert len(bytes.fromhex(signed["compactSignature"][2:])) == 64
    for form in ("signature", "compactSignature"):
        assert printed(run("recover", "-", "--signature", signed[form]))["signer"] == COW_ADDRESS


def test_a_signature_of_other_data_recovers_somebody_else() -> None:
    signature = printed(run("sign", "-", "--key", "env:KEY", KEY=COW))["signature"]
    other = MAIL | {"message": MAIL["message"] | {"contents": "Hello, Bob?"}}
    assert printed(run("recover", "-", "--signature", signature, document=other))["signer"] != COW_ADDRESS


DOCUMENTS: dict[str, tuple[object, str]] = {
    "not JSON": (b"{", "Invalid input"),
    "nothing": (b" ", "Invalid input"),
    "not UTF-8": (b'{"a":"\xff"}', "Invalid input"),
    "a list": ([1], "Invalid input: expected an object with types, domain and message, got an array of 1"),
    "no types": (MAIL | {"types": None}, "Invalid input: types: "),
    "no domain": (MAIL | {"domain": None}, "Invalid input: domain: "),
    "no message": (
        {key: MAIL[key] for key in ("types", "primaryType", "domain")},
        "Invalid input: message: ",
    ),
    "unknown primary type": (MAIL | {"primaryType": "Letter"}, "Invalid input: "),
    "a field missing": (MAIL | {"message": {"contents": "x"}}, "Invalid input: message.from"),
    "a line break in a name": (
        MAIL | {"types": {"a\nb": 5}},
        "Invalid input: types.a\\nb: expected an array of {name, type}, got 5",
    ),
    "too deep": (b"[" * 200_000, "Invalid input"),
}


@pytest.mark.parametrize(("document", "said"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_wrong_document_ends_with_one_line_and_status_1(document: object, said: str) -> None:
    result = run("hash", "-", document=document)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {said}")


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("", "Invalid signature: --signature: expected 0x and an even number"),
        ("0x", "Invalid signature: expected 65 bytes, or 64 in the compact form, got 0"),
        ("0x12", "Invalid signature: expected 65 bytes, or 64 in the compact form, got 1"),
        ("zz", "Invalid signature: --signature: "),
        ("0x" + "00" * 65, "Invalid signature: r is zero"),
        ("0x" + "11" * 64 + "05", "Invalid signature: v: expected 27, 28, 0 or 1, got 5"),
    ],
)
def test_a_wrong_signature_ends_with_status_1(signature: str, said: str) -> None:
    result = run("recover", "-", "--signature", signature)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {said}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["hash"],
        ["hash", "/no/such/file"],
        ["hash", "/"],
        ["hash", "-", "-"],
        ["sign", "-"],
        ["recover", "-"],
        ["hash", "-", "--key", "env:KEY"],
        ["rehash", "-"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (COW, "--key: expected env:NAME or file:PATH"),
        ("env:ABSENT", "--key: environment variable ABSENT is not set or empty"),
        ("file:/no/such.key", "--key: cannot read /no/such.key: No such file or directory"),
        ("env:SHORT", "env:SHORT: is neither a private key of 64 hexadecimal digits nor a keystore"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_and_not_repeated(key: str, said: str) -> None:
    result = run("sign", "-", "--key", key, SHORT=COW[:-1])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {said}")
    assert COW[:-1] not in result.output


def test_no_command_prints_the_key() -> None:
    assert COW not in run("sign", "-", "--key", "env:KEY", KEY=COW).output
