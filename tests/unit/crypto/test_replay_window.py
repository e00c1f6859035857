"""The replay window: remembered requests, the length of its memory, and its bounds."""

import pytest

from cambist.config.errors import AuthError
from cambist.config.limits import AUTH_TOLERANCE_MS
from cambist.crypto.hmac_auth import ReplayWindow

START_MS = 1_700_000_000_000
LIFE_MS = 2 * AUTH_TOLERANCE_MS


def signature(number: int) -> bytes:
    return b"%064x" % number


def refused(window: ReplayWindow, number: int, now_ms: int) -> str:
    with pytest.raises(AuthError) as caught:
        window.admit(signature(number), now_ms)
    assert caught.value.header == "X-AUTH-SIGNATURE"
    return caught.value.reason


@pytest.mark.parametrize("admitted_ms", [0, 1, 30_000, LIFE_MS - 1])
@pytest.mark.parametrize("again_ms", [0, 1, 30_000, LIFE_MS - 1, LIFE_MS])
def test_remembered_for_a_whole_life_wherever_in_its_generation(admitted_ms: int, again_ms: int) -> None:
    window = ReplayWindow()
    window.admit(signature(1), START_MS)
    window.admit(signature(2), START_MS + admitted_ms)
    said = refused(window, 2, START_MS + admitted_ms + again_ms)
    assert said == "this signed request was already received"


@pytest.mark.parametrize("traffic_every_ms", [1_000, 7_000, 29_999, 59_999])
def test_remembered_under_traffic(traffic_every_ms: int) -> None:
    window = ReplayWindow()
    admitted: dict[int, int] = {}
    for number, now_ms in enumerate(range(START_MS, START_MS + 5 * LIFE_MS, traffic_every_ms)):
        window.admit(signature(number), now_ms)
        admitted[number] = now_ms
        for earlier, at_ms in admitted.items():
            if now_ms - at_ms <= LIFE_MS:
                refused(window, earlier, now_ms)


def test_forgotten_when_its_timestamp_cannot_pass_any_more() -> None:
    window = ReplayWindow()
    window.admit(signature(1), START_MS)
    window.admit(signature(1), START_MS + 2 * LIFE_MS)


def test_two_generations_of_silence_are_forgotten_at_once() -> None:
    window = ReplayWindow(entries_max=1)
    window.admit(signature(1), START_MS)
    window.admit(signature(2), START_MS + 100 * LIFE_MS)
    refused(window, 2, START_MS + 100 * LIFE_MS)


def test_a_full_generation_refuses_what_is_new_and_still_knows_what_is_old() -> None:
    window = ReplayWindow(entries_max=2)
    window.admit(signature(1), START_MS)
    window.admit(signature(2), START_MS)
    assert refused(window, 3, START_MS + 1).startswith("too many signed requests")
    assert refused(window, 1, START_MS + 1) == "this signed request was already received"
    window.admit(signature(3), START_MS + LIFE_MS)
    assert refused(window, 2, START_MS + LIFE_MS) == "this signed request was already received"


def test_a_clock_set_back_forgets_nothing() -> None:
    window = ReplayWindow()
    window.admit(signature(1), START_MS)
    window.admit(signature(2), START_MS - 3_600_000)
    refused(window, 1, START_MS - 3_600_000)
    refused(window, 2, START_MS)


def test_two_windows_share_nothing() -> None:
    first, second = ReplayWindow(), ReplayWindow()
    first.admit(signature(1), START_MS)
    second.admit(signature(1), START_MS)
