"""Settings of an HTTP server: its listening socket and the limits for each client."""

import re

import msgspec

from .. import limits, timeouts


class TlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files of a TLS server.

    Attributes:
        certificate: PEM file of the certificate chain.
        key: PEM file of the private key.
    """

    certificate: str
    key: str


class HealthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A listener for health and metrics alone, over plain HTTP.

    Attributes:
        host, port: address of the listener; port 0 lets the system choose.
    """

    host: str = "127.0.0.1"
    port: int = 8081

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"port is 0 to 65535, got {self.port}")


ANY_ORIGIN, LOCAL_ORIGINS = "*", "localhost"
_is_origin = re.compile(r"[a-z][a-z0-9+.\-]*://[^/?#\s@]+|null").fullmatch


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of an HTTP server. The bounds apply to each process.

    Attributes:
        host, port: address of the listener; port 0 lets the system choose.
        processes: number of processes that share the listening socket.
        tls: certificate and key; None serves plain HTTP.
        health: a second listener with connection bounds of its own; None for no second listener.
        cors_origins: origins of web pages that may call the server; `*` for any origin, `localhost` for this
            machine at any port; empty sends no CORS header.
        connections_max: most open connections, fewer if the system has too few file descriptors; further ones
            are answered 503 and closed.
        connections_per_address_max: most open connections from one IPv4 address or one IPv6 /64; trusted
            proxies are exempt.
        requests_per_connection_max: most requests of one connection; the last is answered with
            `connection: close`.
        body_bytes_max: largest body of one request, in bytes; some endpoints have a smaller bound.
        bodies_bytes_max: most bytes of all request bodies that the server holds at a time; further requests
            are answered 503 and closed.
        socket_bytes_max: most bytes that wait to be sent on one WebSocket; the server closes the WebSocket of
            a client that reads too slowly to stay below.
        header_s, body_s, idle_s, write_s, route_s, drain_s: time-outs in seconds for the header of a request,
            its body, an idle connection, a write, the computation of an answer, and the shutdown.
        access_log: file to which the access log is appended, `-` for standard output; empty for no log.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1
    tls: TlsSettings | None = None
    health: HealthSettings | None = None
    cors_origins: tuple[str, ...] = ()
    connections_max: int = 4_096
    connections_per_address_max: int = 256
    requests_per_connection_max: int = 100_000
    body_bytes_max: int = limits.JSON_BYTES_MAX
    bodies_bytes_max: int = 256 << 20
    socket_bytes_max: int = limits.SOCKET_UNSENT_BYTES_MAX
    header_s: float = timeouts.SERVER_HEADER_S
    body_s: float = timeouts.SERVER_BODY_S
    idle_s: float = timeouts.SERVER_IDLE_S
    write_s: float = timeouts.SERVER_WRITE_S
    route_s: float = timeouts.SERVER_ROUTE_S
    drain_s: float = timeouts.SERVER_DRAIN_S
    access_log: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"port is 0 to 65535, got {self.port}")
        if not 1 <= self.processes <= 64:
            raise ValueError(f"processes is 1 to 64, got {self.processes}")
        for origin in self.cors_origins:
            if origin not in (ANY_ORIGIN, LOCAL_ORIGINS) and not (origin.isascii() and _is_origin(origin)):
                raise ValueError(f"cors_origins are *, localhost, or origins without a path, got {origin}")
        for name in (
            "connections_max",
            "connections_per_address_max",
            "requests_per_connection_max",
            "bodies_bytes_max",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, got {getattr(self, name)}")
        for name in ("header_s", "body_s", "idle_s", "write_s", "route_s", "drain_s"):
            if not 0 < getattr(self, name) <= 3_600:
                raise ValueError(f"{name} is above 0, at most 3600, got {getattr(self, name)}")

    def of_health(self) -> "ServerSettings":
        """Derive the settings of the health listener: plain HTTP, few connections, no bound per address."""
        return msgspec.structs.replace(
            self,
            tls=None,
            connections_max=limits.SERVER_HEALTH_CONNECTIONS_MAX,
            connections_per_address_max=limits.SERVER_HEALTH_CONNECTIONS_MAX,
        )
