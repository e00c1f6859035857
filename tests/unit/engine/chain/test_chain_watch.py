"""Accounts whose funds are followed, filters of their logs, and the receivers of the changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.contracts.abi import address_word
from cambist.engine.chain.index.watch import UNWRAPPED, WRAPPED, Watch
from cambist.engine.chain.port import Log
from support.chain.log_emitter import record
from support.store.stores import ALICE, BOB, CAROL, USDC, WETH


def a_log(token: bytes, topics: tuple[bytes, ...], data: bytes = bytes(32)) -> Log:
    return Log(token, topics, data, 1, bytes(32), bytes(32), 0, 0)


def a_transfer(token: bytes, owner: bytes, receiver: bytes) -> Log:
    return a_log(token, *record(events.Transfer(owner, receiver, 1)))


def address(number: int) -> bytes:
    return number.to_bytes(20, "big")


def test_both_sides_of_a_transfer_are_touched_and_only_what_is_followed() -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    watch.follow(USDC, BOB)
    assert watch.touched([a_transfer(WETH, ALICE, BOB)]) == {(WETH, ALICE)}
    assert watch.touched([a_transfer(WETH, BOB, ALICE)]) == {(WETH, ALICE)}
    assert watch.touched([a_transfer(USDC, ALICE, BOB)]) == {(USDC, BOB)}
    assert watch.touched([a_transfer(USDC, ALICE, CAROL)]) == frozenset()


def test_an_approval_is_about_its_owner_and_not_about_its_spender() -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    watch.follow(WETH, BOB)
    logs = [a_log(WETH, *record(events.Approval(ALICE, BOB, 1)))]
    assert watch.touched(logs) == {(WETH, ALICE)}


@pytest.mark.parametrize("topic", [WRAPPED, UNWRAPPED])
def test_wrapping_moves_funds_without_a_transfer(topic: bytes) -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    log = a_log(WETH, (topic, address_word(ALICE)))
    wanted = watch.filter()
    assert wanted is not None
    assert wanted.matches(log)
    assert watch.touched([log]) == {(WETH, ALICE)}


@pytest.mark.parametrize("topic", [events.NATIVE_DEPOSITED, events.NATIVE_WITHDRAWN])
def test_a_deposit_is_its_owners_with_the_contract(topic: bytes) -> None:
    watch = Watch()
    watch.follow(USDC, ALICE)
    logs = [a_log(USDC, (topic, address_word(owner))) for owner in (ALICE, BOB)]
    wanted = watch.filter()
    assert wanted is not None
    assert all(wanted.matches(log) for log in logs)
    assert watch.touched(logs) == {(USDC, ALICE)}


def test_a_log_of_any_other_form_does_no_harm() -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    odd = [a_log(WETH, ()), a_log(WETH, (events.TRANSFER,)), a_log(WETH, (events.TRANSFER, b"\1"))]
    assert watch.touched(odd) == frozenset()


def test_thousands_of_owners_are_one_question() -> None:
    watch = Watch()
    for number in range(10_000):
        watch.follow((WETH, USDC)[number % 2], address(number))
    wanted = watch.filter()
    assert wanted is not None
    assert set(wanted.addresses) == {WETH, USDC}
    assert [len(some) for some in wanted.topics] == [6]
    for number in range(1, 10_000, 2):
        watch.unfollow(USDC, address(number))
    assert (wanted := watch.filter()) is not None
    assert wanted.addresses == (WETH,), "what nobody is followed for is not asked for"


def test_more_tokens_than_a_filter_takes_are_not_named() -> None:
    watch = Watch(tokens_max=2)
    for number in range(3):
        watch.follow(address(100 + number), ALICE)
    wanted = watch.filter()
    assert wanted is not None
    assert wanted.addresses == ()
    assert watch.touched([a_transfer(address(101), ALICE, BOB)]) == {(address(101), ALICE)}
    assert watch.touched([a_transfer(address(200), ALICE, BOB)]) == frozenset()


def test_who_follows_twice_stops_twice() -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    watch.follow(WETH, ALICE)
    watch.unfollow(WETH, ALICE)
    assert len(watch) == 1
    assert watch.filter()
    watch.unfollow(WETH, ALICE)
    assert (len(watch), watch.filter(), watch.fresh()) == (0, None, frozenset())
    watch.refresh({(WETH, ALICE)})
    assert watch.fresh() == frozenset(), "it was touched before, and is not followed any more"
    with pytest.raises(KeyError):
        watch.unfollow(WETH, ALICE)


def test_what_is_fresh_is_told_once() -> None:
    watch = Watch()
    watch.follow(WETH, ALICE)
    assert watch.fresh() == frozenset(), "the step that runs may have read an older head"
    watch.begin_step()
    assert watch.fresh() == {(WETH, ALICE)}
    for again in (watch.follow, watch.report):  # for another order
        again(WETH, ALICE)
        assert watch.fresh() == frozenset()
        watch.begin_step()
        assert watch.fresh() == {(WETH, ALICE)}
    watch.report(USDC, BOB)
    watch.begin_step()
    assert watch.fresh() == frozenset(), "nobody follows it"
    watch.refresh()
    assert watch.fresh() == {(WETH, ALICE)}
    watch.refresh({(WETH, ALICE)})
    watch.unfollow(WETH, ALICE)
    assert watch.fresh() == {(WETH, ALICE)}  # followed once more still


_PARTY = st.integers(0, 5).map(address)
_PAIRS = st.lists(st.tuples(_PARTY, _PARTY), max_size=20)
_LOGS = st.lists(st.tuples(_PARTY, _PARTY, _PARTY, st.booleans()), max_size=20)


@given(_PAIRS, _LOGS, st.integers(1, 4))
def test_the_filter_finds_every_log_that_touches(
    pairs: list[tuple[bytes, bytes]], told: list[tuple[bytes, bytes, bytes, bool]], tokens_max: int
) -> None:
    watch = Watch(tokens_max)
    for pair in pairs:
        watch.follow(*pair)
    logs = [
        a_log(token, *record(events.Transfer(one, other, 1) if moves else events.Approval(one, other, 1)))
        for token, one, other, moves in told
    ]
    wanted = watch.filter()
    found = [log for log in logs if wanted is not None and wanted.matches(log)]
    expected = {
        (log.address, word[12:])
        for log in logs
        for word in (log.topics[1:] if log.topics[0] == events.TRANSFER else log.topics[1:2])
    } & set(pairs)
    assert watch.touched(found) == expected
