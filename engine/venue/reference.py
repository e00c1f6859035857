"""GET /openapi.json, the API's description, and GET /docs, the same as HTML without external resources. Pure.

Each page is made at its first request, or earlier by `cambist serve`; making it takes up to 33 ms.
"""

from functools import cached_property
from html import escape
from typing import Any

from ...codecs.messages.wire import encode
from ...crypto.addresses import to_checksum
from ..api.openapi import openapi_document
from ..api.routes import Endpoint
from ..served.served_chain import ServedChains
from ..server.routing import HttpCall, Reply

HTML = b"text/html; charset=utf-8"
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem 1.5rem 6rem;
  color: #1b1f24; background: #fff }
h1 { font-size: 1.7rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid #d5dae0 }
code, pre { font: 13px/1.45 ui-monospace, monospace; background: #f3f5f7; border-radius: 4px }
code { padding: .1em .3em } pre { padding: .7rem; overflow-x: auto }
details { border: 1px solid #d5dae0; border-radius: 6px; margin: .6rem 0; padding: .4rem .8rem }
summary { cursor: pointer } table { border-collapse: collapse; width: 100%; margin: .6rem 0 }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-top: 1px solid #e6eaee }
.method { font-weight: 700; color: #0a6b3d; display: inline-block; min-width: 3.2rem }
.POST { color: #8a4b00 }
.quiet { color: #5b6570 }
@media (prefers-color-scheme: dark) {
  body { color: #dfe3e8; background: #14171a } code, pre { background: #20252a }
  h2, details { border-color: #343b42 } th, td { border-color: #2a3037 } .quiet { color: #97a1ab }
  .method { color: #4fcb8d } .POST { color: #e0a458 } a { color: #7db4ff } }
"""
_LINKS = " · ".join(
    f'<a href="{path}">{path}</a>'
    for path in ("/openapi.json", "/resources/errors.json", "/resources/contracts.json")
)


class Reference:
    """HTTP endpoints /openapi.json and /docs, which describe all endpoints, themselves included.

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
            Endpoint(
                method="GET",
                path="/docs",
                plain=self._serve_page,
                cost=0,
                group="Reference",
                summary="This API as a page to read",
                content_type=HTML,
            ),
        )
        self._all = (*endpoints, *self._rows)
        self._examples = _examples(places)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints GET /openapi.json and GET /docs, as rows of the route table."""
        return self._rows

    def make(self) -> None:
        """Build the OpenAPI document and the HTML page now, so that no request waits for them."""
        _ = self._document, self._page

    @cached_property
    def _document(self) -> bytes:
        return encode(openapi_document(self._all, self._examples))

    @cached_property
    def _page(self) -> bytes:
        return docs_page(openapi_document(self._all, self._examples)).encode()

    def _serve_document(self, _: HttpCall) -> Reply:
        return Reply(200, self._document)

    def _serve_page(self, _: HttpCall) -> Reply:
        return Reply(200, self._page, _HEADERS, HTML)


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


def docs_page(document: dict[str, Any]) -> str:
    """Render an OpenAPI document as an HTML page."""
    info = document["info"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(info['title'])} API <span class=quiet>{escape(info['version'])}</span></h1>",
        f"<p>{escape(info['summary'])} {_text(info['description'])}</p>",
        f"<p>{_LINKS}</p>",
    ]
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2>")
        for path, methods in document["paths"].items():
            parts += [
                _operation(method.upper(), path, operation)
                for method, operation in methods.items()
                if tag["name"] in operation["tags"]
            ]
    parts.append("<h2>Shapes</h2>")
    parts += [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return "\n".join([*parts, "</body></html>", ""])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [
        f'<details id="{escape(operation["operationId"])}">',
        f'<summary><span class="method {method}">{method}</span>',
        f" <code>{escape(path)}</code> {escape(operation['summary'])}</summary>",
    ]
    if "description" in operation:
        parts.append(f"<p>{_text(operation['description'])}</p>")
    if operation["parameters"]:
        rows = [
            f"<tr><td><code>{escape(one['name'])}</code><td>{_type(one['schema'])}"
            f"<td>{'required' if one['required'] else _default(one['schema'])}"
            f"<td>{_text(one['description'])}"
            for one in operation["parameters"]
        ]
        parts.append(f"<table><tr><th>Parameter<th>Type<th><th>Meaning{''.join(rows)}</table>")
    if "requestBody" in operation:
        parts.append(f"<p>Body: {_content_type(operation['requestBody'])}</p>")
    rows = [
        f"<tr><td>{escape(status)}<td>{_content_type(answer)}<td>{escape(answer['description'])}"
        for status, answer in operation["responses"].items()
    ]
    parts.append(f"<table><tr><th>Status<th>Body<th>Meaning{''.join(rows)}</table></details>")
    return "".join(parts)


def _schema(name: str, schema: dict[str, Any]) -> str:
    head = f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
    if "description" in schema:
        head += f"<p>{_text(schema['description'])}</p>"
    if "properties" not in schema:
        return f"{head}<p>{_type(schema)}</p></details>"
    rows = [
        f"<tr><td><code>{escape(key)}</code><td>{_type(value)}"
        f"<td>{'' if key in schema['required'] else 'optional'}<td>{_text(value.get('description', ''))}"
        for key, value in schema["properties"].items()
    ]
    return f"{head}<table><tr><th>Member<th>Type<th><th>{''.join(rows)}</table></details>"


def _content_type(holder: dict[str, Any]) -> str:
    return ", ".join(
        f"{escape(kind)} {_type(content['schema'])}" for kind, content in holder["content"].items()
    )


def _type(schema: dict[str, Any]) -> str:
    """Describe a JSON schema in a few words of HTML, with links to the schemas that it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    kind = escape(str(schema.get("type", "any")))
    if kind == "array":
        return f"list of {_type(schema.get('items') or {})}"
    bounds = [
        f"{words} {schema[key]}"
        for key, words in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most"))
        if key in schema
    ]
    return f"{kind} <span class=quiet>{escape(' '.join(bounds))}</span>" if bounds else kind


def _default(schema: dict[str, Any]) -> str:
    return f"default <code>{escape(str(schema['default']))}</code>" if "default" in schema else "optional"


def _text(text: str) -> str:
    """Escape text for HTML, and mark passages in backticks as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))
