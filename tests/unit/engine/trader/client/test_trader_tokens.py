"""Tokens by symbol or address; decimals from the contract; permits are signed over a checked domain."""

from typing import Any

import pytest

from cambist.codecs.contracts.abi import bytes_tail, encode, uint_word
from cambist.codecs.contracts.calldata import DECIMALS
from cambist.codecs.contracts.permit import PermitForm
from cambist.codecs.messages.resource_messages import TokenEntry, TokenList
from cambist.config import limits
from cambist.config.errors import ChainError, ConfigError, Reverted
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712 import Types, domain_separator, signing_digest
from cambist.crypto.secp256k1 import SigningKey, recover_address
from cambist.engine.chain.port import EthCall, Header
from cambist.engine.trader.client.permits import (
    PermitBasis,
    PermitWish,
    accepted,
    permit_bases,
    permit_questions,
    sign_permit,
    trial_calls,
)
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.tokens import find_token
from support.contracts.permits import dai_permit, eip2612_permit, token_domain

USDC, ODD, SLY = b"\x05" * 20, b"\x0d" * 20, b"\x0c" * 20
LISTED = TokenList(
    (
        TokenEntry("ETH", limits.NATIVE_PLACEHOLDER, 18, 1),
        TokenEntry("USDC", to_checksum(USDC), 2, 1),  # the venue is wrong about its decimals
        TokenEntry("TWO", to_checksum(USDC), 6, 1),
        TokenEntry("TWO", to_checksum(ODD), 6, 1),
        TokenEntry("BAD", "0x1", 6, 1),
    )
)
KEY = SigningKey(b"\7" * 32)


