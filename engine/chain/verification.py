"""Whether the code on a chain is what an artifact makes.

The compiler puts the code of a contract at the end of what creates it, with zeros where the constructor puts
the values of immutables: behind a PUSH32 each. So the two may differ there and nowhere else. The values follow
from the constructor's arguments, to which the address of a CREATE2 contract is bound.

Source: Solidity documentation, "Constant and Immutable State Variables"; EIP-1014.
"""

from .artifacts import artifact

_PUSH1, _PUSH32 = 0x60, 0x7F
_WORD = 32


def is_code_of(name: str, code: bytes) -> bool:
    """Whether a contract's code on a chain is that of the artifact of that name, immutables apart."""
    made_by = artifact(name).init_code()
    template = made_by[-len(code) :] if 0 < len(code) <= len(made_by) else b""
    return bool(template) and _without_immutables(template, template) == _without_immutables(code, template)


def _without_immutables(code: bytes, template: bytes) -> bytes:
    """The code with zeros wherever the template pushes a word of zeros."""
    blanked = bytearray(code)
    at = 0
    while at < len(template):
        instruction = template[at]
        at += 1
        if not _PUSH1 <= instruction <= _PUSH32:
            continue
        width = instruction - _PUSH1 + 1
        if width == _WORD and not any(template[at : at + width]):
            blanked[at : at + width] = template[at : at + width]
        at += width
    return bytes(blanked)
