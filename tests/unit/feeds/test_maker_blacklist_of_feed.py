"""The addresses that a maker does not trade with, and when they are forgotten."""

from cambist.config import limits
from cambist.feeds.blacklist import MakerBlacklist

ONE, TWO = (bytes([at]) * 20 for at in (1, 2))


def test_poll_replaces_what_polls_brought() -> None:
    blacklist = MakerBlacklist(1_000)
    blacklist.replace({ONE, TWO}, 0)
    assert blacklist.holds(ONE, 999)
    blacklist.replace({TWO}, 10)
    assert not blacklist.holds(ONE, 10)
    assert blacklist.holds(TWO, 10)


def test_what_a_firm_answer_or_the_socket_added_outlives_polls_and_expires() -> None:
    blacklist = MakerBlacklist(1_000)
    blacklist.add([ONE], 0)
    blacklist.replace({TWO}, 500)
    assert blacklist.holds(ONE, 999)
    assert not blacklist.holds(ONE, 1_000)
    assert blacklist.holds(TWO, 1_499)
    assert not blacklist.holds(TWO, 1_500)


def test_address_that_is_added_again_begins_a_new_life() -> None:
    blacklist = MakerBlacklist(1_000)
    blacklist.add([ONE, TWO], 0)
    blacklist.add([ONE], 800)
    blacklist.expire(1_100)
    assert len(blacklist) == 1
    assert blacklist.holds(ONE, 1_799)
    assert not blacklist.holds(TWO, 1_100)


def test_what_expired_is_forgotten() -> None:
    blacklist = MakerBlacklist(1_000)
    blacklist.replace({ONE}, 0)
    blacklist.add([TWO], 500)
    blacklist.expire(1_000)
    assert len(blacklist) == 1
    blacklist.expire(1_500)
    assert len(blacklist) == 0


def test_added_addresses_are_bounded_and_the_oldest_go_first() -> None:
    blacklist = MakerBlacklist(1_000)
    blacklist.add((number.to_bytes(20, "big") for number in range(limits.MAKER_BLACKLIST_MAX + 1)), 0)
    assert len(blacklist) == limits.MAKER_BLACKLIST_MAX
    assert not blacklist.holds((0).to_bytes(20, "big"), 0)
    assert blacklist.holds((1).to_bytes(20, "big"), 0)
