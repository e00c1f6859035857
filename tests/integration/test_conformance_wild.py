"""The harness ends with a report, and never with a traceback, against makers that answer at random.

A right maker and a node answer wrongly now and then: at random, and the same for the same seed. A fault of
`faulty_table` is one wrong thing; these faults are arbitrary: entries come and go between two requests,
members change their type, bodies are cut, statuses are others, connections end.
"""

import io
import json
import random
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console
from trio.testing import MockClock

from cambist.engine.trader.conformance.options import read_base_url
from cambist.engine.trader.conformance.report import print_report, to_json, to_junit
from cambist.engine.trader.conformance.run import RunReport
from support.conformance.faulty_maker import CHAIN_ID, Headers, Maker, Refused
from support.conformance.faulty_node import FaultyNode
from support.conformance.faulty_runs import judge, mock_now_ms
from support.examples import examples

_DEEP: Any = "end"
for _ in range(500):
    _DEEP = [_DEEP]
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, "", "0", "-1", "18", "1e5", "3000", "9" * 90, "0x" + "a1" * 20),
    *("\ud800", "\x00\x1b[2J", [], {}, [["3000", "1"]], [[]], {"bids": []}, {"a": {"b": [1]}}, _DEEP),
)
_BODIES = (b"", b"{}", b"[]", b"null", b"<html>", b"\xff\xfe", b'"text"', b"[" * 5_000, b"1" * 500)
_STATUSES = (200, 200, 201, 301, 400, 401, 403, 404, 405, 429, 500, 503)
_TYPES = (b"application/json", b"text/html", b"\xe9", b"application/json; charset=utf-8")
_NOISE = b"HTTP/1.1 999 \r\n\r\n"


def _spoiled(rng: random.Random, value: Any) -> Any:
    """With one or more values, somewhere within, that are others."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return rng.choice(_VALUES)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [*value[:at], _spoiled(rng, value[at]), *value[at + 1 :]]
    key = rng.choice(list(value))
    if rng.random() < 0.15:
        return {name: member for name, member in value.items() if name != key}
    return value | {key: _spoiled(rng, value[key])}


class WildNode(FaultyNode):
    """A node that now and then says something else."""

    def __init__(self, chain_id: int, seed: int, wildness: float) -> None:
        super().__init__(chain_id)
        self._rng = random.Random(seed)
        self._wildness = wildness

    def answer(self, call: dict[str, Any]) -> tuple[int, Any]:
        """As it is, or spoiled."""
        status, right = super().answer(call)
        return status, _spoiled(self._rng, right) if self._rng.random() < self._wildness else right


class WildMaker(Maker):
    """As `Maker`; in `wildness` of all answers something is not.

    Attributes:
        rng: of everything that is random here.
    """

    def __init__(self, now_ms: Callable[[], int], seed: int, wildness: float) -> None:
        super().__init__(now_ms)
        self.rng = random.Random(seed)
        self._wildness = wildness
        self.wire = self._wired

    def _is_wild(self) -> bool:
        return self.rng.random() < self._wildness

    def resource(self, name: str) -> Any:
        """As it is, or with an entry that is off, gone or one-sided for this one look."""
        content = super().resource(name)
        if isinstance(content, dict) and content and self._is_wild():
            key = self.rng.choice(list(content))
            content = dict(content)
            if self.rng.random() < 0.4:
                content[key] = {}
            elif self.rng.random() < 0.5:
                del content[key]
            elif name == "prices":
                side = self.rng.choice(("bids", "asks"))
                content[key] = {side: content[key].get(side, [])}
        return content

    def answer(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """As it is, or spoiled."""
        status, raw = super().answer(method, target, headers, body)
        self.content_type = self.error_content_type = b"application/json"
        if not self._is_wild():
            return status, raw
        kind = self.rng.randrange(6)
        if kind == 0:
            status = self.rng.choice(_STATUSES)
        elif kind == 1:
            raw = self.rng.choice(_BODIES)
        elif kind == 2:
            raw = raw[: self.rng.randrange(len(raw) + 1)]
        elif kind == 3:
            self.content_type = self.error_content_type = self.rng.choice(_TYPES)
        else:
            raw = json.dumps(_spoiled(self.rng, json.loads(raw))).encode()
        return status, raw

    def _wired(self, raw: bytes) -> bytes:
        if self.rng.random() > self._wildness / 4:
            return raw
        at = self.rng.randrange(len(raw))
        return self.rng.choice((b"", raw[:at], raw[:at] + b"\r\n\0" + raw[at:], raw + raw, _NOISE))

    def admit_socket(self, path: str, headers: Headers) -> None:
        """As ever, or refused."""
        super().admit_socket(path, headers)
        if self._is_wild():
            raise Refused(self.rng.choice((400, 401, 404, 429, 500)), "not now \xe9")

    def first_message(self) -> str:
        """As it is, or spoiled."""
        return self._said(super().first_message())

    def next_update(self) -> str:
        """As it is, or spoiled."""
        return self._said(self.updates({"prices": self._prices(), "blacklist": ["0x" + "ee" * 20]}))

    def _said(self, message: Any) -> str:
        if self._is_wild():
            if self.rng.random() < 0.3:
                return self.rng.choice(_BODIES).decode("latin-1")
            message = _spoiled(self.rng, message)
        return json.dumps(message)


UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed is no simpler run


@given(st.integers(0, 1 << 32), st.sampled_from((0.02, 0.1, 0.3, 0.8)))
@settings(max_examples=examples(8), phases=UNSHRUNK)
def test_a_maker_that_answers_at_random_gets_a_report(seed: int, wildness: float) -> None:

    async def judged() -> RunReport:
        maker, node = WildMaker(mock_now_ms, seed, wildness), WildNode(CHAIN_ID, seed, wildness / 4)
        async with trio.open_nursery() as nursery:
            port = await nursery.start(node.run)
            place = read_base_url(f"http://127.0.0.1:{port}", "--node-url", ("http",))
            report = await judge(maker, strict=True, quotes=24, timeout_s=1.0, connections=2, node=place)
            nursery.cancel_scope.cancel()
        return report

    report = trio.run(judged, clock=MockClock(autojump_threshold=0))
    assert report.broken == ()
    print_report(report, Console(file=io.TextIOWrapper(io.BytesIO(), "utf-8"), width=110))
    json.loads(to_json(report))
    ET.fromstring(to_junit(report))
