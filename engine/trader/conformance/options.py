"""Options of a conformance run: URLs and credentials of the maker, selected checks, and bounds of the run.

Without --ws-url the harness tries the WebSocket at the base URL plus `/ws`; a refused handshake other than
401 or 403 means that the maker has no WebSocket.
"""

import re
from urllib.parse import urlsplit

from msgspec import Struct

from ....codecs.http1.request_head import is_host, is_target
from ....config.errors import ConfigError
from ....config.limits import RFQ_DOMAIN_NAME
from .checks.auth import Credentials
from .rules import Selection

DEFAULT_TAKER = "0x" + "7a" * 20
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_is_name = re.compile(r"[0-9A-Za-z._:\-]+").fullmatch


class BaseUrl(Struct, frozen=True):
    """A parsed base URL of a maker, a WebSocket or a node.

    Attributes:
        path: path without a trailing slash; empty for the root.
        host_header: host, and the port unless it is the scheme's default.
    """

    scheme: str
    host: str
    port: int
    path: str
    host_header: str

    @property
    def is_tls(self) -> bool:
        """Whether the URL's scheme is https or wss."""
        return self.scheme in ("https", "wss")

    @property
    def url(self) -> str:
        """The URL as text: scheme, host, port unless it is the scheme's default, and path."""
        return f"{self.scheme}://{self.host_header}{self.path}"


def read_base_url(url: str, field: str, schemes: tuple[str, ...]) -> BaseUrl:
    """Parse a base URL from an option of the command line.

    Args:
        field: name of the option, for errors.
        schemes: accepted schemes, e.g. `http` and `https`.

    Raises:
        ConfigError: the scheme is not in `schemes`, the host is missing or malformed, the path is not
            percent-encoded, or the URL has a query, a fragment or a user.
    """
    expected = f"expected {' or '.join(schemes)}://host[:port][/path]"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")  # as name look-up does: refuses labels empty or over 63 characters
    except ValueError as error:
        raise ConfigError(field, f"{expected}: {error}") from None
    # A name of other characters, or a target with blanks or controls, would break the heads of raw requests.
    scheme = parts.scheme.lower()
    if scheme not in schemes or not host or not _is_name(host):
        raise ConfigError(field, expected)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigError(field, f"{expected}, without user, query or fragment")
    path = parts.path.rstrip("/")
    named = f"[{host}]" if ":" in host else host
    header = named if port in (None, _PORTS[scheme]) else f"{named}:{port}"
    if (path and not is_target(path.encode())) or not is_host(header.encode()):
        raise ConfigError(field, f"{expected}; percent-encode all but visible ASCII")
    return BaseUrl(scheme, host, _PORTS[scheme] if port is None else port, path, header)


class CheckOptions(Struct, frozen=True, kw_only=True):
    """All options of a conformance run against one maker.

    Attributes:
        socket: the WebSocket's URL; None tries `/ws` below the base URL.
        credentials: keys that sign the requests; None leaves requests unsigned, and authentication unchecked.
        chain_id, rfq_contract, domain_name: the EIP-712 domain of orders; signatures are not verified unless
            both `chain_id` and `rfq_contract` are given.
        taker, user, blacklisted: lower-case addresses: allowed taker, user of all quotes, a blacklisted user.
        drift_bps: largest allowed distance of a price from the grids fetched around the quote, basis points.
        pairs_max: the largest number of pairs to request quotes on.
        quotes, connections: number of quotes and of connections in the load stage; 0 quotes skip the stage.
        watch_s: seconds for which the WebSocket's updates are watched.
        timeout_s: longest wait for one answer, seconds.
        pause_s: seconds to wait after every answer, for makers that limit the request rate.
        run_timeout_s: longest time for the whole run, seconds.
        seed: seed of random amounts and bytes.
        authorities: PEM file of certificates to trust.
        allow_no_quotes: whether a maker may conform that gives no firm quote.
    """

    base: BaseUrl
    socket: BaseUrl | None = None
    node: BaseUrl | None = None
    credentials: Credentials | None = None
    selection: Selection = Selection()
    chain_id: int | None = None
    rfq_contract: bytes | None = None
    domain_name: str = RFQ_DOMAIN_NAME
    contract_maker: bool = False
    taker: str | None = None
    user: str | None = None
    blacklisted: str | None = None
    drift_bps: int = 30
    pairs_max: int = 3
    quotes: int = 200
    connections: int = 4
    watch_s: float = 5.0
    timeout_s: float = 5.0
    pause_s: float = 0.0
    run_timeout_s: float = 300.0
    seed: int = 1
    authorities: str | None = None
    allow_no_quotes: bool = False
