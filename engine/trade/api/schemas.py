"""JSON schemas of the structs that endpoints send and receive, with their descriptions. Pure.

Both documents of the API, OpenAPI and AsyncAPI, are made of these schemas.

Source: JSON Schema 2020-12.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from .descriptions import OF_QUERIES, PARAMETERS, SHAPES
from .routes import Endpoint

REFERENCE = "#/components/schemas/"
"""Beginning of each reference to a schema of a document's components; the name of a type follows."""
_REQUIRED_BY_ENDPOINT = {("SwapQuery", "slippage")}
"""(query struct, parameter) pairs that are optional in the struct but required by the endpoint."""


def described_schemas(kinds: Sequence[Any]) -> tuple[dict[int, Any], dict[str, Any]]:
    """Generate the JSON schemas of types, and of all types that these schemas name.

    Returns:
        (`id()` of a type -> schema of the type; name of a type -> schema of the type, to which the other
        schemas refer by REFERENCE and the name). Callers may change both.
    """
    found, components = _plain(_schema_components(tuple(kinds)))
    for name in SHAPES.keys() & components.keys():
        components[name]["description"] = SHAPES[name]
    return {id(kind): schema for kind, schema in zip(kinds, found, strict=True)}, components


@cache
def _schema_components(kinds: tuple[Any, ...]) -> list[Any]:
    """Generate the JSON schemas of types, and of all types to which these schemas refer by name.

    The result is cached, so that callers must not change it.

    Returns:
        [schemas of `kinds` in order, name -> schema that others refer to].
    """
    found, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE + "{name}")
    return [list(found), components]


def query_parameters(row: Endpoint, components: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Generate the parameters of an endpoint's query, as OpenAPI describes parameters.

    Args:
        components: schemas of structs by name, from `described_schemas`; the query's struct is among them.
    """
    if row.query is None:
        return
    described = components[row.query.__name__]
    for name, schema in described["properties"].items():
        text, more = PARAMETERS[name]
        text = OF_QUERIES.get(row.query.__name__, {}).get(name, text)
        kept = {key: value for key, value in _not_null(schema).items() if value is not None}
        required = (
            name in described["required"]
            or kept.get("default") == ""  # stands for missing
            or (row.query.__name__, name) in _REQUIRED_BY_ENDPOINT
        )
        if required:
            kept.pop("default", None)
        elif "pattern" in more:
            more = {"pattern": f"^$|{more['pattern']}"}  # an empty value counts as absent
        parameter = {
            "name": name,
            "in": "query",
            "required": required,
            "description": text,
            "schema": kept | more,
        }
        if kept.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        yield parameter


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove the null option from a JSON schema, since a query parameter is absent rather than null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    option: dict[str, Any] = options[0]
    return {key: value for key, value in schema.items() if key != "anyOf"} | option


def _plain(node: Any) -> Any:
    """Copy a JSON schema without descriptions, and with type `number` in place of the format `decimal`."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == "decimal":
        return {"type": "number"} | {
            key: value for key, value in node.items() if key not in ("type", "format")
        }
    return {
        key: _plain(value)
        for key, value in node.items()
        if key != "description" or not isinstance(value, str)
    }
