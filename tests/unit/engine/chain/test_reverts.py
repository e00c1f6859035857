import pytest

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.config import limits
from cambist.config.errors import InvalidInput
from cambist.engine.chain.reverts import custom_errors, revert_reason

ABI = [
    {"type": "function", "name": "fill", "inputs": [{"type": "uint256", "name": "amount"}]},
    {"type": "error", "name": "Paused", "inputs": []},
    {"type": "error", "name": "Denied", "inputs": [{"type": "address", "name": "by"}, {"type": "bytes4"}]},
    {"type": "error", "name": "Mixed", "inputs": [
        {"type": "int256", "name": "by"}, {"type": "bool", "name": "ok"}, {"type": "string", "name": "why"},
        {"type": "bytes", "name": "data"},
    ]},
    {"type": "error", "name": "Failed", "inputs": [{"type": "uint256"}, {"type": "bytes", "name": "reason"}]},
    {"type": "error", "name": "Listed", "inputs": [{"type": "uint256[]", "name": "all"}]},
    {"type": "error", "name": "Struct", "inputs": [{"type": "tuple", "name": "order"}]},
]  # fmt: skip
ERRORS = custom_errors([ABI])


def error(text: str) -> bytes:
    return selector("Error(string)") + encode(bytes_tail(text.encode()))


def panic(number: int) -> bytes:
    return selector("Panic(uint256)") + uint_word(number)


MIXED = selector("Mixed(int256,bool,string,bytes)") + encode(
    uint_word(2**256 - 5), uint_word(1), bytes_tail(b'say "no"'), bytes_tail(b"\xab")
)


def failed(reason: bytes) -> bytes:
    return selector("Failed(uint256,bytes)") + encode(uint_word(2), bytes_tail(reason))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ""),
        (failed(error("too late")), "Failed(2, reason too late)"),
        (failed(b""), "Failed(2, reason none)"),
        (failed(failed(selector("Paused()"))), "Failed(2, reason Failed(2, reason Paused()))"),
        (error("Order expired"), "Order expired"),
        (error(""), ""),
        (error("two\nlines"), "two�lines"),
        (panic(0x11), "Panic(17): overflow"),
        (panic(0x12), "Panic(18): division by zero"),
        (panic(99), "Panic(99)"),
        (selector("Paused()"), "Paused()"),
        (
            selector("Denied(address,bytes4)")
            + address_word(b"\x11" * 20)
            + b"\xa9\x05\x9c\xbb".ljust(32, b"\0"),
            f"Denied(by 0x{'11' * 20}, 0xa9059cbb)",
        ),
        (MIXED, 'Mixed(by -5, ok true, why "say \\"no\\"", data 0xab)'),
        (MIXED[:-40], f"0x{MIXED[:-40].hex()}"),
        (b"\x01\x02", "0x0102"),
        (b"\xde\xad\xbe\xef", "0xdeadbeef"),
        (selector("Error(string)") + uint_word(2**255), f"0x08c379a0{2**255:064x}"),
        (selector("Panic(uint256)"), "0x4e487b71"),
    ],
)
def test_words_of_a_revert(data: bytes, words: str) -> None:
    assert revert_reason(data, ERRORS) == words


def test_an_error_that_is_not_simple_is_shown_in_hex() -> None:
    listed = selector("Listed(uint256[])") + encode(bytes_tail(b""))
    assert revert_reason(listed, ERRORS) == f"0x{listed.hex()}"
    assert selector("Struct(tuple)") not in ERRORS


def test_words_are_bounded() -> None:
    for data in (error("x" * 9_999), b"\xff" * 9_999):
        assert len(revert_reason(data)) == limits.REVERT_REASON_CHARS_MAX


def test_what_is_no_abi_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ABI"):
        custom_errors([[{"name": 3}]])


def test_reasons_within_reasons_end_somewhere() -> None:
    data = b""
    for _ in range(50):
        data = failed(data)
    assert revert_reason(data, ERRORS).count("Failed(2, reason ") == 4
