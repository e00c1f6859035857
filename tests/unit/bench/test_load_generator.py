"""The load's reader of answers; the environments of the load benches hold the product's own versions."""

import re
from pathlib import Path

import pytest
from bench.cpu_use import CpuUse
from bench.load_answers import AnswerFault, take_answer

ROOT = Path(__file__).parents[3]
ANSWER = b"HTTP/1.1 200 OK\r\nserver: a\r\nContent-Length: 5\r\nconnection: keep-alive\r\n\r\nhello"


def test_answers_are_taken_one_by_one() -> None:
    data = ANSWER + ANSWER.replace(b"200", b"503")
    assert take_answer(data, 0) == (200, b"hello", len(ANSWER))
    assert take_answer(data, len(ANSWER)) == (503, b"hello", len(data))


@pytest.mark.parametrize("size", range(len(ANSWER)))
def test_a_part_of_an_answer_is_none_yet(size: int) -> None:
    assert take_answer(ANSWER[:size], 0) is None


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 200 OK\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b"\r\n\r\n"]
)
def test_what_is_no_answer_with_a_length_is_refused(data: bytes) -> None:
    with pytest.raises(AnswerFault):
        take_answer(data, 0)


def test_the_peers_run_with_the_versions_of_the_product() -> None:
    locks = [(ROOT / ".ci" / "locks" / name).read_text(encoding="utf-8") for name in ("dev.txt", "load.txt")]
    dev, load = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE)) for lock in locks)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (dependencies,) = re.findall(r"^dependencies = \[(.*?)^\]", settings, re.MULTILINE | re.DOTALL)
    names = re.findall(r'"([a-z-]+)', dependencies)
    assert names
    assert {name: load[name] for name in names} == {name: dev[name] for name in names}


def test_our_own_use_of_the_cores_is_not_foreign() -> None:
    use = CpuUse(())
    while use.own == 0.0:
        sum(range(100_000))
        use.end()
    assert use.own is None or use.own > 0
    assert (use.foreign is None) is (use.own is None)
    assert use.foreign is None or use.foreign >= 0
