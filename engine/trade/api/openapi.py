"""Generates the OpenAPI document from the table of endpoints and their request and answer structs.

Words come from `descriptions`, schemas from `schemas`, examples from `examples`, and the errors of an
endpoint from the rows of the error catalogue that name it. Pure once the examples are read.

Source: OpenAPI 3.1.0; spec 1.12 to 1.22, 2.6 to 2.10.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, get_args

import msgspec

from ....codecs.http1 import JSON
from ....codecs.messages.delta_messages import Route
from ....codecs.messages.market_messages import PriceRoute
from ....codecs.messages.resource_messages import OtcError, TradingError, otc_error_body, trading_error_body
from ....config.errors import RequestError, UnknownApiKey, catalogue_rows
from ....config.version import __version__
from .descriptions import KEY_TEXT, MEMBERS, OF_PATHS, PARAMETERS, PATH_SCHEMAS
from .examples import recorded_examples
from .routes import Endpoint
from .schemas import REFERENCE, described_schemas, query_parameters

_OWN_STATUSES = (400, 422, 429, 500, 503)  # of the catalogue's "any" rows that every endpoint lists

_SHOWN = {("OrdersQuery", "userAddress"), ("OrderEventsQuery", "userAddress")}
"""(query struct, parameter) pairs that have an example although they are optional."""
_TYPED_RAW = {("TransactionBody", "priceRoute"): PriceRoute, ("BuildBody", "route"): Route}
"""(struct, member) whose value the struct keeps as raw JSON -> type that documents the value."""


def openapi_document(endpoints: Sequence[Endpoint], examples: Mapping[str, Any]) -> dict[str, Any]:
    """Build the OpenAPI document of the venue's endpoints.

    Args:
        examples: parameter name -> example value that is valid at this venue. Other examples are recorded
            ones (`recorded_examples`).
    """
    examples = recorded_examples().parameters | dict(examples)
    kinds: list[Any] = [TradingError, OtcError, PriceRoute, Route]
    kinds += [kind for row in endpoints for kind in (row.query, row.body, *_answers(row)) if kind is not None]
    schemas, components = described_schemas(kinds)
    # Before the descriptions: a replaced schema would lose its description.
    for (owner, member), kind in _TYPED_RAW.items():
        if owner in components:
            components[owner]["properties"][member] = schemas[id(kind)]
    for row in endpoints:
        if row.body is not None:
            for name, member in components[row.body.__name__]["properties"].items():
                descriptions = MEMBERS.get(row.body.__name__, {})
                member["description"] = descriptions.get(name) or PARAMETERS[name][0]
    paths: dict[str, dict[str, Any]] = {}
    for row in endpoints:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, schemas, components)
        for parameter in paths[row.path][row.method.lower()]["parameters"]:
            name = parameter["name"]
            is_shown = (
                parameter["required"]
                or name == "network"
                or (row.query and row.query.__name__, name) in _SHOWN
            )
            if name in examples and is_shown:
                parameter["example"] = examples[name]
    # After `_operation`, which reads the parameters of a query from its component.
    for row in endpoints:
        if row.query is not None:
            components.pop(row.query.__name__, None)
    groups = dict.fromkeys(row.group for row in endpoints)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cambist",
            "version": __version__,
            "summary": "Swaps on EVM chains: Delta prices and Market routes.",
            "description": "Amounts are strings of raw units. Every path is served with and without a "
            "slash at its end. A parameter with an empty value counts as absent. Every error has the same "
            "body, under /ft a shorter one; `details` starts with the message of a row of "
            "/resources/errors.json.",
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in groups],
        "security": [{}, {"apiKey": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-KEY", "description": KEY_TEXT}
            },
        },
    }


def _operation(row: Endpoint, schemas: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": operation_id(row),
        "summary": row.summary,
        "tags": [row.group],
        "parameters": [*_path_parameters(row), *query_parameters(row, components)],
    }
    if row.needs_key:
        operation["security"] = [{"apiKey": []}]
    if row.detail:
        operation["description"] = row.detail
    example = recorded_examples().operations.get(operation["operationId"])
    if row.body is not None:
        content: dict[str, Any] = {"schema": schemas[id(row.body)]}
        if example is not None:
            content["example"] = example.body
        operation["requestBody"] = {"required": True, "content": {JSON.decode(): content}}
    content_type = row.content_type.decode()
    answers = [schemas[id(kind)] for kind in _answers(row)]
    schema = {"anyOf": answers} if len(answers) > 1 else (answers or [{"type": "string"}])[0]
    content = {"schema": schema}
    if example is not None:
        content["example"] = example.answer
    operation["responses"] = {
        "200": {"description": "OK", "content": {content_type: content}},
        **_refusals(row.name, is_otc=row.is_otc, needs_key=row.needs_key),
        "default": {"description": "Another refusal", "content": _error_content({}, is_otc=row.is_otc)},
    }
    return operation


def _answers(row: Endpoint) -> tuple[Any, ...]:
    """Return the types of an endpoint's JSON answer: several for a union, none if the answer is not JSON."""
    if row.answer is None:
        return ()
    return get_args(row.answer) if isinstance(row.answer, UnionType) else (row.answer,)


