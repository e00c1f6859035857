"""Descriptions of the API: GET /openapi.json, and /docs, a page that shows it and tries requests.

The page is Swagger UI. Its files ship in the folder `docs` as its authors publish them, compressed
(`make docs-page`); no part of the page comes from another host. A description is made at its first request,
or earlier by `cambist serve`; making it takes up to 33 ms.
"""

import gzip
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ...codecs.http1 import JSON
from ...codecs.messages.wire import encode
from ...crypto.addresses import to_checksum
from ..api.openapi import openapi_document
from ..api.routes import Endpoint
from ..served.served_chain import ServedChains
from ..server.assets import Asset, page_policy, read_assets
from ..server.routing import HttpCall, Reply

_DOCS = Path(__file__).parent / "docs"


@cache
def docs_page() -> Mapping[str, Asset]:
    """Return the files of the page /docs, by path."""
    return read_assets(_DOCS, "/docs", page_policy())


class Reference:
    """HTTP endpoint /openapi.json, which describes all endpoints, itself included.

    Args:
        endpoints: the other rows of the route table.
        places: served chains, the source of the examples.
    """

    def __init__(self, endpoints: tuple[Endpoint, ...], places: ServedChains) -> None:
        self._rows = (
            Endpoint(
                method="GET",
                path="/openapi.json",
                plain=self._serve_document,
                cost=0,
                group="Reference",
                summary="This API as an OpenAPI 3.1 document",
                answer=dict[str, Any],
            ),
        )
        self._all = (*endpoints, *self._rows)
        self._examples = _examples(places)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /openapi.json, as a row of the route table."""
        return self._rows

    def make(self) -> None:
        """Build the OpenAPI document now, so that no request waits for it."""
        _ = self._document

    @cached_property
    def _document(self) -> Asset:
        return _packed(openapi_document(self._all, self._examples))

    def _serve_document(self, call: HttpCall) -> Reply:
        return self._document.reply(call)


def _packed(document: dict[str, Any]) -> Asset:
    body = encode(document)
    return Asset(body, JSON, page_policy(), gzip.compress(body, mtime=0))


def _examples(places: ServedChains) -> dict[str, Any]:
    """Choose example values of the API's parameters, for a trade between two tokens of the first chain."""
    chain_id, place = next(iter(places.items()))
    listed = [token for token in place.tokens.by_address.values() if token.listed is not None]
    src, dest = listed[0], listed[min(1, len(listed) - 1)]
    return {
        "chainId": chain_id,
        "network": chain_id,
        "user": to_checksum(place.executor),
        "account": to_checksum(place.executor),
        "token": src.text,
        "srcToken": src.text,
        "destToken": dest.text,
        "amount": str(10**src.decimals),
        "srcDecimals": src.decimals,
        "destDecimals": dest.decimals,
        "userAddress": to_checksum(place.executor),
        "slippage": 100,
    }
