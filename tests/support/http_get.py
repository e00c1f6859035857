"""GET of tests without tasks: by one client, so that a wait that asks again and again costs little."""

import atexit
import time
from functools import cache

import httpx

from support.patience import PATIENCE_S

_PAUSE_S = 0.02


@cache
def _client() -> httpx.Client:
    """Client that keeps no connection: the server may be another process at the next request."""
    client = httpx.Client(timeout=PATIENCE_S, verify=False, limits=httpx.Limits(max_keepalive_connections=0))
    atexit.register(client.close)
    return client


def http_get(url: str, **query: str) -> httpx.Response:
    """Answer of a server."""
    return _client().get(url, params=query or None)


def first_answer(url: str) -> httpx.Response:
    """Answer of a server that may still start."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            return http_get(url)
        except httpx.TransportError:
            assert time.monotonic() < give_up
            time.sleep(_PAUSE_S)
