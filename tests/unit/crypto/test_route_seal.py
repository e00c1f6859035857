"""The seal of a Market route: its proof, lifetime and keys."""

import hmac

import pytest

from cambist.codecs.canonical_json import canonical
from cambist.config.errors import InvalidPriceRoute, StalePriceRoute
from cambist.crypto.route_seal import RouteSeal

NOW_MS = 1_700_000_000_000
KEY, OLD_KEY = b"new key", b"old key"
ROUTE = b'{"destAmount":"2270000000","srcAmount":"1500000000000000000"}'


def test_a_seal_is_the_time_and_the_hmac_of_time_and_route() -> None:
    seal = RouteSeal([KEY]).seal(ROUTE, NOW_MS)
    time = f"{NOW_MS:016x}"
    assert seal == time + hmac.new(KEY, time.encode() + ROUTE, "sha256").hexdigest()


def test_what_a_seal_carries_is_covered_and_comes_back() -> None:
    sealed, carried = RouteSeal([KEY]), b'{"taxes":[0,0,0,0]}'
    seal = sealed.seal(ROUTE, NOW_MS, carried)
    assert sealed.check(ROUTE, seal, NOW_MS) == NOW_MS
    assert (sealed.carried(seal), sealed.carried(sealed.seal(ROUTE, NOW_MS))) == (carried, b"")
    taxed = seal[:80] + b'{"taxes":[0,0,0,1]}'.hex()
    for other in (seal[:80], seal[:-2], seal + "00", taxed, GOOD + seal[80:]):
        with pytest.raises(InvalidPriceRoute):
            sealed.check(ROUTE, other, NOW_MS)


@pytest.mark.parametrize("age_ms", [-1_000, 0, 1, 29_999, 30_000])
def test_a_fresh_seal_tells_when_it_was_issued(age_ms: int) -> None:
    sealed = RouteSeal([KEY])
    assert sealed.check(ROUTE, sealed.seal(ROUTE, NOW_MS), NOW_MS + age_ms) == NOW_MS


@pytest.mark.parametrize("age_ms", [30_001, 86_400_000])
def test_an_old_seal_is_stale(age_ms: int) -> None:
    sealed = RouteSeal([KEY])
    with pytest.raises(StalePriceRoute) as caught:
        sealed.check(ROUTE, sealed.seal(ROUTE, NOW_MS), NOW_MS + age_ms)
    assert str(caught.value) == f"Stale priceRoute: issued {age_ms} ms ago, at most 30000 ms are allowed"


def test_a_route_may_be_used_several_times_while_fresh() -> None:
    sealed = RouteSeal([KEY])
    seal = sealed.seal(ROUTE, NOW_MS)
    assert {sealed.check(ROUTE, seal, NOW_MS + at_ms) for at_ms in (0, 10_000, 20_000)} == {NOW_MS}


GOOD = RouteSeal([KEY]).seal(ROUTE, NOW_MS)
FORGED: dict[str, object] = {
    "absent": None,
    "empty": "",
    "a number": 5,
    "bytes": GOOD.encode(),
    "a list": list(GOOD),
    "short": GOOD[:-1],
    "long": GOOD + "0",
    "0x": "0x" + GOOD[2:],
    "upper case": GOOD.upper(),
    "not hexadecimal": "g" * 80,
    "digits of another script": "\u0661" * 80,
    "lone surrogates": "\ud800" * 80,
    "a space": " " + GOOD[1:],
    "zero": "0" * 80,
    "a later time": f"{NOW_MS + 60_000:016x}" + GOOD[16:],
    "another digest": GOOD[:16] + "0" * 64,
}


@pytest.mark.parametrize("seal", FORGED.values(), ids=FORGED)
def test_a_forged_seal_is_invalid_and_the_right_one_is_not_told(seal: object) -> None:
    with pytest.raises(InvalidPriceRoute) as caught:
        RouteSeal([KEY]).check(ROUTE, seal, NOW_MS)
    assert caught.value.status == 400
    assert str(caught.value).startswith("Invalid priceRoute")
    assert GOOD[16:] not in str(caught.value)


def test_an_old_forgery_is_invalid_rather_than_stale() -> None:
    with pytest.raises(InvalidPriceRoute):
        RouteSeal([KEY]).check(ROUTE + b" ", GOOD, NOW_MS + 86_400_000)


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(b"", id="none"),
        pytest.param(ROUTE.replace(b"2270000000", b"2270000001"), id="one unit more"),
        pytest.param(ROUTE.replace(b'"2270000000"', b"2270000000"), id="amount as a number"),
        pytest.param(ROUTE[:-1] + b',"x":1}', id="a key more"),
    ],
)
def test_a_changed_route_is_invalid(route: bytes) -> None:
    with pytest.raises(InvalidPriceRoute, match="the route differs from the route of its hmac"):
        RouteSeal([KEY]).check(route, GOOD, NOW_MS)


def test_a_route_with_its_keys_in_another_order_is_the_same() -> None:
    sealed = RouteSeal([KEY])
    seal = sealed.seal(canonical(b'{"a": "1", "b": {"c": 2, "d": 3}}'), NOW_MS)
    assert sealed.check(canonical(b'{"b":{"d":3,"c":2},"a":"1"}'), seal, NOW_MS) == NOW_MS


def test_a_previous_key_still_opens_what_it_sealed_and_seals_no_more() -> None:
    rotated = RouteSeal([KEY, OLD_KEY])
    assert rotated.check(ROUTE, RouteSeal([OLD_KEY]).seal(ROUTE, NOW_MS), NOW_MS) == NOW_MS
    assert rotated.seal(ROUTE, NOW_MS) == RouteSeal([KEY]).seal(ROUTE, NOW_MS)
    with pytest.raises(InvalidPriceRoute):
        RouteSeal([OLD_KEY]).check(ROUTE, rotated.seal(ROUTE, NOW_MS), NOW_MS)


@pytest.mark.parametrize("keys", [[], [b""], [KEY, b""]], ids=["none", "empty", "one empty"])
def test_a_seal_without_a_key_is_no_seal(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="key"):
        RouteSeal(keys)


def test_its_keys_do_not_show() -> None:
    sealed = RouteSeal([KEY])
    assert "new key" not in repr(sealed) + str(vars(sealed))
