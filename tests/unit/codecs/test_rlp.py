"""RLP: known forms are read, all others refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs import rlp
from cambist.config import limits
from cambist.config.errors import InvalidInput

LOREM = b"Lorem ipsum dolor sit amet, consectetur adipisicing elit"
KNOWN: list[tuple[rlp.Encodable, str]] = [
    # Yellow Paper, appendix B, and the list of examples that goes with RLP's description
    (b"", "80"),
    (b"\x00", "00"),
    (b"\x01", "01"),
    (b"\x7f", "7f"),
    (b"\x80", "8180"),
    (b"dog", "83646f67"),
    (LOREM[:55], "b7" + LOREM[:55].hex()),
    (LOREM, "b838" + LOREM.hex()),
    (bytes(1024), "b90400" + bytes(1024).hex()),
    ([], "c0"),
    ([b"cat", b"dog"], "c88363617483646f67"),
    ([[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"),
    ([LOREM[:27], LOREM[:26]], "f7" + "9b" + LOREM[:27].hex() + "9a" + LOREM[:26].hex()),
    ([LOREM], "f83a" + "b838" + LOREM.hex()),
    (0, "80"),
    (15, "0f"),
    (127, "7f"),
    (128, "8180"),
    (1024, "820400"),
    (2**256 - 1, "a0" + "ff" * 32),
]
items = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=6), max_leaves=12)


@pytest.mark.parametrize(("item", "encoded"), KNOWN, ids=range(len(KNOWN)))
def test_known_forms(item: rlp.Encodable, encoded: str) -> None:
    assert rlp.encode(item).hex() == encoded
    decoded = rlp.decode(bytes.fromhex(encoded))
    if isinstance(item, int):
        assert rlp.as_uint(decoded, "number") == item
    else:
        assert decoded == item


NOT_THE_FORM: list[tuple[str, str, str]] = [
    # (what is wrong, hexadecimal, what the refusal says)
    ("nothing", "", "expected an item"),
    ("a byte with its length", "8100", "a byte below 0x80 as itself"),
    ("a byte with its length, 7f", "817f", "a byte below 0x80 as itself"),
    ("a long form of 55 bytes", "b837" + "aa" * 55, "the shortest form"),
    ("a long form of 0 bytes", "b800", "the shortest form"),
    ("a length with a leading zero", "b90038" + "aa" * 56, "the shortest form"),
    ("a long form of a short list", "f80180", "the shortest form"),
    ("a list's length with a leading zero", "f90038" + "80" * 56, "the shortest form"),
    ("bytes cut short", "83646f", "expected 3 bytes"),
    ("a length cut short", "b904", "expected a length"),
    ("a length of 8 bytes beyond all", "bfffffffffffffffff", "bytes"),
    ("a list cut short", "c883636174", "expected 8 bytes"),
    ("an item that outlives its list", "c183616263", "expected 3 bytes"),
    ("an item's long length that outlives its list", "c1b838" + "aa" * 56, "expected a length"),
    ("something after it", "8080", "got '1 bytes after it'"),
    ("something after a list", "c0c0", "got '1 bytes after it'"),
]


@pytest.mark.parametrize(
    ("encoded", "says"), [row[1:] for row in NOT_THE_FORM], ids=[x[0] for x in NOT_THE_FORM]
)
def test_another_form_is_refused(encoded: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        rlp.decode(bytes.fromhex(encoded))


def test_depth_and_size_are_bounded() -> None:
    def nested(depth: int) -> bytes:
        encoded = b"\xc0"
        for _ in range(depth - 1):
            encoded = rlp.wrap(encoded)
        return encoded

    assert rlp.decode(nested(limits.RLP_DEPTH_MAX))
    with pytest.raises(InvalidInput, match="at most 8 lists inside one another"):
        rlp.decode(nested(limits.RLP_DEPTH_MAX + 1))
    with pytest.raises(InvalidInput, match="at most 8 lists"):
        rlp.decode(nested(20_000))
    whole = rlp.encode(bytes(limits.RLP_BYTES_MAX - 4))
    assert len(whole) == limits.RLP_BYTES_MAX
    assert rlp.decode(whole) == bytes(limits.RLP_BYTES_MAX - 4)
    with pytest.raises(InvalidInput, match=f"at most {limits.RLP_BYTES_MAX} bytes"):
        rlp.decode(rlp.encode(bytes(limits.RLP_BYTES_MAX - 3)))


@given(items)
def test_what_is_encoded_is_read_back(item: rlp.Encodable) -> None:
    assert rlp.decode(rlp.encode(item)) == item


@given(st.integers(0, 2**256 - 1))
def test_numbers_are_read_back(number: int) -> None:
    assert rlp.as_uint(rlp.decode(rlp.encode(number)), "number") == number


@given(st.one_of(st.binary(max_size=80), items.map(rlp.encode).flatmap(lambda raw: st.builds(
    lambda at, byte: raw[: at % len(raw)] + bytes([byte]) + raw[at % len(raw) + 1 :],
    st.integers(0, 300), st.integers(0, 255),
))))  # fmt: skip
def test_anything_else_is_one_item_in_its_one_form_or_refused(raw: bytes) -> None:
    try:
        item = rlp.decode(raw)
    except InvalidInput as refusal:
        assert refusal.field == "rlp"  # noqa: PT017  either outcome is right
    else:
        assert rlp.encode(item) == raw


def test_members_are_what_they_should_be() -> None:
    assert rlp.as_uint(b"", "nonce") == 0
    assert rlp.as_uint(b"\xff", "nonce", 8) == 255
    assert rlp.as_bytes(b"", "to", (0, 20)) == b""
    assert rlp.as_list([b""], "list", 1) == [b""]
    with pytest.raises(InvalidInput, match="nonce: expected a number without leading zeros, got '0x00'"):
        rlp.as_uint(b"\0", "nonce")
    with pytest.raises(
        InvalidInput, match="nonce: expected a number without leading zeros, got 'a list of 0'"
    ):
        rlp.as_uint([], "nonce")
    with pytest.raises(InvalidInput, match=r"nonce: expected a number below 2\^8, got '0x0100'"):
        rlp.as_uint(b"\1\0", "nonce", 8)
    with pytest.raises(InvalidInput, match="to: expected 0 or 20 bytes, got '0x00'"):
        rlp.as_bytes(b"\0", "to", (0, 20))
    with pytest.raises(InvalidInput, match="data: expected bytes, got 'a list of 1'"):
        rlp.as_bytes([b""], "data")
    with pytest.raises(InvalidInput, match="accessList: expected a list, got '0x'"):
        rlp.as_list(b"", "accessList")
    with pytest.raises(InvalidInput, match="transaction: expected a list of 12, got 'a list of 0'"):
        rlp.as_list([], "transaction", 12)


def test_a_number_below_zero_is_our_mistake() -> None:
    with pytest.raises(OverflowError):
        rlp.encode(-1)
