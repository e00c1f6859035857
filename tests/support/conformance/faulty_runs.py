"""A run of the harness against a maker of `faulty_maker`, on loopback.

A maker with planted faults, served beside a command that runs in this process.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

import trio

from cambist.engine.trader.conformance.checks.auth import Credentials
from cambist.engine.trader.conformance.options import CheckOptions, read_base_url
from cambist.engine.trader.conformance.rules import CheckStatus, Selection
from cambist.engine.trader.conformance.run import RunReport, run_checks
from cambist.feeds.transport.streams import server_tls
from support.conformance.faulty_maker import (
    ACCESS_KEY,
    CHAIN_ID,
    CONTRACT,
    DOMAIN,
    PREFIX,
    SECRET,
    TAKER,
    Maker,
)
from support.conformance.faulty_serving import Server
from support.patience import PATIENCE_S

UNTIMED = ("load.latency", "run.speed")  # no test depends on how fast the machine is


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def mock_now_ms() -> int:
    """The time of a run on a MockClock: the wall clock of a maker and of the harness are one."""
    return 1_800_000_000_000 + int(trio.current_time() * 1000)


def options(port: int, **more: Any) -> CheckOptions:
    """Options of a check against a maker of the tests; `more` replaces settings."""
    usual: dict[str, Any] = {
        "base": read_base_url(f"http://127.0.0.1:{port}{PREFIX}", "URL", ("http", "https")),
        "credentials": Credentials(DOMAIN, ACCESS_KEY, SECRET.encode()),
        "chain_id": CHAIN_ID,
        "rfq_contract": CONTRACT,
        "taker": TAKER,
        "watch_s": 0.2,
        "timeout_s": 5.0,
        "quotes": 48,
    }
    return CheckOptions(**(usual | more))


async def judge(
    maker: Maker,
    only: tuple[str, ...] = (),
    *,
    strict: bool = False,
    skip: tuple[str, ...] = UNTIMED,
    clock: Callable[[], int] | None = None,
    certificate: tuple[str, str] | None = None,
    **more: Any,
) -> RunReport:
    """Serve the maker, over TLS if a certificate and its key are given; run the harness against it; stop.

    Args:
        clock: the harness's, milliseconds since the Unix epoch; the maker's unless given.
    """
    tls = server_tls(*certificate) if certificate else None
    async with trio.open_nursery() as nursery:
        port = await nursery.start(Server(maker, tls).run)
        if certificate:
            more["authorities"] = certificate[0]
            more["base"] = read_base_url(f"https://127.0.0.1:{port}{PREFIX}", "URL", ("http", "https"))
        selection = Selection(only, skip, strict)
        report = await run_checks(options(port, selection=selection, **more), now_ms=clock or maker.now_ms)
        nursery.cancel_scope.cancel()
    return report


def failed(report: RunReport) -> set[str]:
    """Ids of the checks that failed."""
    return {verdict.check.id for verdict in report.verdicts if verdict.status is CheckStatus.FAILED}


def told(report: RunReport) -> str:
    """Faults of the checks that did not pass, for the message of an assertion."""
    return "\n".join(
        f"{verdict.check.id}: {fault.where}: expected {fault.expected}, got {fault.got}"
        for verdict in report.verdicts
        for fault in verdict.faults
    )


SIGNED = ("--domain", DOMAIN, "--access-key", ACCESS_KEY, "--secret", "env:MAKER_SECRET")
"""Options that sign requests to the maker; the variable MAKER_SECRET has the secret."""


class Served:
    """A maker on a loop of its own, in a thread."""

    def __init__(self) -> None:
        self.maker = Maker(now_ms)
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: trio.run(self._serve))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._token.run_sync_soon(self._scope.cancel)
        self._thread.join()

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            self._port = await nursery.start(Server(self.maker).run)
            self._ready.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{PREFIX}"
