"""A maker with planted faults, served beside a command that runs in this process."""

import threading
from typing import Self

import trio

from support.conformance.faulty_maker import ACCESS_KEY, DOMAIN, PREFIX, Maker
from support.conformance.faulty_runs import now_ms
from support.conformance.faulty_serving import Server
from support.patience import PATIENCE_S

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
