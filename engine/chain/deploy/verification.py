"""Compare the code of a contract on a chain with the runtime code of a compiled contract.

The compiler leaves zeros for the values of immutables, each behind a PUSH32; the constructor fills them in.
The two codes may differ in these words only. The values follow from the constructor's arguments, to which
the address of a CREATE2 contract is bound.

Source: Solidity documentation, "Constant and Immutable State Variables"; EIP-1014.
"""

from collections.abc import Iterator

from ..artifacts import artifact

_PUSH1, _PUSH32 = 0x60, 0x7F
_WORD = 32


def is_code_of(name: str, code: bytes) -> bool:
    """Whether `code` is the runtime code of compiled contract `name`, apart from values of immutables."""
    template = artifact(name).code()
    if len(code) != len(template):
        return False
    blanked = bytearray(code)
    for at, width in _pushes(template):
        if width == _WORD and not any(template[at : at + width]):
            blanked[at : at + width] = template[at : at + width]
    return bytes(blanked) == template


def _pushes(code: bytes) -> Iterator[tuple[int, int]]:
    """Yield (offset, count) of the immediate bytes of each instruction of EVM code; the count may be 0."""
    at = 0
    while at < len(code):
        width = _width(code[at])
        yield at + 1, width
        at += 1 + width


def _width(instruction: int) -> int:
    return instruction - _PUSH1 + 1 if _PUSH1 <= instruction <= _PUSH32 else 0
