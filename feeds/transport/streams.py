"""Dials and listens: the source of all streams and listening sockets.

A protocol driver takes a `trio.abc.Stream` and, if it connects by itself, a `Dial`: tests and simulations
pass memory streams and a dial of their own.

`dial` raises OSError and no other error (a refusal, an unknown name, a wrong certificate, TimeoutError). The
calling driver turns the OSError into an error of its own protocol.
"""

import errno
import socket
import ssl
from functools import cache
from typing import Protocol

import trio

from ...config.errors import ConfigError
from ...config.timeouts import DIAL_S

BACKLOG = 1_024
ALPN = ("http/1.1",)


class Dial(Protocol):
    """Type of a function that opens a connection: `dial`, or a test's replacement."""

    async def __call__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None,
        server_hostname: str | None = None,
        timeout_s: float = DIAL_S,
    ) -> trio.abc.Stream:
        """Open a connection; the arguments and errors are those of `dial`."""
        ...


async def dial(
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    server_hostname: str | None = None,
    timeout_s: float = DIAL_S,
) -> trio.abc.Stream:
    """Open a TCP connection, with a TLS handshake if `tls` is set.

    Args:
        host, port: destination; every address of the name is tried.
        tls: None for plain TCP.
        server_hostname: name that the certificate must have; None means `host`.
        timeout_s: seconds for name resolution, connection and handshake together.

    Raises:
        OSError: no connection could be made; TimeoutError and ssl.SSLError are subclasses.
    """
    try:
        with trio.fail_after(timeout_s):
            stream = await trio.open_tcp_stream(host, port)
            return stream if tls is None else await _secured(stream, tls, server_hostname or host)
    except trio.TooSlowError:
        raise TimeoutError(errno.ETIMEDOUT, f"no connection within {timeout_s} s") from None


async def _secured(stream: trio.SocketStream, tls: ssl.SSLContext, name: str) -> trio.abc.Stream:
    secured = trio.SSLStream(stream, tls, server_hostname=name, https_compatible=True)
    try:
        await secured.do_handshake()
    except trio.BrokenResourceError as error:
        await trio.aclose_forcefully(secured)
        cause = error.__cause__
        raise (cause if isinstance(cause, OSError) else ConnectionError("broken handshake")) from None
    except BaseException:
        await trio.aclose_forcefully(secured)
        raise
    return secured


def listen(host: str, port: int, *, backlog: int = BACKLOG) -> socket.socket:
    """Make a non-blocking listening socket; its connections use TCP_NODELAY and keep-alive probes.

    Args:
        host: an address or a name, whose first address counts. `::` accepts IPv4 too.
        port: 0 lets the system choose; ask `getsockname()`.
        backlog: most connections that may wait to be accepted.

    Raises:
        OSError: the address is unknown, not of this machine, or in use.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        # Accepted connections inherit these options.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        listener.bind(address)
        listener.listen(backlog)
        listener.settimeout(0)
    except BaseException:
        listener.close()
        raise
    return listener


def client_tls(authorities: str | None = None) -> ssl.SSLContext:
    """Make a TLS context for clients: TLS 1.2 or later, certificate and name verified.

    Args:
        authorities: a PEM file of the certificates to trust; None trusts the system's.

    Returns:
        The context; all calls with None return the same one, since reading the system's certificates takes
            15 ms.

    Raises:
        ConfigError: the file cannot be used.
    """
    return _system_tls() if authorities is None else _trusting(authorities)


@cache
def _system_tls() -> ssl.SSLContext:
    return _trusting(None)


def _trusting(authorities: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise ConfigError(authorities or "tls", f"not usable: {error.strerror or error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(ALPN)
    return context


def server_tls(certificate: str, key: str) -> ssl.SSLContext:
    """Make a TLS context for a server: TLS 1.2 or later.

    Args:
        certificate, key: PEM files; the certificate file also holds the chain, after the certificate.

    Raises:
        ConfigError: a file cannot be used, or the files do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(ALPN)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigError(
            "server.tls", f"{certificate}, {key}: not usable: {error.strerror or error}"
        ) from None
    return context
