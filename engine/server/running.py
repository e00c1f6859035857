"""What every role that serves does as a process: an address, signals, and a collector that rests."""

import gc
import signal
import socket
from typing import Protocol

import structlog
import trio

from ...config.errors import ConfigError
from ...config.timeouts import GC_FREEZE_AFTER_S
from ...feeds.net.streams import listen

_log = structlog.get_logger("cambist.server")


class Draining(Protocol):
    """A role that can end its work in order."""

    def drain(self) -> None:
        """Stop accepting, answer what is in flight, and end then."""
        ...


def listening(field: str, host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        field: the table of the settings that names host and port.

    Raises:
        ConfigError: it cannot be listened there.
    """
    try:
        return listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"{field}.port", f"cannot listen on {host} port {port}: {error.strerror or error}"
        ) from None


def url_of(scheme: str, listener: socket.socket) -> str:
    """What a listener is reached under."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def drain_on_signal(app: Draining, everything: trio.CancelScope) -> None:
    """The first SIGTERM or SIGINT drains, the second ends at once."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for received in signals:
            _log.info("draining", signal=signal.Signals(received).name)
            app.drain()
            break
        async for _ in signals:
            everything.cancel()


async def freeze_collector() -> None:
    """What is there after the start is no longer walked by the collector."""
    await trio.sleep(GC_FREEZE_AFTER_S)
    gc.collect()
    gc.freeze()
