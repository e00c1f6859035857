"""Parser of the EVM's journal, pyrevm's record of the accounts that a transaction has loaded or changed.

The library shows the journal as debug text, which is not a stable interface. The parser therefore matches the
accounts one after the other without a gap, in the only known form; a difference of a single character raises
ChainError. Known code is compared as a whole text, which is many times faster than parsing it.

    JournaledState { state: {0x..: Account { info: .., storage: {..}, status: .. }, ..}, transient_storage: ..

Source: revm 8, the derived `Debug` of `JournaledState`, `Account`, `AccountInfo` and `StorageSlot`.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from ....config.errors import ChainError
from ....crypto.keccak import KECCAK_EMPTY


class Account(Struct, frozen=True, gc=False):
    """Nonce, balance in wei and code hash of an account, i.e. its state without the storage."""

    nonce: int = 0
    balance_wei: int = 0
    code_hash: bytes = KECCAK_EMPTY


EMPTY = Account()


class Loaded(Struct, frozen=True, gc=False):
    """Account as the EVM's journal records it after the execution of a transaction.

    Attributes:
        account: nonce, balance and code hash after the execution.
        code: contract code; None if the journal shows no code, or if the code is among the argument `known`
            of `read_journal`.
        slots: slot -> (value before, value after), for each storage slot read or written.
        touched: whether the EVM has marked the account as possibly changed.
        destroyed: whether the opcode SELFDESTRUCT has removed the account.
        created: whether the execution has created the account.
    """

    account: Account
    code: bytes | None
    slots: dict[int, tuple[int, int]]
    touched: bool
    destroyed: bool
    created: bool


_HEAD = "JournaledState { state: {"
_TAIL = re.compile(r"\}, transient_storage: \{[^{}]*\}, logs: \[")
_INFO = re.compile(
    r"0x([0-9a-f]{40}): Account \{ info: AccountInfo \{ balance: (\d+), nonce: (\d+), "
    r"code_hash: 0x([0-9a-f]{64}), code: "
)
_CODE = re.compile(
    r"None|Some\(Bytecode \{ bytecode: 0x([0-9a-f]*), state: "
    r'(?:Raw|Analysed \{ len: (\d+), jump_map: JumpMap \{ map: "[0-9a-f]*" \} \}) \}\)'
)
_SLOT = re.compile(r"(\d+): StorageSlot \{ previous_or_original_value: (\d+), present_value: (\d+) \}")
_REST = re.compile(
    rf" \}}, storage: \{{((?:{re.sub('[()]', '', _SLOT.pattern)}(?:, (?=\d))?)*)\}}, "
    r"status: AccountStatus\(([A-Za-z0-9| ]+)\) \}"
)
_FLAGS = frozenset({"0x0", "Created", "SelfDestructed", "Touched"})


def code_text(code: bytes) -> str:
    """Return the part of a journal's debug text that shows contract code loaded from pyrevm's database."""
    return f"Some(Bytecode {{ bytecode: 0x{code.hex()}, state: Raw }})"


def read_journal(text: str, known: Mapping[bytes, str]) -> dict[bytes, Loaded]:
    """Parse the accounts in the debug text of an EVM's journal; return them by address of 20 bytes.

    Args:
        known: code hash -> `code_text` of the code; the parser skips such code without decoding it.

    Raises:
        ChainError: the text differs from the known form.
    """
    if not text.startswith(_HEAD):
        raise _unreadable(text, 0)
    accounts: dict[bytes, Loaded] = {}
    at = len(_HEAD)
    while not text.startswith("}", at):
        if accounts:
            at = _after(text, at, ", ")
        address, account, at = _account(text, at, known)
        if address in accounts:
            raise _unreadable(text, at)
        accounts[address] = account
    if _TAIL.match(text, at) is None:
        raise _unreadable(text, at)
    return accounts


def _account(text: str, at: int, known: Mapping[bytes, str]) -> tuple[bytes, Loaded, int]:
    """Parse the account at position `at` of a journal's text; return (address, account, end position)."""
    info = _matched(_INFO, text, at)
    address, balance, nonce, hash_hex = info.groups()
    code_hash, at = bytes.fromhex(hash_hex), info.end()
    known_text, code = known.get(code_hash), None
    if known_text is not None and text.startswith(known_text, at):
        at += len(known_text)
    else:
        written = _matched(_CODE, text, at)
        code, at = _code(written), written.end()
    rest = _matched(_REST, text, at)
    storage, status = rest.groups()
    slots = {int(slot): (int(before), int(now)) for slot, before, now in _SLOT.findall(storage)}
    flags = set(status.split(" | "))
    if len(slots) != storage.count("StorageSlot") or not flags <= _FLAGS:
        raise _unreadable(text, at)
    loaded = Loaded(
        Account(int(nonce), int(balance), code_hash),
        code,
        slots,
        touched="Touched" in flags,
        destroyed="SelfDestructed" in flags,
        created="Created" in flags,
    )
    return bytes.fromhex(address), loaded, rest.end()


def _code(written: re.Match[str]) -> bytes | None:
    code_hex, length = written.groups()
    if code_hex is None:
        return None
    code = bytes.fromhex(code_hex)
    return code if length is None else code[: int(length)]  # analysed code is padded


def _matched(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    if match is None:
        raise _unreadable(text, at)
    return match


def _after(text: str, at: int, expected: str) -> int:
    if not text.startswith(expected, at):
        raise _unreadable(text, at)
    return at + len(expected)


def _unreadable(text: str, at: int) -> ChainError:
    return ChainError(f"the EVM's journal is not as it is known at {at}: {text[at : at + 80]!r}")
