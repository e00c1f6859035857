"""EIP-1271: calldata, and answers that count as a yes."""

import pytest

from cambist.crypto.eip1271 import MAGIC_VALUE4, SELECTOR4, is_magic_answer, is_valid_signature_calldata
from cambist.crypto.keccak import keccak256
from support.oracles import Oracle


def test_selector_is_the_magic_value() -> None:
    assert SELECTOR4 == MAGIC_VALUE4


@pytest.mark.oracle
@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 64, 65, 500])
def test_calldata_equals_eth_abi(length: int, eth_account: Oracle) -> None:
    digest32, signature = keccak256(b"x"), bytes(range(256)) * 2
    answer = eth_account.ask(
        ask="abi",
        types=["bytes32", "bytes"],
        values=[f"hex:{digest32.hex()}", f"hex:{signature[:length].hex()}"],
    )
    assert is_valid_signature_calldata(digest32, signature[:length]).hex() == "1626ba7e" + answer["encoded"]


@pytest.mark.parametrize(
    ("returned", "yes"),
    [
        (MAGIC_VALUE4 + bytes(28), True),
        (MAGIC_VALUE4 + bytes(60), True),
        (b"", False),
        (MAGIC_VALUE4, False),
        (MAGIC_VALUE4 + bytes(27), False),
        (MAGIC_VALUE4 + bytes(27) + b"\1", False),
        (bytes(28) + MAGIC_VALUE4, False),
        (b"\xff" * 32, False),
        ((1).to_bytes(32, "big"), False),
    ],
)
def test_only_the_magic_word_is_a_yes(returned: bytes, yes: bool) -> None:
    assert is_magic_answer(returned) is yes
