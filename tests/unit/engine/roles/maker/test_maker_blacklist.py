"""Blacklisted users: no duplicates, for a time, and told once."""

import json

from cambist.config.limits import MAKER_BLACKLIST_MAX
from cambist.engine.roles.maker.quoting.blacklist import Blacklist

ONE, TWO = bytes(19) + b"\x01", bytes(19) + b"\x02"


def test_members_are_listed_once() -> None:
    blacklist = Blacklist([ONE, ONE])
    assert blacklist.add(TWO, 10)
    assert not blacklist.add(TWO, 20)
    assert not blacklist.add(ONE, 10)
    assert json.loads(blacklist.json()) == [f"0x{ONE.hex()}", f"0x{TWO.hex()}"]


def test_those_for_a_time_leave_and_those_of_the_settings_stay() -> None:
    blacklist = Blacklist([ONE])
    blacklist.add(TWO, 10)
    blacklist.release_expired(9)
    assert TWO in blacklist.users
    blacklist.release_expired(10)
    assert list(blacklist.users) == [ONE]
    assert json.loads(blacklist.json()) == [f"0x{ONE.hex()}"]


def test_new_members_are_told_once_and_those_of_the_settings_never() -> None:
    blacklist = Blacklist([ONE])
    assert blacklist.take_added() is None
    blacklist.add(TWO, 10)
    assert json.loads(blacklist.take_added() or b"") == [f"0x{TWO.hex()}"]
    assert blacklist.take_added() is None


def test_it_is_bounded_and_released_in_slices() -> None:
    blacklist = Blacklist([])
    for number in range(MAKER_BLACKLIST_MAX + 5):
        blacklist.add(number.to_bytes(20, "big"), 10)
    assert len(blacklist) == MAKER_BLACKLIST_MAX
    blacklist.release_expired(10, 100)
    assert len(blacklist) == MAKER_BLACKLIST_MAX - 100
