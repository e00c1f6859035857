"""The access log: members of a line, secrets left out, and behaviour under overload."""

import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from cambist.config.errors import ConfigError
from cambist.engine.host.server import AccessLog, access_log, open_access_log
from support.patience import PATIENCE_S
from support.server.server_harness import GET, LAST_GET, NOW_MS, answers, field, post, serving

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@both
async def test_every_answer_has_a_line_and_no_header_or_body_is_in_it(reactor: bool, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with open_access_log(str(path)) as sink:
        async with serving(reactor=reactor, access_log=AccessLog(sink)) as served:
            secret = b"X-AUTH-SIGNATURE: hidden"
            data = await served.converse(
                GET.replace(b"/ ", b"/?a=%20b "),
                post(b"/echo", b"hidden", secret),
                GET.replace(b"/", b"/broken", 1).replace(b"broken", b"nowhere"),
                GET.replace(b"/", b"/numbers", 1),
                LAST_GET.replace(b"GET", b"HEAD"),
            )
            await served.converse(b"garbage hidden\r\n\r\n")
            served.server.drain()
            await served.ended.wait()
    found = lines(path)
    assert [(line["method"], line["target"], line["status"], line["bytes"]) for line in found] == [
        ("GET", "/?a=%20b", 200, 7),
        ("POST", "/echo", 200, 6),
        ("GET", "/nowhere", 404, 21),
        ("GET", "/numbers", 200, 6),
        ("HEAD", "/", 200, 0),
        ("-", "-", 400, found[-1]["bytes"]),
    ]
    assert b"hidden" not in path.read_bytes()
    ids = [answer.headers for answer in answers(data, b"GET", b"POST", b"GET", b"GET", b"HEAD")]
    assert [dict(headers)[b"x-request-id"].decode() for headers in ids] == [
        line["request_id"] for line in found[:-1]
    ]
    assert {line["client"] for line in found} == {"127.0.0.1"}
    assert {line["time_ms"] for line in found} == {NOW_MS}
    assert all(line["us"] >= 0 for line in found)


async def test_what_there_is_no_room_for_is_counted_and_said() -> None:
    sink = io.BytesIO()
    log = AccessLog(sink, entries_max=3)
    for number in range(5):
        log.add((NOW_MS, "::1", b"GET", b"/%d" % number, 200, 1, 0.000_25, "id"))
    await log.flush()
    log.add((NOW_MS, "::1", b"GET", b"/after", 200, 1, 0.000_25, "id"))
    await log.flush()
    written = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line.get("target", line) for line in written] == ["/0", "/1", "/2", {"dropped": 2}, "/after"]
    assert written[0]["us"] == 250
    assert log.dropped == 2


async def test_a_file_that_cannot_be_written_costs_lines_and_nothing_else() -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    log = AccessLog(Full())
    async with serving(reactor=True, access_log=log) as served:
        (answer,) = answers(await served.converse(LAST_GET))
        assert field(answer, b"x-request-id")
        with structlog.testing.capture_logs() as logs:
            await log.flush()
        assert len(logs) == 1
        assert served.server.statistics().log_dropped == 1


class Sink(io.BytesIO):
    """Takes `room` bytes, then says that there is no space left."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(self.room, len(data))
        self.room -= taken
        return super().write(data[:taken])


async def test_a_disk_that_fills_up_loses_lines_but_tears_and_doubles_none() -> None:
    sink = Sink(room=150)
    log = AccessLog(sink)
    for number in range(3):
        log.add((NOW_MS, "::1", b"GET", b"/%d" % number, 200, 1, 0.0, "id"))
    with structlog.testing.capture_logs() as logs:
        await log.flush()
    assert len(logs) == 1
    assert log.dropped == 2
    sink.room = 10_000
    log.add((NOW_MS, "::1", b"GET", b"/after", 200, 1, 0.0, "id"))
    await log.flush()
    await log.flush()
    whole, torn, *after = sink.getvalue().splitlines()
    assert json.loads(whole)["target"] == "/0"
    with pytest.raises(json.JSONDecodeError):
        json.loads(torn)
    found = [json.loads(line) for line in after]
    assert [line.get("target", line) for line in found] == ["/after", {"dropped": 2}]


async def test_a_long_target_is_cut_and_marked() -> None:
    sink = io.BytesIO()
    log = AccessLog(sink)
    for size in (512, 513, 9_000):
        log.add((NOW_MS, "::1", b"GET", b"/" * size, 200, 1, 0.0, "id"))
    assert sum(len(entry[3]) for entry in log._ring) < 1_700
    await log.flush()
    targets = [json.loads(line)["target"] for line in sink.getvalue().splitlines()]
    assert targets == ["/" * 512, "/" * 512 + "... (513 bytes)", "/" * 512 + "... (9000 bytes)"]


async def test_a_pipe_that_nobody_reads_holds_up_neither_answers_nor_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_log, "ACCESS_LOG_END_S", 0.1)
    read, write = os.pipe()
    with os.fdopen(read, "rb") as unread, os.fdopen(write, "wb", buffering=0) as sink:
        log = AccessLog(sink)
        async with serving(reactor=True, access_log=log, requests_per_connection_max=10_000) as served:
            with trio.fail_after(PATIENCE_S):
                for _ in range(2):
                    data = await served.converse(GET * 2_000 + LAST_GET)
                    assert data.count(b"HTTP/1.1 200") == 2_001
                    await trio.sleep(0.3)  # a batch is on its way into the pipe, and stays there
                served.server.drain()
                with structlog.testing.capture_logs() as logs:
                    await served.ended.wait()
        assert [entry["event"] for entry in logs] == ["the access log is stuck"]
        os.set_blocking(unread.fileno(), False)
        written = unread.read() or b""
        assert log.dropped >= 4_002 - written.count(b"\n")
        assert log.dropped > 2_000
        unread.close()  # lets the thread go


async def test_lines_are_written_while_the_server_runs(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with open_access_log(str(path)) as sink:
        async with serving(reactor=True, access_log=AccessLog(sink)) as served:
            await served.converse(LAST_GET)
            with trio.fail_after(PATIENCE_S):
                while not lines(path):
                    await trio.lowlevel.checkpoint()


def test_a_file_that_cannot_be_opened_is_the_operators_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="access_log"):
        open_access_log(str(tmp_path))