def operation_id(row: Endpoint) -> str:
    """Name of an endpoint in both documents of the API, such as `getV2Quote`."""
    words = [word.strip("{}") for word in re.split(r"[/\-.]", row.path) if word]
    return row.method.lower() + "".join(word[:1].upper() + word[1:] for word in words)


def _path_parameters(row: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": OF_PATHS.get(name, PARAMETERS[name][0]),
            "schema": PATH_SCHEMAS.get(name, {"type": "string"}) | PARAMETERS[name][1],
        }
        for name in re.findall(r"\{(\w+)\}", row.path)
    ]


@cache
def _refusals(name: str, *, is_otc: bool, needs_key: bool) -> dict[str, Any]:
    """Build an endpoint's error answers for the OpenAPI document, HTTP status -> answer with examples.

    The answers come from the rows of the error catalogue that name this endpoint or "any".

    Args:
        name: method and path of the endpoint, as in the catalogue.
        is_otc: whether errors have the body of the paths of OTC orders.
        needs_key: whether the endpoint refuses requests without an API key.

    Returns:
        The answers, which callers must not change, since they are cached.
    """
    body = otc_error_body if is_otc else trading_error_body
    by_status: dict[int, list[RequestError]] = {}
    for kind in catalogue_rows():
        named = [name.strip() for name in kind.endpoint.split(",")]
        # Malformed HTTP is refused before any endpoint is chosen: no endpoint's own error.
        anywhere = named == ["any"] and kind.error_type != "MalformedRequest"
        of_key = needs_key and kind is UnknownApiKey
        if name in named or of_key or (anywhere and kind.status in _OWN_STATUSES):
            # AuthError, the only other row of the catalogue, names no endpoint of this document.
            if not issubclass(kind, RequestError):
                continue
            for message in kind.messages:
                by_status.setdefault(kind.status, []).append(kind(message=message))
    return {
        str(status): {
            "description": ", ".join(error.message for error in errors),
            "content": _error_content(
                {
                    error.message: {
                        "summary": error.cause,
                        "value": msgspec.to_builtins(body(error, "5f1c2a9b-1")),
                    }
                    for error in errors
                },
                is_otc=is_otc,
            ),
        }
        for status, errors in sorted(by_status.items())
    }


def _error_content(examples: dict[str, Any], *, is_otc: bool) -> dict[str, Any]:
    kind = OtcError if is_otc else TradingError
    content: dict[str, Any] = {"schema": {"$ref": f"{REFERENCE}{kind.__name__}"}}
    if examples:
        content["examples"] = examples
    return {JSON.decode(): content}
