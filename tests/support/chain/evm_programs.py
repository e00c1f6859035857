"""Small programs for the EVM, as assembly text, and what assembles them.

A word of the text is an opcode, a number (pushed with as few bytes as it needs), `name:` (a place to jump to)
or `@name` (that place, pushed).
"""

import random

_OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "MUL": 0x02, "SUB": 0x03, "DIV": 0x04, "SDIV": 0x05, "MOD": 0x06, "SMOD": 0x07,
    "ADDMOD": 0x08, "MULMOD": 0x09, "EXP": 0x0A, "SIGNEXTEND": 0x0B, "LT": 0x10, "GT": 0x11, "SLT": 0x12,
    "SGT": 0x13, "EQ": 0x14, "ISZERO": 0x15, "AND": 0x16, "OR": 0x17, "XOR": 0x18, "NOT": 0x19, "BYTE": 0x1A,
    "SHL": 0x1B, "SHR": 0x1C, "SAR": 0x1D, "KECCAK256": 0x20, "ADDRESS": 0x30, "BALANCE": 0x31,
    "ORIGIN": 0x32, "CALLER": 0x33, "CALLVALUE": 0x34, "CALLDATALOAD": 0x35, "CALLDATASIZE": 0x36,
    "CALLDATACOPY": 0x37, "CODESIZE": 0x38, "CODECOPY": 0x39, "GASPRICE": 0x3A, "EXTCODESIZE": 0x3B,
    "EXTCODECOPY": 0x3C, "RETURNDATASIZE": 0x3D, "RETURNDATACOPY": 0x3E, "EXTCODEHASH": 0x3F,
    "BLOCKHASH": 0x40, "COINBASE": 0x41, "TIMESTAMP": 0x42, "NUMBER": 0x43, "PREVRANDAO": 0x44,
    "GASLIMIT": 0x45, "CHAINID": 0x46, "SELFBALANCE": 0x47, "BASEFEE": 0x48, "POP": 0x50, "MLOAD": 0x51,
    "MSTORE": 0x52, "MSTORE8": 0x53, "SLOAD": 0x54, "SSTORE": 0x55, "JUMP": 0x56, "JUMPI": 0x57, "PC": 0x58,
    "MSIZE": 0x59, "GAS": 0x5A, "JUMPDEST": 0x5B, "TLOAD": 0x5C, "TSTORE": 0x5D, "MCOPY": 0x5E, "DUP1": 0x80,
    "DUP2": 0x81, "DUP6": 0x85, "SWAP1": 0x90, "SWAP2": 0x91, "LOG0": 0xA0, "LOG1": 0xA1, "LOG2": 0xA2,
    "LOG3": 0xA3, "LOG4": 0xA4, "CREATE": 0xF0, "CALL": 0xF1, "CALLCODE": 0xF2, "RETURN": 0xF3,
    "DELEGATECALL": 0xF4, "CREATE2": 0xF5, "STATICCALL": 0xFA, "REVERT": 0xFD, "INVALID": 0xFE,
    "SELFDESTRUCT": 0xFF,
}  # fmt: skip


def assembled(text: str) -> bytes:
    """The code of a text."""
    code, places, wanted = bytearray(), {}, []
    for word in text.split():
        if word.endswith(":"):
            places[word[:-1]] = len(code)
            code.append(_OPCODES["JUMPDEST"])
        elif word.startswith("@"):
            wanted.append((len(code) + 1, word[1:]))
            code += b"\x61\0\0"
        elif word[0].isdigit():
            number = int(word, 0)
            size = (number.bit_length() + 7) // 8
            code += bytes([0x5F + size]) + number.to_bytes(size, "big")
        else:
            code.append(_OPCODES[word])
    for at, name in wanted:
        code[at : at + 2] = places[name].to_bytes(2, "big")
    return bytes(code)


def deploys(code: bytes, before: str = "") -> bytes:
    """Init code that runs `before` and leaves a contract of `code`."""
    head = assembled(before)
    tail_at = len(head) + 13
    return (
        head
        + b"\x61"
        + len(code).to_bytes(2, "big")
        + b"\x80\x61"
        + tail_at.to_bytes(2, "big")
        + (b"\x5f\x39\x5f\xf3" + bytes(2) + code)
    )


def stored(words: str, count: int) -> str:
    """A text that puts `count` values from the stack into memory from 0, and logs and returns them.

    Args:
        words: what pushes them, the last one first in memory.
    """
    size = 32 * count
    return f"{words} {' '.join(f'{32 * at} MSTORE' for at in range(count))} 7 {size} 0 LOG1 {size} 0 RETURN"


