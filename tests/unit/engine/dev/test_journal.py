"""The reader takes the journal in one form: a changed journal is refused, or read with its new content."""

import re

import pytest

from cambist.config.errors import ChainError
from cambist.crypto.keccak import keccak256
from cambist.engine.dev.embedded.journal import Account, code_text, read_journal

CODE = bytes.fromhex("6005600055")
HASH = keccak256(CODE)
RAW = (
    f"0x{'22' * 20}: Account {{ info: AccountInfo {{ balance: 8, nonce: 1, code_hash: 0x{HASH.hex()}, code: "
    f"{code_text(CODE)} }}, storage: {{1: StorageSlot {{ previous_or_original_value: 9, present_value: 0 }}, "
    "0: StorageSlot { previous_or_original_value: 0, present_value: 5 }}, status: "
    "AccountStatus(Created | Touched) }"
)
ANALYSED = (
    f"0x{'33' * 20}: Account {{ info: AccountInfo {{ balance: 0, nonce: 3, code_hash: 0x{HASH.hex()}, code: "
    f"Some(Bytecode {{ bytecode: 0x{CODE.hex()}{'00' * 33}, state: Analysed {{ len: 5, jump_map: "
    "JumpMap { map: "
    '"0000" } } }) }, storage: {}, status: AccountStatus(SelfDestructed | Touched) }'
)
NONE = (
    f"0x{'11' * 20}: Account {{ info: AccountInfo {{ balance: 3, nonce: 0, code_hash: "
    f"0x{'ab' * 32}, code: None }}, "
    "storage: {}, status: AccountStatus(0x0) }"
)
TEXT = (
    f"JournaledState {{ state: {{{RAW}, {ANALYSED}, {NONE}}}, transient_storage: "
    f"{{(0x{'22' * 20}, 0): 1}}, logs: [], "
    "depth: 1, journal: [[]], spec: LATEST, warm_preloaded_addresses: {} }"
)


@pytest.mark.parametrize("known", [{}, {HASH: code_text(CODE)}])
def test_accounts_are_read(known: dict[bytes, str]) -> None:
    accounts = read_journal(TEXT, known)
    raw, analysed, none = (accounts[bytes([one]) * 20] for one in (0x22, 0x33, 0x11))
    assert raw.account == Account(1, 8, HASH)
    assert raw.slots == {1: (9, 0), 0: (0, 5)}
    assert (raw.touched, raw.destroyed) == (True, False)
    assert raw.code == (None if known else CODE)
    assert (analysed.code, analysed.destroyed) == (CODE, True)
    assert (none.code, none.touched) == (None, False)


def test_an_empty_journal_has_no_accounts() -> None:
    assert read_journal("JournaledState { state: {}, transient_storage: {}, logs: [] }", {}) == {}


@pytest.mark.parametrize(
    ("was", "instead"),
    [
        ("JournaledState", "JournaledStates"),
        ("balance", "funds"),
        ("nonce: 1", "nonce: -1"),
        ("nonce: 1", "nonce: Some(1)"),
        ("state: Raw", "state: Checked(5)"),
        ("present_value: 5", "present_value: 0x5"),
        ("present_value: 5", "present_value: 5, is_cold: true"),
        ("previous_or_original_value", "original_value"),
        ("Created | Touched", "Created | Unheard"),
        (", 0: StorageSlot", " 0: StorageSlot"),
        (", 0: StorageSlot", ", 1: StorageSlot"),
        (f"{'33' * 20}", f"{'22' * 20}"),
        ("status: AccountStatus(0x0) }", "status: AccountStatus(0x0), more: 1 }"),
        ("}, transient_storage", "}, other: {}, transient_storage"),
        ("transient_storage: {(", "transient_storage: {{("),
        (", logs: [", ""),
    ],
)
def test_anything_else_is_refused(was: str, instead: str) -> None:
    changed = TEXT.replace(was, instead, 1)
    assert changed != TEXT
    with pytest.raises(ChainError, match="journal"):
        read_journal(changed, {})


def test_a_text_that_ends_early_is_refused() -> None:
    end = TEXT.index("logs: [")
    for length in range(0, end, 7):
        with pytest.raises(ChainError, match=re.escape("journal")):
            read_journal(TEXT[:length], {})
