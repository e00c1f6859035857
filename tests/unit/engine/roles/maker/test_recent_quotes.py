"""The last requests for firm quotes as the maker's operator sees them, and refusals by reason."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import FirmRefused, RequestError
from cambist.config.limits import MAKER_RECENT_QUOTES_MAX
from cambist.engine.host.safety.halts import Halts
from cambist.engine.roles.maker.quoting import recent
from cambist.engine.roles.maker.quoting.recent import RefusalReason, shown_quotes
from cambist.engine.roles.maker.role import ChainRole
from support.makers.maker_role import CHAIN_ID, NOW_MS, USDC, USER, WETH, a_chain, firm_request

ONE = 10**18
NOBODY = "0x" + "99" * 20


def shown(role: ChainRole) -> list[dict[str, Any]]:
    return shown_quotes([(CHAIN_ID, role.desk.recent, role.desk.markets.values())])


def asked(role: ChainRole, now_ms: int = NOW_MS, **request: Any) -> None:
    """Ask for a quote that is refused."""
    with pytest.raises(RequestError):
        role.desk.answer(firm_request(**request), now_ms)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({}, (WETH, USDC, str(ONE), "2500000000")),
        (
            {"takerAmount": None, "makerAmount": str(2_500 * 10**6)},
            (WETH, USDC, str(ONE), "2500000000"),
        ),
        (
            {"makerAsset": WETH, "takerAsset": USDC, "takerAmount": str(2_501 * 10**6)},
            (USDC, WETH, "2501000000", str(ONE)),
        ),
        (
            {"makerAsset": WETH, "takerAsset": USDC, "takerAmount": None, "makerAmount": str(ONE)},
            (USDC, WETH, "2501000000", str(ONE)),
        ),
    ],
)
def test_a_signed_quote_is_told_as_its_user_sees_it(
    request_: dict[str, Any], told: tuple[str, str, str, str]
) -> None:
    role = a_chain()
    role.desk.answer(firm_request(**request_), NOW_MS + 7)
    (entry,) = shown(role)
    assert entry.pop("tookUs") >= 0
    assert entry == {
        "at": NOW_MS + 7,
        "chainId": CHAIN_ID,
        "pair": "WETH/USDC",
        "user": USER,
        "srcToken": told[0],
        "destToken": told[1],
        "srcAmount": told[2],
        "destAmount": told[3],
        "signed": True,
        "reason": "",
    }


def test_each_refusal_is_told_with_its_reason_and_counted_under_it() -> None:
    role = a_chain()
    desk = role.desk
    asked(role, takerAsset=NOBODY)
    asked(role, takerAddress=NOBODY)
    asked(role, takerAmount=str(10**30))
    asked(role, takerAmount="1")
    asked(role, takerAmount="no number")
    asked(role, NOW_MS + 10**6)
    desk.withhold("clock", "the clock is off")
    asked(role)
    desk.withhold("clock", "")
    role.board.apply("WETH/USDC", PriceGrid(bids=(("2500", "1000"),)), NOW_MS)
    asked(role, takerAmount=str(200 * ONE))  # 500,000 USDC, of 250,000
    desk.obey(Halts(everything=True))
    asked(role)
    with pytest.raises(RequestError):
        desk.answer(b"{", NOW_MS)
    reasons = [entry["reason"] for entry in shown(role)]
    assert reasons == [
        "stale", "malformed", "stopped", "funds", "withheld", "malformed", "amount", "depth", "taker",
        "token",
    ]  # fmt: skip
    assert desk.refusals == {
        "token": 1, "taker": 1, "depth": 1, "amount": 1, "malformed": 2, "stale": 1, "withheld": 1,
        "funds": 1, "stopped": 1,
    }  # fmt: skip
    assert sum(desk.refusals.values()) == desk.refused
    _, unreadable, stopped, *_, pairless = shown(role)
    assert (unreadable["pair"], unreadable["user"], unreadable["srcAmount"]) == ("", "", "")
    assert (stopped["pair"], stopped["srcAmount"], stopped["destAmount"]) == ("WETH/USDC", str(ONE), "")
    assert (pairless["pair"], pairless["srcToken"]) == ("", NOBODY)
    assert not any(entry["signed"] for entry in shown(role))


def test_a_blacklisted_user_is_told_as_such_and_is_no_refusal() -> None:
    role = a_chain()
    role.blacklist.add(bytes.fromhex(USER[2:]), NOW_MS // 1_000 + 60)
    role.desk.answer(firm_request(), NOW_MS)
    (entry,) = shown(role)
    assert (entry["signed"], entry["reason"], entry["pair"]) == (False, "blacklisted", "WETH/USDC")
    assert (role.desk.refusals, role.desk.refused, role.desk.blacklisted) == ({}, 0, 1)


def test_texts_from_outside_are_cut() -> None:
    role = a_chain()
    asked(role, makerAsset="0x" + "f" * 9_000, userAddress=USER, takerAmount="1" * 9_000)
    (entry,) = shown(role)
    assert max(len(str(value)) for value in entry.values()) <= 78


def test_a_quote_is_told_of_after_its_release_too() -> None:
    role = a_chain()
    role.desk.answer(firm_request(), NOW_MS)
    role.desk.ledger.release_expired(NOW_MS // 1_000 + 10_000)
    assert len(role.desk.ledger) == 0
    assert [entry["signed"] for entry in shown(role)] == [True]


def test_every_reason_has_a_word_of_its_own() -> None:
    words = [*FirmRefused.reasons.values(), *RefusalReason]
    assert len(set(words)) == len(words)
    for message, word in FirmRefused.reasons.items():
        assert FirmRefused(message=message).reason == word
    assert FirmRefused.messages == tuple(FirmRefused.reasons)


def test_a_fault_of_ours_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    role = a_chain()
    monkeypatch.setattr(role.desk, "_sign", None)
    with pytest.raises(TypeError):
        role.desk.answer(firm_request(), NOW_MS)
    assert role.desk.refusals == {"fault": 1}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.booleans()), max_size=300))
def test_the_last_ones_of_all_chains_come_first(events: list[tuple[int, int, bool]]) -> None:
    roles = [a_chain() for _ in range(3)]
    now_ms, told = NOW_MS, []
    for number, (chain, later_ms, is_good) in enumerate(events):
        now_ms += later_ms
        request = firm_request(takerAmount=str(10**12 + number) if is_good else "x")
        with suppress(RequestError):
            roles[chain].desk.answer(request, now_ms)
        told.append((now_ms, chain, is_good))
    rings = [(number, role.desk.recent, role.desk.markets.values()) for number, role in enumerate(roles)]
    found = [(entry["at"], entry["chainId"], entry["signed"]) for entry in shown_quotes(rings)]
    per_chain = [[one for one in told if one[1] == chain][-MAKER_RECENT_QUOTES_MAX:] for chain in range(3)]
    wanted = sorted((one for of_chain in per_chain for one in of_chain), key=lambda one: -one[0])
    assert [one[0] for one in found] == [one[0] for one in wanted[:MAKER_RECENT_QUOTES_MAX]]
    for chain in range(3):
        of_chain = [one for one in found if one[1] == chain]
        assert of_chain == per_chain[chain][::-1][: len(of_chain)]


def test_the_ring_is_bounded() -> None:
    role = a_chain()
    for _ in range(2 * MAKER_RECENT_QUOTES_MAX):
        asked(role, takerAmount="x")
    assert len(role.desk.recent) == recent._MEMBERS * MAKER_RECENT_QUOTES_MAX
    assert len(shown(role)) == MAKER_RECENT_QUOTES_MAX
