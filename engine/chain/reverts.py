"""Describe the reason of a revert as text, from the return data of the call.

    Error(string)       the string of `require` and `revert`
    Panic(uint256)      `Panic(17): overflow`, with the compiler's meaning of the number
    a custom error      `Paused()`, `Insufficient(have 3, want 5)`, where the contracts' ABIs are known;
                        its `bytes reason`, if any, is a caught revert and is decoded too
    other data          the data in hexadecimal

Source: Solidity documentation, "Panic via assert and Error via require" and "Custom errors"; Contract ABI
specification.
Choice: Market swaps revert with the specified words INSUFFICIENT_OUTPUT and TRANSFER_FROM_FAILED, `Rfq` with
    the words of AugustusRFQ, which clients match. All other errors are custom ones, shown by name.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...codecs.contracts.abi import SELECTOR_BYTES, WORD_BYTES, decode_bytes, decode_uint, selector
from ...config import limits
from ...config.errors import InvalidInput

_NESTED, _NESTED_MAX = ("bytes", "reason"), 3
_ERROR, _PANIC = selector("Error(string)"), selector("Panic(uint256)")
_PANICS = {
    0x00: "compiler",
    0x01: "assertion",
    0x11: "overflow",
    0x12: "division by zero",
    0x21: "not a value of the enum",
    0x22: "storage that holds no valid bytes",
    0x31: "pop of an empty array",
    0x32: "index out of bounds",
    0x41: "out of memory",
    0x51: "call of an uninitialised function",
}


class Member(msgspec.Struct, frozen=True):
    """A parameter of a custom error in a contract's ABI."""

    type: str
    name: str = ""


class CustomError(msgspec.Struct, frozen=True):
    """A custom error (Solidity's `error`) that a contract's ABI declares."""

    name: str
    members: tuple[Member, ...]


CustomErrors = Mapping[bytes, CustomError]
"""Mapping 4-byte selector -> custom error of a contract."""

NO_ERRORS: CustomErrors = {}


class _AbiEntry(msgspec.Struct):
    type: str
    name: str = ""
    inputs: tuple[Member, ...] = ()


def custom_errors(abis: Iterable[Sequence[object]]) -> CustomErrors:
    """Collect the custom errors that contracts' ABIs declare: 4-byte selector -> error.

    Args:
        abis: for each contract the list of ABI entries that the compiler writes, decoded from JSON.

    Raises:
        InvalidInput: an element is no ABI.

    The result lacks errors with a struct as parameter; `revert_reason` shows their data in hexadecimal.
    """
    try:
        entries = [entry for abi in abis for entry in msgspec.convert(abi, list[_AbiEntry])]
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error), field="ABI") from None
    return {
        selector(f"{entry.name}({','.join(member.type for member in entry.inputs)})"): CustomError(
            entry.name, entry.inputs
        )
        for entry in entries
        if entry.type == "error" and not any("tuple" in member.type for member in entry.inputs)
    }


def revert_reason(data: bytes, errors: CustomErrors = NO_ERRORS) -> str:
    """Describe the reason of a revert as text; empty for empty data.

    Args:
        data: the revert's return data.
        errors: custom errors to show by name; other custom errors are shown in hexadecimal.

    Guarantees: one line of bounded length for any data.
    """
    return _reason(data, errors, _NESTED_MAX)


def _reason(data: bytes, errors: CustomErrors, nested_max: int) -> str:
    if not data:
        return ""
    head, body = data[:SELECTOR_BYTES], data[SELECTOR_BYTES:]
    try:
        if head == _ERROR:
            return _quotable(decode_bytes(body))
        if head == _PANIC:
            number = decode_uint(body)
            return f"Panic({number})" + (f": {_PANICS[number]}" if number in _PANICS else "")
        if head in errors:
            return _quotable(_in_words(errors[head], body, errors, nested_max).encode())
    except InvalidInput:
        pass  # the data only looked like an error with that selector
    return _shortened(f"0x{data.hex()}")


def _in_words(error: CustomError, body: bytes, errors: CustomErrors, nested_max: int) -> str:
    texts = []
    for at, member in enumerate(error.members):
        if (member.type, member.name) == _NESTED and nested_max:
            value = _reason(decode_bytes(body, at), errors, nested_max - 1) or "none"
        else:
            value = _value(member.type, body, at)
        texts.append(f"{member.name} {value}".strip())
    return f"{error.name}({', '.join(texts)})"


def _value(kind: str, body: bytes, at: int) -> str:
    """Format an argument of a custom error as text.

    Args:
        kind: ABI type of the argument, such as `uint256`.
        body: return data of the revert, without the selector.
        at: position of the argument, from 0.

    Raises:
        InvalidInput: the type is an array or unknown, or `body` has no value of the type at this position.
    """
    if kind.endswith("]"):
        raise InvalidInput(field="custom error", expected="a simple type", got=kind)
    if kind == "string":
        return json.dumps(decode_bytes(body, at).decode(errors="replace"))
    if kind == "bytes":
        return f"0x{decode_bytes(body, at).hex()}"
    # From here on the types of one word. `bytes` alone is dynamic, and so comes before `bytes1` to `bytes32`.
    number = decode_uint(body, at)
    if kind == "address":
        return f"0x{number:040x}"
    if kind == "bool" and number <= 1:
        return "true" if number else "false"
    if kind.startswith("uint"):
        return str(number)
    if kind.startswith("int"):
        return str(number - (1 << 256) if number >> 255 else number)
    if kind.startswith("bytes"):
        return f"0x{number.to_bytes(WORD_BYTES, 'big')[: int(kind[5:])].hex()}"
    raise InvalidInput(field="custom error", expected="a simple type", got=kind)


def _quotable(text: bytes) -> str:
    words = "".join(char if char.isprintable() else "�" for char in text.decode(errors="replace"))
    return _shortened(words)


def _shortened(text: str) -> str:
    most = limits.REVERT_REASON_CHARS_MAX
    return text if len(text) <= most else f"{text[: most - 3]}..."
