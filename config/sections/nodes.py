"""Settings of a chain's nodes: URLs, time-outs, polling."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from .. import limits, timeouts
from ..errors import ConfigError
from ..secret import read_secret
from .endpoint_url import HTTP, NAMES_PLACE, WEBSOCKET, has_place
from .store import REFERENCES


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one chain's nodes.

    Attributes:
        urls: URLs of JSON-RPC nodes, http or https; requests go to the first healthy node. `env:NAME` or
            `file:PATH` in place of a URL refers to its text: use a reference for a URL that contains a key.
        ws_urls: URLs of WebSockets, ws or wss, that announce new blocks (heads), or references as in `urls`.
            Heads are also polled every `poll_s`, with or without WebSockets.
        call_s: time-out of one request, in seconds.
        poll_s: seconds between two polls for a new head.
        lag_blocks_max: greatest difference in blocks between a node's head and the last accepted head for
            which the node's head is accepted at once. A head further below is ignored, unless no head has
            been accepted for NODE_BACK_S seconds; a head further above is checked against other nodes.
    """

    urls: tuple[str, ...] = ()
    ws_urls: tuple[str, ...] = ()
    call_s: float = timeouts.NODE_CALL_S
    poll_s: float = timeouts.NODE_POLL_S
    lag_blocks_max: int = 64

    def __post_init__(self) -> None:
        for name, schemes in (("urls", HTTP), ("ws_urls", WEBSOCKET)):
            urls = getattr(self, name)
            if len(urls) > limits.CHAIN_NODES_MAX:
                raise ValueError(f"{name} are at most {limits.CHAIN_NODES_MAX}, got {len(urls)}")
            for at, url in enumerate(urls):
                if not url.startswith((*schemes, *REFERENCES)):
                    raise ValueError(
                        f"{name}[{at}] is {schemes[0]}..., {schemes[1]}..., env:NAME or file:PATH"
                    )
        for name in ("call_s", "poll_s"):
            if not 0 < getattr(self, name) <= 60:
                raise ValueError(f"{name} is above 0, at most 60, got {getattr(self, name)}")
        if not 1 <= self.lag_blocks_max <= 1_000_000:
            raise ValueError(f"lag_blocks_max is 1 to 1000000, got {self.lag_blocks_max}")


def revealed(settings: NodeSettings, field: str, environ: Mapping[str, str], folder: Path) -> NodeSettings:
    """Replace each `env:` or `file:` reference of node settings by its URL.

    Args:
        field: path of the settings, e.g. `chains.1.node`; for errors.
        environ: source of `env:NAME` references.
        folder: start of relative file paths.

    Raises:
        ConfigError: no URL is set, or a reference leads to no text or to a text that is no URL. The error
            does not repeat the text.
    """
    if not settings.urls:
        raise ConfigError(f"{field}.urls", "no node is set")

    def urls(name: str, said: tuple[str, ...], schemes: tuple[str, ...]) -> tuple[str, ...]:
        found = []
        for at, url in enumerate(said):
            place = f"{field}.{name}[{at}]"
            held = read_secret(url, environ, place, folder).reveal() if url.startswith(REFERENCES) else url
            # NodeSettings has checked no text behind a reference, and no host and port of any URL.
            if not held.startswith(schemes):
                raise ConfigError(place, f"expected a reference to a URL of {schemes[0]} or {schemes[1]}")
            if not has_place(held):
                raise ConfigError(place, NAMES_PLACE)
            found.append(held)
        return tuple(found)

    return msgspec.structs.replace(
        settings,
        urls=urls("urls", settings.urls, HTTP),
        ws_urls=urls("ws_urls", settings.ws_urls, WEBSOCKET),
    )
