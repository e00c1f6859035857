"""The route seal: only what was sealed, under a known key, and for 30 s."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cambist.config.errors import InvalidPriceRoute, StalePriceRoute
from cambist.crypto.route_seal import RouteSeal

sealer = RouteSeal([b"key"])
routes = st.binary(max_size=300)
times_ms = st.integers(0, 2**53)


@given(routes, times_ms, st.integers(-60_000, 60_000))
def test_a_seal_opens_for_30_s(route: bytes, issued_ms: int, age_ms: int) -> None:
    seal = sealer.seal(route, issued_ms)
    if age_ms <= 30_000:
        assert sealer.check(route, seal, issued_ms + age_ms) == issued_ms
    else:
        with pytest.raises(StalePriceRoute):
            sealer.check(route, seal, issued_ms + age_ms)


@given(routes, times_ms, st.data())
def test_any_changed_character_breaks_it(route: bytes, issued_ms: int, data: st.DataObject) -> None:
    seal = sealer.seal(route, issued_ms)
    at = data.draw(st.integers(0, len(seal) - 1))
    char = data.draw(st.sampled_from("0123456789abcdefABCDEF x"))
    assume(char != seal[at])
    with pytest.raises(InvalidPriceRoute):
        sealer.check(route, seal[:at] + char + seal[at + 1 :], issued_ms)


@given(routes, routes, times_ms)
def test_another_route_breaks_it(route: bytes, other: bytes, issued_ms: int) -> None:
    assume(route != other)
    with pytest.raises(InvalidPriceRoute):
        sealer.check(other, sealer.seal(route, issued_ms), issued_ms)


@given(
    st.text() | st.text("0123456789abcdef", min_size=80, max_size=80) | st.integers() | st.none(), times_ms
)
def test_garbage_is_an_invalid_route(seal: object, now_ms: int) -> None:
    with pytest.raises(InvalidPriceRoute) as caught:
        sealer.check(b"{}", seal, now_ms)
    assert caught.value.detail.isprintable()
