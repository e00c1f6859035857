"""Verdicts on permits by the answers of tokens and Permit2, for contracts that a devnet lacks."""

from typing import Any

import pytest

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.config.errors import InsufficientAllowance, Reverted, ServiceUnavailable
from cambist.engine.trade.served.permit_proof import Taking, check_taking, taking_calls
from cambist.engine.trade.served.token_permits import Answers

OWNER, DELTA, PERMIT2, TOKEN = (bytes([byte]) * 20 for byte in (1, 2, 3, 4))
NOW_S = 1_700_000_000
WHOLE = 1_000
EIP2612 = address_word(OWNER) + address_word(DELTA) + uint_word(WHOLE) + bytes(4 * 32)
REVERTED = Reverted("no")


def a_taking(permit: bytes, **changed: Any) -> Taking:
    values: dict[str, Any] = {
        "permit": permit, "token": TOKEN, "owner": OWNER, "spender": DELTA, "permit2": PERMIT2,
        "whole": WHOLE, "part": WHOLE, "deadline": NOW_S + 60,
    }  # fmt: skip
    return Taking(**values | changed)


def judged(permit: bytes, answers: dict[str, bytes | Exception], *, has_part: bool = True) -> None:
    taking = a_taking(permit)
    assert taking_calls(taking).keys() == answers.keys()
    told: Answers = answers
    check_taking(taking, told, now_s=NOW_S, has_part=has_part)


def test_a_token_whose_fallback_takes_every_call_takes_no_permit() -> None:
    """As wrapped native tokens of the first kind: the permit's call succeeds, and nothing comes of it."""
    with pytest.raises(InsufficientAllowance, match="the token takes none"):
        judged(EIP2612, {"allowance": uint_word(0), "permit": b"", "forged": b""})
    judged(EIP2612, {"allowance": uint_word(WHOLE), "permit": b"", "forged": b""})
    judged(EIP2612, {"allowance": uint_word(0), "permit": b"", "forged": REVERTED})


def test_a_dai_style_permit_that_forbids_takes_no_allowance_away() -> None:
    """The contract shows no permit that grants no more than the allowance."""
    words = address_word(OWNER) + address_word(DELTA) + bytes(2 * 32)
    answers: dict[str, bytes | Exception] = {
        "allowance": uint_word(WHOLE), "permit": b"", "forged": REVERTED,
    }  # fmt: skip
    judged(words + uint_word(1) + bytes(3 * 32), answers)
    forbids = words + uint_word(0) + bytes(3 * 32)
    judged(forbids, answers)
    with pytest.raises(InsufficientAllowance, match=f"by the permit, got {WHOLE - 1}"):
        judged(forbids, answers | {"allowance": uint_word(WHOLE - 1)})


def test_a_refused_permit_counts_only_where_the_allowance_falls_short() -> None:
    refused: dict[str, bytes | Exception] = {"permit": REVERTED, "forged": REVERTED}
    judged(EIP2612, refused | {"allowance": uint_word(WHOLE)})
    with pytest.raises(InsufficientAllowance, match="the permit is refused: no"):
        judged(EIP2612, refused | {"allowance": uint_word(WHOLE - 1)})


def test_the_greater_of_permit_and_allowance_counts() -> None:
    answers: dict[str, bytes | Exception] = {"permit": b"", "forged": REVERTED}
    for granted, allowed in ((0, WHOLE), (WHOLE - 1, WHOLE), (WHOLE, WHOLE - 1)):
        permit = EIP2612[:64] + uint_word(granted) + EIP2612[96:]
        judged(permit, answers | {"allowance": uint_word(allowed)})
    less = EIP2612[:64] + uint_word(WHOLE - 2) + EIP2612[96:]
    with pytest.raises(InsufficientAllowance, match=f"by the permit, got {WHOLE - 1}"):
        judged(less, answers | {"allowance": uint_word(WHOLE - 1)})


def test_the_greater_of_a_permit_at_permit2_and_a_live_allowance_there_counts() -> None:
    permit = uint_word(WHOLE - 1) + uint_word(NOW_S + 60) + bytes(4 * 32)
    answers: dict[str, bytes | Exception] = {"allowance for Permit2": uint_word(WHOLE), "permit": b""}
    live = uint_word(WHOLE) + uint_word(NOW_S) + uint_word(0)
    judged(permit, answers | {"allowance at Permit2": live})
    ended = uint_word(WHOLE) + uint_word(NOW_S - 1) + uint_word(0)
    with pytest.raises(InsufficientAllowance, match=f"by the permit, got {WHOLE - 1}"):
        judged(permit, answers | {"allowance at Permit2": ended})


def test_a_permit_of_permit2_without_an_expiration_holds_in_its_own_block() -> None:
    permit = uint_word(WHOLE) + bytes(5 * 32)
    at_permit2 = uint_word(0) * 3
    judged(
        permit,
        {"allowance for Permit2": uint_word(WHOLE), "allowance at Permit2": at_permit2, "permit": b""},
    )


@pytest.mark.parametrize("has_part", [True, False])
def test_a_transfer_that_fails_for_want_of_tokens_is_not_the_permits_fault(*, has_part: bool) -> None:
    answers: dict[str, bytes | Exception] = {"allowance for Permit2": uint_word(WHOLE), "permit": REVERTED}
    if has_part:
        with pytest.raises(InsufficientAllowance, match="the permit is refused: no"):
            judged(bytes(96), answers, has_part=True)
    else:
        judged(bytes(96), answers, has_part=False)


@pytest.mark.parametrize(
    ("permit", "answers"),
    [
        (b"", {"allowance": REVERTED}),
        (b"", {"allowance": b"\1"}),
        (b"\1", {"allowance for Permit2": REVERTED, "allowance at Permit2": uint_word(0) * 3}),
        (b"\1", {"allowance for Permit2": uint_word(WHOLE), "allowance at Permit2": REVERTED}),
        (b"\1", {"allowance for Permit2": uint_word(WHOLE), "allowance at Permit2": uint_word(WHOLE)}),
    ],
)
def test_contracts_that_do_not_answer(permit: bytes, answers: dict[str, bytes | Exception]) -> None:
    with pytest.raises(ServiceUnavailable):
        judged(permit, answers)