ENVIRONMENT = assembled(
    stored(
        "NUMBER TIMESTAMP CHAINID COINBASE GASLIMIT GASPRICE ORIGIN CALLER ORIGIN BALANCE SELFBALANCE "
        "CALLVALUE ADDRESS COINBASE BALANCE CODESIZE GAS PC MSIZE 0xdead EXTCODEHASH ADDRESS EXTCODEHASH "
        "ORIGIN EXTCODEHASH 0xdead EXTCODESIZE",
        21,
    )
)
BASE_FEE = assembled(stored("BASEFEE", 1))
BLOCK_HASH = assembled(stored("1 BLOCKHASH", 1))

STORAGE = assembled(
    "0 CALLDATALOAD 0 SSTORE 32 CALLDATALOAD 1 SSTORE 0 0 SSTORE 64 CALLDATALOAD 0 SSTORE "
    "2 SLOAD 1 ADD 2 SSTORE 96 CALLDATALOAD "
    "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff SSTORE "
    + stored("0 SLOAD 1 SLOAD 2 SLOAD", 3)
)
"""Slots 0 (twice) and 1 from the first three words, 2 counts, the last one of all is the fourth word."""

CLEARING = assembled(
    "CALLDATASIZE @clear JUMPI 0 set: 1 ADD DUP1 DUP1 SSTORE DUP1 20 EQ ISZERO @set JUMPI STOP "
    "clear: 0 again: 1 ADD 0 DUP2 SSTORE DUP1 20 EQ ISZERO @again JUMPI STOP"
)
"""Without data it sets slots 1 to 20, with data it clears them: the refund is capped."""

TRANSIENT = assembled("3 TLOAD 0 MSTORE CALLDATASIZE 3 TSTORE 3 TLOAD 32 MSTORE 64 0 LOG0 64 0 RETURN")
"""Logs and returns the values of transient slot 3 before and after a write."""

_CHILD = deploys(assembled("CALLVALUE 5 SSTORE 5 SLOAD 0 MSTORE 32 0 RETURN"), "9 8 SSTORE")
_DYING = deploys(assembled("CALLER SELFDESTRUCT"), "1 1 SSTORE")


def _with_tail(head: str, tail: bytes) -> bytes:
    """A program with a child's init code after it: in the text, $LENGTH is its length, $AT
    where it begins."""
    code = assembled(head.replace("$AT", "0x200").replace("$LENGTH", str(len(tail))))
    return code.ljust(0x200, b"\0") + tail


CREATOR = _with_tail(
    "$LENGTH $AT 0 CODECOPY $LENGTH 0 3 CREATE DUP1 0 SSTORE "
    "0 0 0 0 2 DUP6 GAS CALL POP POP "
    "CALLDATASIZE $LENGTH 0 0 CREATE2 DUP1 1 SSTORE "
    "CALLDATASIZE $LENGTH 0 0 CREATE2 2 SSTORE POP "
    "32 0 0 0 0 1 SLOAD GAS CALL 3 SSTORE " + stored("0 SLOAD 1 SLOAD 2 SLOAD 3 SLOAD", 4),
    _CHILD,
)
"""Creates a child with 3 wei and calls it with 2, then one with CREATE2 by the length of the data, and the
same again, which fails unless the first one did."""

DESTROYER = _with_tail(
    "$LENGTH $AT 0 CODECOPY $LENGTH 0 4 CREATE DUP1 0 SSTORE 0 0 0 0 1 0 SLOAD GAS CALL 1 SSTORE "
    "0 SLOAD BALANCE 2 SSTORE 0 SLOAD EXTCODESIZE 3 SSTORE STOP",
    _DYING,
)
"""Creates a contract that destroys itself in the same transaction."""

MORTAL = assembled("0 CALLDATALOAD 1 SSTORE 0 CALLDATALOAD SELFDESTRUCT")
"""Destroys itself in favour of the first word; under Cancun it stays."""

HALTING = assembled(
    "0 CALLDATALOAD DUP1 1 EQ @reverts JUMPI DUP1 2 EQ @invalid JUMPI DUP1 3 EQ @burns JUMPI "
    "DUP1 4 EQ @deep JUMPI "
    "DUP1 5 EQ @inner JUMPI STOP "
    "reverts: 1 1 SSTORE 0xbad 0 MSTORE 32 0 REVERT invalid: INVALID burns: 1 POP @burns JUMP "
    "deep: 4 0 MSTORE 0 0 32 0 0 ADDRESS GAS CALL 7 SSTORE GAS 8 SSTORE STOP "
    "inner: 1 0 MSTORE 32 0 32 0 0 ADDRESS 50000 CALL 1 ADD 9 SSTORE RETURNDATASIZE 10 SSTORE 0 "
    "MLOAD 11 SSTORE STOP"
)
"""By the first word: reverts, halts, runs out of gas, calls itself as deep as the gas goes, "
"catches a revert."""

