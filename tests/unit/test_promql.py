"""Values of the expressions of alarms, by figures worked out by hand."""

import pytest

from support.promql import Labels, Scrape, Vector, evaluate


def labels(**named: str) -> Labels:
    return frozenset(named.items())


A, B = labels(chain="1"), labels(chain="2")
HISTORY = [
    Scrape(0, {("old", A): 5, ("up", A): 1}),
    Scrape(100, {("calls", A): 10, ("calls", B): 7, ("head", A): 5, ("gone", A): 1}),
    Scrape(160, {("calls", A): 16, ("calls", B): 7, ("head", A): 9, ("late", A): 3}),
    Scrape(
        220,
        {
            ("calls", A): 4,
            ("calls", B): 7,
            ("head", A): 8,
            ("late", A): 3,
            ("is", labels(maker="x", chain="1", standing="live")): 2,
            ("is", labels(maker="x", chain="2", standing="live")): 3,
            ("is", labels(maker="x", chain="1", standing="stale")): 4,
            ("lag", labels(le="0.1")): 90,
            ("lag", labels(le="0.2")): 100,
            ("lag", labels(le="+Inf")): 100,
            ("never", labels(le="+Inf")): 0,
        },
    ),
]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("calls", {A: 4, B: 7}),
        ('calls{chain="2"}', {B: 7}),
        ("calls > 5", {B: 7}),
        ("calls < 5", {A: 4}),
        ("calls == 7", {B: 7}),
        ("gone", {}),
        ("increase(calls[2m])", {A: 10, B: 0}),  # from 10 to 16, and from the start to 4
        ("increase(calls[1m])", {A: 4, B: 0}),
        ("rate(calls[2m]) > 0", {A: 10 / 120}),
        ("delta(head[2m])", {A: 3}),
        ("delta(head[30s])", {}),  # one value
        ("increase(late[1h])", {A: 0}),  # it was 3 from its first value on
        ("increase(old[1h])", {}),
        ("delta(head[2m]) > 0 and increase(calls[2m]) == 0", {}),
        ("delta(head[2m]) > 0 and increase(calls[2m]) > 0", {A: 3}),
        ("head - calls", {A: 4}),
        ('sum by (maker) (is{standing="live"})', {labels(maker="x"): 5}),
        ('sum by (maker, chain) (is{standing="live"}) > 2', {labels(maker="x", chain="2"): 3}),
        ("sum(is)", {labels(): 9}),
        ("histogram_quantile(0.45, lag)", {labels(): 0.05}),
        ("histogram_quantile(0.95, lag)", {labels(): pytest.approx(0.15)}),
        ("histogram_quantile(0.99, never)", {}),
    ],
)
def test_expressions(text: str, told: Vector) -> None:
    assert evaluate(text, HISTORY) == told


@pytest.mark.parametrize(
    "text", ["", "calls >", "calls[5m]", "sum by chain (is)", "calls ? 1", "(calls", "1 1"]
)
def test_what_is_no_such_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|ends too early|not understood"):
        evaluate(text, HISTORY)
