"""Domains of typed data: the command hashes those that ethers, viem and eth-account read alike, no others.

The behaviour to compare with: ethers 6.17 and viem 2.57 of tests/oracles and eth-account 0.14 of .venv-peers,
asked for the digest of each document of the table as it stands. For ethers, programs leave EIP712Domain out
of `types`.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from cambist.engine.cli import cli
from support.oracles import Oracle

CONTRACT = "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"
SALT = "0x" + "ab" * 32
TYPES = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}
FULL: dict[str, Any] = {"name": "Mail", "version": "1", "chainId": 1, "verifyingContract": CONTRACT}

Case = tuple[dict[str, Any], bool, str]
"""A domain, whether `types` has its EIP712Domain, and a word of the refusal, empty where all three agree."""


def with_each(name: str, values: Sequence[object], untyped: str = "", typed: str = "") -> list[Case]:
    """The full domain with each value of a member: words of refusals without and with the domain type."""
    domains = [FULL | {name: value} for value in values]
    return [(domain, *case) for domain in domains for case in ((False, untyped), (True, typed))]


ABSENT: list[Case] = [
    ({name: (FULL | {"salt": SALT})[name] for name in names.split()}, has_type, "")
    for names in (
        "", *TYPES, "name chainId", "version salt", "name version chainId",
        "name version chainId verifyingContract salt",
    )
    for has_type in (False, True)
]  # fmt: skip
NULL: list[Case] = [case for name in TYPES for case in with_each(name, [None], *["eth-account does not"] * 2)]
TEXTS: list[Case] = [
    *with_each("name", ["", "Ärger"]),
    *with_each("name", [1], "a string", "a string"),
    *with_each("version", ["2"]),
    *with_each("version", [""], "viem leaves"),
    *with_each("version", [1], "a string", "a string"),
]
CHAIN_IDS: list[Case] = [
    *with_each("chainId", [0, 137, 2**53 - 1]),
    *with_each("chainId", [2**53], "as text", "as text"),
    *with_each("chainId", [-1, True, 1.5], "uint256", "uint256"),
    *with_each("chainId", ["1", "0x1", "01", "0x01", "0xA", "0", str(2**256 - 1)], "viem leaves"),
    *with_each("chainId", ["0X1", "", "1.0", "1e3", "-1", "0x", "one"], *["domain.chainId"] * 2),
    *with_each("chainId", [str(2**256), "1_0", "\u0661"], *["domain.chainId"] * 2),
]
CONTRACTS: list[Case] = [
    *with_each("verifyingContract", [CONTRACT, CONTRACT.lower(), "0x" + "00" * 20, "0x" + "12" * 20]),
    *with_each(
        "verifyingContract", ["0x" + CONTRACT[2:].upper(), CONTRACT[:-1] + "c"], *[".verifyingCo"] * 2
    ),
    *with_each(
        "verifyingContract", [CONTRACT[2:], "0X" + CONTRACT[2:], CONTRACT[:-2]], *[".verifyingCo"] * 2
    ),
    *with_each("verifyingContract", ["", "0x", "mail.eth", 1], *[".verifyingCo"] * 2),
]
SALTS: list[Case] = [
    *with_each("salt", [SALT, "0x" + "AB" * 32]),
    *with_each("salt", ["0X" + "ab" * 32, "ab" * 32, SALT[:-2], SALT + "ab"], "domain.salt", "domain.salt"),
    *with_each("salt", ["", "a" * 32, 5, "0x"], "domain.salt", "domain.salt"),
]
UNKNOWN: list[Case] = [
    *with_each("app", ["x"], "only name", "only name"),
    *with_each("app", [None], "domain.app", "domain.app"),
]
CASES = [*ABSENT, *NULL, *TEXTS, *CHAIN_IDS, *CONTRACTS, *SALTS, *UNKNOWN]


def a_document(domain: dict[str, Any], members: list[tuple[str, str]] | None) -> dict[str, Any]:
    types: dict[str, Any] = {"Mail": [{"name": "to", "type": "string"}]}
    if members is not None:
        types["EIP712Domain"] = [{"name": name, "type": type_name} for name, type_name in members]
    return {"types": types, "primaryType": "Mail", "domain": domain, "message": {"to": "Bob"}}


def members_of(domain: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, type_name) for name, type_name in TYPES.items() if name in domain]


TYPED: list[tuple[list[tuple[str, str]], dict[str, Any]]] = [
    (members_of(FULL)[:1], FULL),
    (members_of(FULL), {"name": "Mail"}),
    ([*members_of(FULL)[1:], ("name", "string")], FULL),
    ([*members_of(FULL)[:2], ("chainId", "uint64"), ("verifyingContract", "address")], FULL),
    ([*members_of(FULL)[:3], ("verifyingContract", "bytes20")], FULL),
    ([*members_of(FULL), ("app", "string")], FULL | {"app": "x"}),
    ([*members_of(FULL), ("app", "string")], FULL),
    ([*members_of(FULL), ("name", "string")], FULL),
    (members_of(FULL), FULL | {"salt": None}),
]
"""Types EIP712Domain that differ from their domain, or from the members of EIP-712, and the domains."""


def digest_or_refusal(document: dict[str, Any], *command: str) -> str:
    """What the command prints: the digest, or the line of its refusal."""
    done = CliRunner().invoke(
        cli, ["typed-data", *(command or ("hash",)), "-"], input=json.dumps(document).encode()
    )
    if done.exit_code == 0:
        digest: str = json.loads(done.stdout)["digest"]
        return digest
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1, "one line"
    return done.stderr


@pytest.mark.oracle
@pytest.mark.parametrize(("domain", "has_type", "refusal"), CASES, ids=str)
def test_a_domain_is_hashed_where_all_three_libraries_read_it_alike(
    eth_account: Oracle,
    javascript: Oracle,
    domain: dict[str, Any],
    has_type: bool,
    refusal: str,
) -> None:
    document = a_document(domain, members_of(domain) if has_type else None)
    digests = digests_of(eth_account, javascript, document)
    told = digest_or_refusal(document)
    if refusal:
        assert len(set(digests)) > 1 or None in digests
        assert refusal in told
    else:
        assert set(digests) == {told}


@pytest.mark.oracle
@pytest.mark.parametrize(("members", "domain"), TYPED, ids=str)
def test_a_domain_type_of_other_members_is_refused(
    eth_account: Oracle, javascript: Oracle, members: list[tuple[str, str]], domain: dict[str, Any]
) -> None:
    document = a_document(domain, members)
    digests = digests_of(eth_account, javascript, document)
    assert len(set(digests)) > 1 or None in digests
    assert "domain" in digest_or_refusal(document).lower()


def digests_of(eth_account: Oracle, javascript: Oracle, document: dict[str, Any]) -> list[str | None]:
    """Digests by ethers, viem and eth-account; None for a refusal."""
    told = javascript.ask(document=document)
    read = (told["ethers"], told["viem"], eth_account.ask(ask="read", document=document))
    return [one.get("digest") for one in read]


@pytest.mark.parametrize(
    "command", [("sign", "--key", "env:KEY"), ("recover", "--signature", "0x" + "11" * 64 + "1b")]
)
def test_signing_and_recovering_refuse_the_same_domains(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KEY", "11" * 32)
    told = digest_or_refusal(a_document(FULL | {"chainId": "1"}, None), *command)
    assert "domain.chainId: expected" in told
    assert "types.EIP712Domain" in told