CALLS = assembled(
    "0 CALLDATALOAD 0 MSTORE 32 64 32 0 0 0 CALLDATALOAD 30000 CALL 0 SSTORE "
    "32 64 32 0 0 CALLDATALOAD 30000 DELEGATECALL 1 SSTORE "
    "32 64 32 0 0 CALLDATALOAD 30000 STATICCALL 2 SSTORE "
    "32 64 32 0 0 0 CALLDATALOAD 30000 CALLCODE 3 SSTORE "
    "0 CALLDATALOAD EXTCODEHASH 4 SSTORE 0 CALLDATALOAD BALANCE 5 SSTORE "
    "40 0 128 0 CALLDATALOAD EXTCODECOPY 128 MLOAD 6 SSTORE 32 64 96 MCOPY 96 MLOAD 7 SSTORE "
    "1 0 0 0 0 0x1111111111111111111111111111111111111111 GAS CALL 8 SSTORE STOP"
)
"""All kinds of calls to the address in the first word, and what can be asked about it."""

PRECOMPILES = assembled(
    "1 0 MSTORE 27 32 MSTORE 2 64 MSTORE 3 96 MSTORE "
    + " ".join(
        f"32 256 128 0 {at} 100000 STATICCALL {at} SSTORE 256 MLOAD {at + 16} SSTORE" for at in range(1, 11)
    )
    + " STOP"
)

READS_SLOT_OF_ANOTHER = assembled(
    "0 CALLDATALOAD BALANCE POP 32 CALLDATALOAD SLOAD POP GAS 0 MSTORE 32 0 LOG0 STOP"
)
"""For access lists: the gas that is left shows what was warm."""


def random_program(seed: int, others: tuple[int, ...]) -> bytes:
    """A program of random steps that mostly runs to its end."""
    dice = random.Random(seed)

    def value() -> str:
        choices = (
            str(dice.randrange(8)),
            hex(dice.getrandbits(256)),
            f"{dice.randrange(5)} SLOAD",
            f"{dice.randrange(5)} TLOAD",
            f"{32 * dice.randrange(6)} MLOAD",
            f"{32 * dice.randrange(4)} CALLDATALOAD",
            dice.choice(
                ("CALLER", "CALLVALUE", "GAS", "SELFBALANCE", "MSIZE", "CODESIZE", "NUMBER", "GASPRICE")
            ),
            f"{dice.choice(others)} {dice.choice(('BALANCE', 'EXTCODESIZE', 'EXTCODEHASH'))}",
            "64 0 KECCAK256",
        )
        return dice.choice(choices)

    def step() -> str:
        operation = dice.choice(
            ("ADD", "MUL", "SUB", "DIV", "SDIV", "MOD", "EXP", "XOR", "SHL", "SAR", "SLT", "BYTE")
        )
        return dice.choice(
            (
                f"{value()} {dice.randrange(5)} SSTORE",
                f"0 {dice.randrange(5)} SSTORE",
                f"{value()} {dice.randrange(5)} TSTORE",
                f"{value()} {32 * dice.randrange(6)} MSTORE",
                f"{value()} {value()} {operation} {32 * dice.randrange(6)} MSTORE",
                f"{value()} {value()} {32 * dice.randrange(3)} 0 LOG2",
                f"32 0 64 0 {dice.randrange(3)} {dice.choice(others)} 60000 CALL 4 SSTORE",
                f"32 0 64 0 {dice.choice(others)} 60000 DELEGATECALL 160 MSTORE",
                f"32 0 64 0 {dice.choice(others)} 60000 STATICCALL 128 MSTORE",
                f"0x60016000f3 0 MSTORE {value()} 5 27 {dice.randrange(2)} CREATE2 3 SSTORE",
                "0x6001600055600060005500 0 MSTORE 11 21 0 CREATE 96 MSTORE",
            )
        )

    ending = dice.choice(
        ("STOP", "64 0 RETURN", "64 0 RETURN", "32 0 REVERT", "INVALID", "0 CALLDATALOAD SELFDESTRUCT")
    )
    return assembled(" ".join([*(step() for _ in range(dice.randrange(3, 25))), ending]))


TRIES_AND_TELLS = (
    "32 CALLDATASIZE SUB 32 0 CALLDATACOPY "  # what follows the word of the target
    "0 0 32 CALLDATASIZE SUB 0 0 0 CALLDATALOAD GAS CALL POP "
    "RETURNDATASIZE 0 0 RETURNDATACOPY RETURNDATASIZE 0 LOG0 STOP"
)
"""Calls the address of the first word with what follows it, and logs what that returned, a refusal too."""
