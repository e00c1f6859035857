"""Values of Prometheus expressions over scrapes, in the part of PromQL in which alarms are written.

    history = [Scrape(0.0, samples), Scrape(15.0, samples)]
    evaluate('increase(cambist_server_errors_total[5m]) > 0', history)     {labels: number}, or nothing

    expression = comparison { "and" comparison }         by equal labels
    comparison = difference [ ("==" | ">" | "<") number ]
    difference = operand { "-" operand }                 by equal labels, without names
    operand    = name [ "{" label="value", ... "}" ]
               | ("increase" | "rate" | "delta") "(" name [...] "[" number ("s" | "m" | "h") "]" ")"
               | "histogram_quantile" "(" number "," expression ")"
               | "sum" [ "by" "(" labels ")" ] "(" expression ")" | "(" expression ")"

As in Prometheus, a series that is not in a scrape has no value there, a function over a range needs two
values, and a counter that falls began anew. Unlike Prometheus, no value is extrapolated to the range's ends.

Source: prometheus.io/docs/prometheus/latest/querying.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import inf

from msgspec import Struct

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

_TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*)|(\d+(?:\.\d+)?)|"([^"]*)"|(==|[-><=,(){}\[\]]))')
_SECONDS = {"s": 1, "m": 60, "h": 3_600}
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "==": lambda one, other: one == other,
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
}


class Scrape(Struct, frozen=True):
    """All samples of a moment: (name, labels) -> value."""

    at_s: float
    samples: Mapping[tuple[str, Labels], float]


def evaluate(text: str, history: Sequence[Scrape]) -> Vector:
    """Value of an expression at the last scrape. ValueError if the grammar of the module has no such text."""
    parser = _Parser(text, history)
    found = parser.expression()
    if parser.left():
        raise ValueError(f"{text}: not understood from {parser.left()}")
    return found


class _Parser:
    def __init__(self, text: str, history: Sequence[Scrape]) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._history = history

    def left(self) -> str:
        return " ".join(self._tokens)

    def expression(self) -> Vector:
        found = self._comparison()
        while self._takes("and"):
            other = self._comparison()
            found = {labels: value for labels, value in found.items() if labels in other}
        return found

    def _comparison(self) -> Vector:
        found = self._difference()
        for sign, holds in _COMPARED.items():
            if self._takes(sign):
                bound = float(self._next())
                return {labels: value for labels, value in found.items() if holds(value, bound)}
        return found

    def _difference(self) -> Vector:
        found = self._operand()
        while self._takes("-"):
            other = self._operand()
            found = {labels: value - other[labels] for labels, value in found.items() if labels in other}
        return found

    def _operand(self) -> Vector:
        name = self._next()
        if name == "(":
            return self._closed(self.expression())
        if name == "sum":
            by = self._labels_kept()
            self._expects("(")
            return _summed(self._closed(self.expression()), by)
        if name == "histogram_quantile":
            self._expects("(")
            share = float(self._next())
            self._expects(",")
            return _quantile(share, self._closed(self.expression()))
        if name in _OVER_RANGES:
            self._expects("(")
            metric, wanted = self._next(), self._wanted()
            self._expects("[")
            seconds = float(self._next())
            seconds *= _SECONDS[self._next()]
            self._expects("]")
            self._expects(")")
            return self._over(_OVER_RANGES[name], metric, wanted, seconds)
        wanted = self._wanted()
        return _selected(self._history[-1], name, wanted)

    def _over(self, function: "_OverRange", name: str, wanted: Labels, seconds: float) -> Vector:
        first_s = self._history[-1].at_s - seconds
        series: dict[Labels, list[tuple[float, float]]] = {}
        for scrape in self._history:
            if scrape.at_s >= first_s:
                for labels, value in _selected(scrape, name, wanted).items():
                    series.setdefault(labels, []).append((scrape.at_s, value))
        return {labels: function(points) for labels, points in series.items() if len(points) > 1}

    def _wanted(self) -> Labels:
        found: list[tuple[str, str]] = []
        if self._takes("{"):
            while not self._takes("}"):
                label = self._next()
                self._expects("=")
                found.append((label, self._next()))
                self._takes(",")
        return frozenset(found)

    def _labels_kept(self) -> frozenset[str]:
        found: set[str] = set()
        if self._takes("by"):
            self._expects("(")
            while not self._takes(")"):
                found.add(self._next())
                self._takes(",")
        return frozenset(found)

    def _closed(self, found: Vector) -> Vector:
        self._expects(")")
        return found

    def _takes(self, token: str) -> bool:
        if self._tokens[:1] == [token]:
            self._next()
            return True
        return False

    def _expects(self, token: str) -> None:
        if not self._takes(token):
            raise ValueError(f"{self._text}: expected {token} before {self.left() or 'the end'}")

    def _next(self) -> str:
        if not self._tokens:
            raise ValueError(f"{self._text}: ends too early")
        return self._tokens.pop(0)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text}: not understood from {text[at:]}")
        found.append(next(group for group in match.groups() if group is not None))
        at = match.end()
    return found


def _selected(scrape: Scrape, name: str, wanted: Labels) -> Vector:
    return {
        labels: value
        for (found, labels), value in scrape.samples.items()
        if found == name and wanted <= labels
    }


def _summed(vector: Vector, by: frozenset[str]) -> Vector:
    found: Vector = {}
    for labels, value in vector.items():
        kept = frozenset((name, text) for name, text in labels if name in by)
        found[kept] = found.get(kept, 0.0) + value
    return found


def _quantile(share: float, vector: Vector) -> Vector:
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in vector.items():
        bound = float(dict(labels)["le"].replace("+Inf", "inf"))
        rest = frozenset((name, text) for name, text in labels if name != "le")
        histograms.setdefault(rest, []).append((bound, value))
    return {
        labels: _within(share, sorted(buckets))
        for labels, buckets in histograms.items()
        if max(value for _, value in buckets) > 0
    }


def _within(share: float, buckets: Sequence[tuple[float, float]]) -> float:
    """Quantile of a histogram, by straight lines between the bounds of its buckets."""
    rank = share * buckets[-1][1]
    below, below_count = 0.0, 0.0
    for bound, so_far in buckets:
        if so_far >= rank:
            if bound == inf:
                return below
            return below + (bound - below) * (rank - below_count) / (so_far - below_count or 1.0)
        below, below_count = bound, so_far
    return below


_OverRange = Callable[[Sequence[tuple[float, float]]], float]


def _increase(points: Sequence[tuple[float, float]]) -> float:
    return sum(new - old if new >= old else new for (_, old), (_, new) in pairwise(points))


_OVER_RANGES: dict[str, _OverRange] = {
    "increase": _increase,
    "rate": lambda points: _increase(points) / (points[-1][0] - points[0][0]),
    "delta": lambda points: points[-1][1] - points[0][1],
}
