"""Answers of agents as languages write them: what is absent, empty or a default costs no bid."""

import pytest

from cambist.codecs.messages.agent_messages import (
    BidPart,
    BidStep,
    SolverBid,
    SolveResponse,
    decode_solve_response,
    decode_solver_bid,
    decode_unread_response,
)
from cambist.config.errors import InvalidInput

HASH = "0x" + "11" * 32
PART = BidPart(HASH, "5", (BidStep("0xaa", "0x", 90_000),))
BIDS = {
    "to the letter": (
        b'{"parts":[{"orderHash":"%b","promisedAmount":"5",'
        b'"steps":[{"target":"0xaa","data":"0x","gas":90000}]}]}'
    ),
    "Java: nulls for what is absent": (
        b'{"parts":[{"orderHash":"%b","promisedAmount":"5","steps":[{"target":"0xaa","data":"0x","gas":90000}],'
        b'"given":null,"paid":null,"leftovers":null,"amount":null,"receiver":null,"traded":null}]}'
    ),
    "JavaScript: a BigInt as text": (
        b'{"parts":[{"orderHash":"%b","promisedAmount":"5","leftovers":[],'
        b'"steps":[{"target":"0xaa","data":"0x","gas":"90000"}]}]}'
    ),
    "Lua: a whole number with a fraction": (
        b'{"parts":[{"orderHash":"%b","promisedAmount":"5",'
        b'"steps":[{"target":"0xaa","data":"0x","gas":90000.0}]}]}'
    ),
}
"""Bids as Jackson, JSON.stringify and dkjson write them, which all mean the same."""


@pytest.mark.parametrize("name", BIDS)
def test_a_bid_as_a_language_writes_it(name: str) -> None:
    raw = BIDS[name] % HASH.encode()
    assert decode_solver_bid(raw) == SolverBid((PART,))
    assert decode_solve_response(b'{"bids":[%b],"notReached":null}' % raw) == SolveResponse(
        (SolverBid((PART,)),)
    )


@pytest.mark.parametrize("raw", [b'{"bids":null}', b'{"bids":[],"notReached":null}', b'{"bids":[]}'])
def test_no_bids_are_no_fault(raw: bytes) -> None:
    """As encoding/json of Go writes a nil slice."""
    assert decode_solve_response(raw) == SolveResponse(())
    assert decode_unread_response(raw).bids == ()


def test_a_step_without_gas_or_with_null_has_none() -> None:
    parts = b'{"parts":[{"orderHash":"%b","promisedAmount":"5","steps":[{"target":"0xaa","data":"0x"%b}]}]}'
    for gas in (b"", b',"gas":null'):
        (part,) = decode_solver_bid(parts % (HASH.encode(), gas)).parts
        assert part.steps == (BidStep("0xaa", "0x"),)


def test_amounts_of_bids_stay_texts() -> None:
    with pytest.raises(InvalidInput, match=r"parts\[0\]\.promisedAmount: expected a string, got an integer"):
        decode_solver_bid(b'{"parts":[{"orderHash":"0x","promisedAmount":5}]}')
    with pytest.raises(InvalidInput, match=r"parts: expected an array of length >= 1"):
        decode_solver_bid(b'{"parts":null}')
