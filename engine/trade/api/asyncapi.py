"""Generates the AsyncAPI document of the venue's streams and webhooks from the table of endpoints.

    channel    a path that streams, or the URL of a webhook     with the messages that the venue sends
    operation  `send`, since the document describes the venue    with method and query

Both servers are this venue: `streams` sends server-sent events, `sockets` WebSocket messages. A channel with
both servers sends the same messages over each.

Source: AsyncAPI 3.0.0, with the bindings of HTTP 0.3.0 and WebSockets 0.1.0; Standard Webhooks 1.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ....codecs.http1 import JSON
from ....codecs.messages.event_messages import OrderEventMessage
from ....config.version import __version__
from ....crypto.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from .descriptions import KEY_TEXT, MESSAGES
from .examples import recorded_examples
from .openapi import operation_id
from .routes import Endpoint
from .schemas import described_schemas, query_parameters

_HOST = {"description": "Host and port of the venue.", "examples": ["127.0.0.1:8000"]}
_WEBHOOK = "webhook"
_ORDERS = "getV2DeltaOrdersEvents"  # the stream whose recorded message is also the webhook's example
_HEADERS = {
    ID_HEADER: "Token of the event: the same in each try and each replay.",
    TIMESTAMP_HEADER: "Unix seconds of this try.",
    SIGNATURE_HEADER: "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.",
}
_KEY = [{"$ref": "#/components/securitySchemes/apiKey"}]


def asyncapi_document(endpoints: Sequence[Endpoint], *, is_tls: bool) -> dict[str, Any]:
    """Build the AsyncAPI document of the endpoints that stream, and of webhooks.

    Args:
        is_tls: whether the venue serves https, and WebSockets over TLS.
    """
    rows = [row for row in endpoints if row.events]
    kinds = [kind for row in rows for kind in (row.query, *row.events.values())] + [OrderEventMessage]
    schemas, components = described_schemas([kind for kind in kinds if kind is not None])
    described = {operation_id(row): (row, _query(row, components)) for row in rows}
    # After `_query`, which reads the parameters of a query from its component.
    for row in rows:
        if row.query is not None:
            components.pop(row.query.__name__, None)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "cambist",
            "version": __version__,
            "description": "Streams and webhooks of a venue. Requests are in /openapi.json.",
        },
        "defaultContentType": JSON.decode(),
        "servers": {
            "streams": {"host": "{host}", "protocol": f"http{'s' * is_tls}", "variables": {"host": _HOST}},
            "sockets": {"host": "{host}", "protocol": f"ws{'s' * is_tls}", "variables": {"host": _HOST}},
        },
        "channels": {
            **{name: _channel(row, query, schemas) for name, (row, query) in described.items()},
            _WEBHOOK: _webhook_channel(schemas),
        },
        "operations": {
            **{f"send{name}": _operation(name, row, query) for name, (row, query) in described.items()},
            f"send{_WEBHOOK}": _webhook_operation(),
        },
        "components": {
            "schemas": components,
            "securitySchemes": {
                "apiKey": {
                    "type": "httpApiKey",
                    "in": "header",
                    "name": "X-API-KEY",
                    "description": KEY_TEXT,
                }
            },
        },
    }


def _query(row: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    """Build the JSON schema of an endpoint's query, an object with a member for each parameter."""
    parameters = list(query_parameters(row, components))
    return {
        "type": "object",
        "required": [parameter["name"] for parameter in parameters if parameter["required"]],
        "properties": {
            parameter["name"]: parameter["schema"] | {"description": parameter["description"]}
            for parameter in parameters
        },
    }


def _channel(row: Endpoint, query: dict[str, Any], schemas: Mapping[int, Any]) -> dict[str, Any]:
    servers = ["streams", "sockets"] if row.socket else ["streams"]
    channel = {
        "address": row.path,
        "summary": row.summary,
        "description": row.detail,
        "servers": [{"$ref": f"#/servers/{name}"} for name in servers],
        "messages": {
            name: _message(name, schemas[id(kind)], operation_id(row)) for name, kind in row.events.items()
        },
    }
    if row.socket:
        channel["bindings"] = {"ws": {"method": row.method, "query": query, "bindingVersion": "0.1.0"}}
    return channel


def _message(name: str, payload: Any, stream: str) -> dict[str, Any]:
    """Describe a message of a stream, with a recorded example if there is one.

    Args:
        name: name of the message, such as `order`.
        payload: JSON schema of the message.
        stream: operation id of the stream for which the example is recorded.
    """
    examples = recorded_examples().messages.get(stream, {})
    shown = [{"payload": examples[name]}] if name in examples else []
    return {"name": name, "summary": MESSAGES[name], "payload": payload, "examples": shown}


def _operation(name: str, row: Endpoint, query: dict[str, Any]) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{name}"},
        "summary": row.summary,
        "security": _KEY,
        "bindings": {"http": {"method": row.method, "query": query, "bindingVersion": "0.3.0"}},
        "messages": [{"$ref": f"#/channels/{name}/messages/{event}"} for event in row.events],
    }


def _webhook_channel(schemas: Mapping[int, Any]) -> dict[str, Any]:
    headers = {
        "type": "object",
        "required": [*_HEADERS],
        "properties": {name: {"type": "string", "description": text} for name, text in _HEADERS.items()},
    }
    return {
        "address": None,
        "summary": "Events of orders, posted to the URL of a webhook",
        "description": "The operator names the URL and the filter of each webhook in the venue's settings.",
        "messages": {
            "order": _message("order", schemas[id(OrderEventMessage)], _ORDERS) | {"headers": headers}
        },
    }


def _webhook_operation() -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{_WEBHOOK}"},
        "summary": "Post an event, again until the receiver answers 2xx",
        "bindings": {"http": {"method": "POST", "bindingVersion": "0.3.0"}},
        "messages": [{"$ref": f"#/channels/{_WEBHOOK}/messages/order"}],
    }
