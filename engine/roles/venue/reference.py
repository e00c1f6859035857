"""Descriptions of the API: GET /openapi.json, GET /asyncapi.json, and the page /docs, which tries requests.

The page is Swagger UI. Its files ship in the folder `docs` as its authors publish them, compressed
(`make docs-page`); no part of the page comes from another host. A description is made at its first request,
or earlier by `cambist serve`; making it takes up to 50 ms.
"""

import gzip
from collections.abc import Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from ....codecs.http1 import JSON
from ....codecs.messages.wire import encode
from ....crypto.addresses import to_checksum
from ...console.serving import console_pages
from ...host.server.assets import Asset, page_policy, read_assets
from ...trade.api.asyncapi import asyncapi_document
from ...trade.api.openapi import openapi_document
from ...trade.api.routes import Endpoint
from ...trade.served.served_chain import ServedChains

_DOCS = Path(__file__).parent / "docs"


@cache
def docs_page() -> Mapping[str, Asset]:
    """The files of the page /docs, by URL path."""
    return read_assets(_DOCS, "/docs", page_policy())


class Reference:
    """HTTP endpoints /openapi.json and /asyncapi.json, which describe all endpoints, themselves included.

    Args:
        endpoints: the other rows of the route table.
        chains: served chains, the source of the examples.
        is_tls: whether the venue serves https.

    Attributes:
        described: all rows of the route table, those of this class included.
    """

    def __init__(self, endpoints: tuple[Endpoint, ...], chains: ServedChains, *, is_tls: bool) -> None:
        row = partial(Endpoint, method="GET", cost=0, group="Reference", answer=dict[str, Any])
        self._is_tls = is_tls
        self._rows = (
            row(
                path="/openapi.json",
                plain=lambda call: self._requests.reply(call),  # noqa: PLW0108 - made at the first call
                summary="This API as an OpenAPI 3.1 document",
            ),
            row(
                path="/asyncapi.json",
                plain=lambda call: self._streams.reply(call),  # noqa: PLW0108 - made at the first call
                summary="The streams and webhooks of this API as an AsyncAPI 3.0 document",
            ),
        )
        self.described = (*endpoints, *self._rows)
        self._examples = _examples(chains)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the two HTTP endpoints, as rows of the route table."""
        return self._rows

    def build_documents(self) -> None:
        """Build the OpenAPI and the AsyncAPI document now, so that no request waits for them."""
        _ = self._requests, self._streams

    @cached_property
    def _requests(self) -> Asset:
        return _packed(openapi_document(self.described, self._examples))

    @cached_property
    def _streams(self) -> Asset:
        return _packed(asyncapi_document(self.described, is_tls=self._is_tls))


def _packed(document: dict[str, Any]) -> Asset:
    body = encode(document)
    return Asset(body, JSON, page_policy(), gzip.compress(body, mtime=0))


def _examples(chains: ServedChains) -> dict[str, Any]:
    """Choose example values of the API's parameters, for a trade between two tokens of the first chain."""
    chain_id, served = next(iter(chains.items()))
    listed = [token for token in served.tokens.by_address.values() if token.listed is not None]
    src, dest = listed[0], listed[min(1, len(listed) - 1)]
    return {
        "chainId": chain_id,
        "network": chain_id,
        "user": to_checksum(served.executor),
        "account": to_checksum(served.executor),
        "token": src.text,
        "srcToken": src.text,
        "destToken": dest.text,
        "amount": str(10**src.decimals),
        "srcDecimals": src.decimals,
        "destDecimals": dest.decimals,
        "base": src.text,
        "quote": dest.text,
        "span": 3_600,
        "userAddress": to_checksum(served.executor),
        "slippage": 100,
    }


def venue_pages(chains: ServedChains) -> dict[str, Asset]:
    """Read the files of the venue's pages, its console and the API's description: URL path -> file."""
    nodes = (served.settings.wallet_url for served in chains.values())
    return {**docs_page(), **console_pages("venue", nodes)}
