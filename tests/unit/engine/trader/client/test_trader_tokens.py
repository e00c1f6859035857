"""Tokens by symbol or address; decimals from the contract; permits are signed over a checked domain."""

from typing import Any

import pytest

from cambist.codecs.contracts.abi import bytes_tail, encode, uint_word
from cambist.codecs.contracts.calldata import DECIMALS
from cambist.codecs.messages.resource_messages import TokenEntry, TokenList
from cambist.config import limits
from cambist.config.errors import ChainError, ConfigError, Reverted
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712 import Types, domain_separator, signing_digest
from cambist.crypto.secp256k1 import SigningKey, recover_address
from cambist.engine.chain.port import EthCall
from cambist.engine.trader.client.permits import permit_basis, sign_permit
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.tokens import find_token
from support.contracts.permits import eip2612_permit, token_domain

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

    async def call_many(self, calls: list[EthCall]) -> list[bytes | Exception]:
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


def answers(name: str = "USD Coin", version: str | None = "1", domain: bytes | None = None) -> list[Any]:
    separator = domain or domain_separator(
        {"name": name, "version": version or "1", "chainId": 1, "verifyingContract": to_checksum(USDC)}
    )
    told = Reverted("no") if version is None else encode(bytes_tail(version.encode()))
    return [uint_word(3), separator, encode(bytes_tail(name.encode())), told]


@pytest.mark.parametrize("version", [None, "1", "2", "3.1"])
def test_a_permit_is_the_tokens_own_call_signed_over_its_domain(version: str | None) -> None:
    basis = permit_basis(answers(version=version), 1, USDC)
    assert basis.nonce == 3
    permit = sign_permit(basis, KEY, ODD, 10**6, 1_900_000_000)
    assert permit == eip2612_permit(basis.separator, KEY, ODD, 10**6, nonce=3, deadline=1_900_000_000)
    assert len(permit) == 224


def test_a_version_that_the_token_does_not_tell_is_found() -> None:
    told = answers(version="2")
    told[3] = Reverted("no")
    assert permit_basis(told, 1, USDC).separator == answers(version="2")[1]


def test_a_permit_recovers_its_owner() -> None:
    separator = token_domain("USD Coin", 1, USDC)
    basis = permit_basis(answers(domain=separator), 1, USDC)
    permit = sign_permit(basis, KEY, ODD, 5, 6)
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


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_token_without_permits_is_told(missing: int) -> None:
    told = answers()
    told[missing] = Reverted("no")
    with pytest.raises(ChainError, match="takes no EIP-2612 permits: use an approval"):
        permit_basis(told, 1, USDC)


@pytest.mark.parametrize(
    "changed",
    [
        {1: domain_separator({"name": "USD Coin", "version": "1", "chainId": 2,
                              "verifyingContract": to_checksum(USDC)})},
        {1: domain_separator({"name": "USD Coin", "version": "1", "chainId": 1,
                              "verifyingContract": to_checksum(ODD)})},
        {1: bytes(32)},
        {1: b""},
        {0: b""},
        {2: b""},
        {2: encode(bytes_tail(b"\xff"))},
        {2: encode(bytes_tail(b"x" * 500))},
    ],
    ids=["another chain", "another contract", "zeros", "none", "no nonce", "no name", "no text", "too long"],
)  # fmt: skip
def test_a_domain_that_is_not_the_tokens_is_not_signed(changed: dict[int, bytes]) -> None:
    told = answers()
    for at, value in changed.items():
        told[at] = value
    with pytest.raises(ChainError, match="the permit domain of"):
        permit_basis(told, 1, USDC)
