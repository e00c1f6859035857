"""Amount that a permit grants an OTC order, by the token's answer."""

import pytest

from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.config.errors import InvalidInput, Reverted
from cambist.config.limits import UINT256_MAX
from cambist.engine.chain.holdings import Holding
from cambist.engine.trade.otc.balances import is_wanted, trial_calls, trial_results
from cambist.engine.trade.served.token_permits import check_named, is_over

MAKER, RFQ, TOKEN, OTHER = (bytes([byte]) * 20 for byte in (1, 2, 3, 4))
NOW_S = 1_700_000_000


def eip2612(value: int = 1_000, deadline: int = NOW_S) -> bytes:
    return address_word(MAKER) + address_word(RFQ) + uint_word(value) + uint_word(deadline) + bytes(96)


def dai(allowed: int = 1, expiry: int = 0) -> bytes:
    words = (address_word(MAKER), address_word(RFQ), uint_word(7), uint_word(expiry), uint_word(allowed))
    return b"".join(words) + bytes(96)


def granted(permit: bytes, *answers: bytes | Exception) -> int:
    assert len(trial_calls([permit], TOKEN, RFQ)) == len(answers)
    return trial_results([permit], answers)[permit]


@pytest.mark.parametrize(
    ("permit", "answers", "amount"),
    [
        (eip2612(), (b"", Reverted("forged")), 1_000),
        (eip2612(), (Reverted("used"), Reverted("forged")), 0),
        (eip2612(), (b"", b""), 0),
        (eip2612(), (b"", uint_word(1)), 0),
        (eip2612(), (b"", Reverted("")), 1_000),
        (dai(), (b"", Reverted("forged")), UINT256_MAX),
        (dai(allowed=0), (b"", Reverted("forged")), 0),
        (dai(), (Reverted("used"), Reverted("forged")), 0),
    ],
)
def test_what_a_permit_grants(permit: bytes, answers: tuple[bytes | Exception, ...], amount: int) -> None:
    assert granted(permit, *answers) == amount


def test_permits_are_shown_by_the_rfq_contract_with_their_own_call() -> None:
    permits = [eip2612(), dai()]
    first, forged, second, _ = trial_calls(permits, TOKEN, RFQ)
    own = selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")
    assert (first.to, first.sender, first.data) == (TOKEN, RFQ, own + eip2612())
    assert (forged.to, forged.sender, forged.data) == (TOKEN, RFQ, own + eip2612()[:-1] + b"\1")
    dais = selector("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)")
    assert (second.to, second.sender, second.data) == (TOKEN, RFQ, dais + dai())
    assert first.gas_max, "a token may not use as much gas as it likes"
    answers = (Reverted("no"), Reverted("no"), b"", Reverted("no"))
    assert trial_results(permits, answers) == {permits[0]: 0, permits[1]: UINT256_MAX}


@pytest.mark.parametrize(
    ("permit", "allowance", "now_s", "expected"),
    [
        (None, 0, NOW_S, False),
        (b"", 0, NOW_S, False),
        (eip2612(), 0, NOW_S, True),
        (eip2612(), 99, NOW_S, True),
        (eip2612(), 100, NOW_S, False),
        (eip2612(), 0, NOW_S + 1, False),
        (dai(), 0, NOW_S + 1, True),
        (dai(expiry=NOW_S), 0, NOW_S, True),
        (dai(expiry=NOW_S), 0, NOW_S + 1, False),
    ],
)
def test_a_token_is_asked_only_where_that_may_help(
    permit: bytes | None, allowance: int, now_s: int, expected: bool
) -> None:
    assert is_wanted(permit, 100, Holding(10**30, allowance), now_s) is expected
    assert not is_wanted(permit, 100, None, now_s)


def test_a_deadline_is_the_last_second_that_counts() -> None:
    assert not is_over(eip2612(), NOW_S)
    assert is_over(eip2612(), NOW_S + 1)
    assert is_over(eip2612(deadline=0), NOW_S), "EIP-2612 has no permit for ever"
    assert not is_over(dai(), NOW_S)


@pytest.mark.parametrize("permit", [eip2612(), dai()])
def test_a_permit_names_its_maker_and_the_contract(permit: bytes) -> None:
    check_named(permit, MAKER, RFQ, "maker", "permitMakerAsset")
    with pytest.raises(InvalidInput, match="the maker 0x0404"):
        check_named(permit, OTHER, RFQ, "maker", "permitMakerAsset")
    with pytest.raises(InvalidInput, match="the spender 0x0404"):
        check_named(permit, MAKER, OTHER, "maker", "permitMakerAsset")
