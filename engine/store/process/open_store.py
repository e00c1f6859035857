"""Open the store that the settings name, keep it running, and close it without losing a write.

Closing: the store refuses new units, writes the queued ones, then ends the store process.
"""

import random
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import structlog
import trio

from ....config.settings import Settings
from ....config.timeouts import STORE_OUTCOME_S
from ..store import InlineLink, Store
from .place import PostgresPlace, place_of
from .process import open_backend
from .process_link import ProcessLink

_WRITER_BYTES = 16

_log = structlog.get_logger("cambist.store")


@asynccontextmanager
async def open_store(
    settings: Settings,
    environ: Mapping[str, str],
    folder: Path,
    now_ms: Callable[[], int],
    *,
    in_process: bool = False,
) -> AsyncIterator[Store]:
    """Context manager: open the store that the settings name and run it until the block ends; all queued
    writes are made before the store closes.

    Args:
        environ: environment variables of this process, to which `env:NAME` in the settings refers; a store
            process inherits some of these variables.
        folder: folder of the settings file, the base of relative paths.
        now_ms: wall clock, Unix milliseconds.
        in_process: whether this process calls the database itself, instead of a store process. Each call
            then blocks the event loop; for tests, devnets and commands.

    Raises:
        ConfigError: the settings name no usable store.
        StoreUnavailable: the store cannot be used at the start.
    """
    place = place_of(settings, environ, folder)
    writer = secrets.token_bytes(_WRITER_BYTES)  # new at each start: the batches are numbered from 1 again
    opened = partial(
        Store,
        queue_max=settings.store.queue_max,
        batch_max=settings.store.batch_max,
        is_shareable=isinstance(place, PostgresPlace),
    )
    if in_process:
        with open_backend(place, now_ms, 0) as backend:
            async with _running(opened(InlineLink(backend, writer)), None) as store:
                yield store
    else:
        link = ProcessLink(place, writer, random.SystemRandom().random, environ)
        async with _running(opened(link), link) as store:
            yield store


@asynccontextmanager
async def _running(store: Store, link: ProcessLink | None) -> AsyncIterator[Store]:
    scope = trio.CancelScope()
    with _one_error():
        async with trio.open_nursery() as nursery:
            await nursery.start(_run, store, link, scope)
            scope.shield = True  # a cancelled block drains the store all the same
            try:
                yield store
            finally:
                store.close()
                with trio.move_on_after(STORE_OUTCOME_S, shield=True) as waiting:
                    await store.drained()
                if waiting.cancelled_caught:
                    _log.error("the store is closed with writes whose outcome is not known")
                scope.cancel()


async def _run(
    store: Store, link: ProcessLink | None, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]
) -> None:
    with scope, _one_error():
        async with trio.open_nursery() as nursery:
            if link is not None:
                await nursery.start(link.run, store)
            await nursery.start(store.run)
            nursery.start_soon(store.run_probes)
            task_status.started()


@contextmanager
def _one_error() -> Iterator[None]:
    """Context manager: if the block raises an exception group with a single error, as a nursery does, raise
    that error itself.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        error, *more = group.exceptions
        if more:
            raise
        raise error from error.__cause__