class Tokens:
    """A chain that answers about tokens: address -> (decimals(), symbol())."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            USDC: (uint_word(6), encode(bytes_tail(b"USDC"))),
            SLY: (uint_word(6), encode(bytes_tail(b"000 USDC"))),
            ODD: (uint_word(18), b"MKR".ljust(32, b"\0")),
            b"\x0e" * 20: (uint_word(255), b""),
            b"\x0f" * 20: (b"", b""),
        } | answers

    async def recent_block(self, age_s: float) -> Header:
        return Header(7, b"\x07" * 32, b"\x06" * 32, 0, 0)

    async def call_many(self, calls: list[EthCall], at: bytes) -> list[bytes | Exception]:
        assert at == b"\x07" * 32
        answers = self.answers.get(calls[0].to, (Reverted("no"), Reverted("no")))
        return [answers[0] if call.data == DECIMALS else answers[1] for call in calls]


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("USDC", TradedToken(USDC, "USDC", 6)),
        ("usdc", TradedToken(USDC, "USDC", 6)),
        (to_checksum(USDC), TradedToken(USDC, "USDC", 6)),
        (to_checksum(ODD), TradedToken(ODD, to_checksum(ODD), 18)),
        (to_checksum(SLY), TradedToken(SLY, to_checksum(SLY), 6)),
        ("eth", TradedToken(bytes.fromhex(limits.NATIVE_PLACEHOLDER[2:]), "ETH", 18)),
        (limits.NATIVE_PLACEHOLDER, TradedToken(bytes.fromhex(limits.NATIVE_PLACEHOLDER[2:]), "native", 18)),
    ],
)
async def test_symbols_and_addresses_lead_to_tokens(text: str, token: TradedToken) -> None:
    chain: Any = Tokens()
    assert await find_token(chain, LISTED, text, "SELL_TOKEN") == token


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "NOPE",
            "SELL_TOKEN: expected an address or a symbol that the venue lists (BAD, ETH, TWO, USDC)",
        ),
        ("TWO", "SELL_TOKEN: the venue lists several TWO: name it by its address"),
        ("BAD", "SELL_TOKEN: the venue lists BAD at 0x1: no address"),
        ("0x12", "SELL_TOKEN: expected"),
        (f"0x{'0e' * 20}", "SELL_TOKEN: the token has 255 decimals"),
        (f"0x{'0f' * 20}", "SELL_TOKEN: no token at"),
        (f"0x{'10' * 20}", "SELL_TOKEN: no token at"),
    ],
)
async def test_what_is_no_token_is_refused_by_argument(text: str, said: str) -> None:
    chain: Any = Tokens()
    with pytest.raises(ConfigError) as refused:
        await find_token(chain, LISTED, text, "SELL_TOKEN")
    assert said in refused.value.detail


def answers(
    name: str = "USD Coin", version: str | None = "1", domain: bytes | None = None
) -> dict[str, bytes | Exception]:
    """A token's answers to `permit_questions`: EIP-2612's, a name and, unless it is None, a version."""
    separator = domain or domain_separator(
        {"name": name, "version": version or "1", "chainId": 1, "verifyingContract": to_checksum(USDC)}
    )
    told: dict[str, bytes | Exception] = dict.fromkeys(permit_questions(USDC, KEY.address), Reverted("no"))
    told |= {"nonces(address)": uint_word(3), "DOMAIN_SEPARATOR()": separator}
    told["name()"] = encode(bytes_tail(name.encode()))
    if version is not None:
        told["version()"] = encode(bytes_tail(version.encode()))
    return told


def basis_of(told: dict[str, bytes | Exception]) -> PermitBasis:
    (basis,) = permit_bases(told, 1, USDC)
    return basis


@pytest.mark.parametrize("version", [None, "1", "2", "3.1", ""])
def test_a_permit_is_the_tokens_own_call_signed_over_its_domain(version: str | None) -> None:
    basis = basis_of(answers(version=version))
    assert basis.nonce == 3
    permit = sign_permit(basis, KEY, PermitWish(USDC, ODD, 10**6, 1_900_000_000), PermitForm.EIP2612)
    assert permit == eip2612_permit(basis.separator, KEY, ODD, 10**6, nonce=3, deadline=1_900_000_000)
    assert len(permit) == 224


def test_a_permit_of_dais_kind_is_the_tokens_own_call_too() -> None:
    basis = basis_of(answers())
    permit = sign_permit(basis, KEY, PermitWish(USDC, ODD, 10**6, 1_900_000_000), PermitForm.DAI)
    assert permit == dai_permit(basis.separator, KEY, ODD, nonce=3, expiry=1_900_000_000)
    assert len(permit) == 256


def test_a_version_that_the_token_does_not_tell_is_found() -> None:
    told = answers(version="2")
    told["version()"] = Reverted("no")
    assert basis_of(told).separator == answers(version="2")["DOMAIN_SEPARATOR()"]


def test_a_token_that_tells_no_separator_leaves_the_choice_to_the_trials() -> None:
    told = answers(version=None)
    told["DOMAIN_SEPARATOR()"] = Reverted("no")
    separators = [basis.separator for basis in permit_bases(told, 1, USDC)]
    here = {"verifyingContract": to_checksum(USDC)}
    one, none, salted = (
        domain_separator({"name": "USD Coin", **more, **here})
        for more in (
            {"version": "1", "chainId": 1},
            {"chainId": 1},
            {"version": "1", "salt": f"0x{1:064x}"},
        )
    )
    assert {one, none, salted} <= {*separators}
    assert len(separators) == len({*separators})


def test_the_first_permit_that_the_token_accepts_is_taken() -> None:
    permits = [bytes([number]) * 224 for number in range(3)]
    no, forged = Reverted("another domain"), Reverted("forged")
    assert len(trial_calls(permits, USDC, ODD)) == 6
    assert accepted(permits, [no, forged, b"", forged, b"", forged]) == (permits[1], "")
    assert accepted(permits[:1], [no, forged]) == (b"", "the permit is refused: another domain")
    assert accepted(permits[:1], [b"", b""]) == (b"", "the permit is refused: the token takes none")


def test_a_permit_recovers_its_owner() -> None:
    separator = token_domain("USD Coin", 1, USDC)
    basis = basis_of(answers(domain=separator))
    permit = sign_permit(basis, KEY, PermitWish(USDC, ODD, 5, 6), PermitForm.EIP2612)
    types = Types(
        {"Permit": tuple((name, "address" if name in ("owner", "spender") else "uint256")
                         for name in ("owner", "spender", "value", "nonce", "deadline"))}
    )  # fmt: skip
    message = {
        "owner": to_checksum(KEY.address), "spender": to_checksum(ODD), "value": 5, "nonce": 3, "deadline": 6
    }  # fmt: skip
    digest32 = signing_digest(separator, types.hash_struct("Permit", message, "permit"))
    v = int.from_bytes(permit[128:160], "big")
    assert recover_address(digest32, permit[160:], v - 27) == KEY.address


@pytest.mark.parametrize("missing", ["nonces(address)", "name()"])
@pytest.mark.parametrize("answer", [Reverted("no"), b""])
def test_a_token_without_permits_is_told(missing: str, answer: bytes | Exception) -> None:
    told = answers() | {missing: answer}
    said = "takes no EIP-2612 permits|the permit domain of"
    with pytest.raises(ChainError, match=f"({said}).*: use an approval in place of --permit"):
        permit_bases(told, 1, USDC)


@pytest.mark.parametrize(
    "changed",
    [
        {"DOMAIN_SEPARATOR()": domain_separator({"name": "USD Coin", "version": "1", "chainId": 2,
                                                 "verifyingContract": to_checksum(USDC)})},
        {"DOMAIN_SEPARATOR()": domain_separator({"name": "USD Coin", "version": "1", "chainId": 1,
                                                 "verifyingContract": to_checksum(ODD)})},
        {"DOMAIN_SEPARATOR()": domain_separator({"name": "USD Coin", "version": "1",
                                                 "verifyingContract": to_checksum(USDC)})},
        {"DOMAIN_SEPARATOR()": domain_separator({"name": "USD Coin", "version": "1", "salt": f"0x{2:064x}",
                                                 "verifyingContract": to_checksum(USDC)})},
        {"DOMAIN_SEPARATOR()": bytes(32)},
        {"name()": encode(bytes_tail(b"\xff"))},
        {"name()": encode(bytes_tail(b"x" * 500))},
    ],
    ids=["another chain", "another contract", "any chain", "another salt", "zeros", "no text", "too long"],
)  # fmt: skip
def test_a_domain_that_is_not_the_tokens_is_not_signed(changed: dict[str, bytes | Exception]) -> None:
    with pytest.raises(ChainError, match="the permit domain of"):
        permit_bases(answers() | changed, 1, USDC)
