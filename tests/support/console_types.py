"""TypeScript types of the API's answers, from the OpenAPI document, for the check of the console's scripts.

A path of the document becomes a template: `/v2/delta/orders/{orderId}` -> `/v2/delta/orders/${string}`.
Members that a union's structs do not share are optional, since a script looks for them; a member that no
struct has is a fault, and so is one of another shape.
"""

from typing import Any

_SCALARS = {"integer": "number", "number": "number", "boolean": "boolean", "string": "string", "null": "null"}


def console_types(document: dict[str, Any]) -> str:
    """Declarations of the global types `ApiAnswer<Path, Options>`, from an OpenAPI document."""
    schemas = document["components"]["schemas"]
    lines = [f"type {_name(name)} = {_type(schema, schemas)};" for name, schema in schemas.items()]
    for method in ("get", "post"):
        rows = [
            (path, operation[method]) for path, operation in document["paths"].items() if method in operation
        ]
        # A parameter of a template takes slashes too: longer paths, and those with fewer of them, go first.
        rows.sort(key=lambda row: (-row[0].count("/"), row[0].count("{"), row[0]))
        cases = "".join(
            f"  P extends {_template(path)} ? {_answer(operation, schemas)} :\n" for path, operation in rows
        )
        lines.append(f"type Api{method.capitalize()}<P extends string> =\n{cases}  never;")
    lines.append(
        "type ApiPath<P extends string> = P extends `${infer A}?${string}` ? A : P;\n"
        "type ApiAnswer<P extends string, O> = string extends P ? any : "
        "O extends { body: any } ? ApiPost<ApiPath<P>> : ApiGet<ApiPath<P>>;"
    )
    return "\n".join(lines) + "\n"


def _template(path: str) -> str:
    parts = ["${string}" if part.startswith("{") else part for part in path.split("/")]
    return f"`{'/'.join(parts)}`" if "${string}" in parts else f'"{path}"'


def _answer(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json")
    return "any" if content is None else _type(content["schema"], schemas)


def _name(name: str) -> str:
    return "Api_" + "".join(letter if letter.isalnum() else "_" for letter in name)


def _type(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    if not schema:
        return "any"
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return _union(schema[union], schemas)
    if "enum" in schema or "const" in schema:
        return "string"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}, schemas) for each in kind)
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(each, schemas) for each in schema['prefixItems'])}]"
        return f"({_type(schema.get('items', {}), schemas)})[]"
    if kind == "object" or "properties" in schema:
        return _object(schema, schemas)
    return _SCALARS.get(kind or "", "any")


def _object(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    if "properties" not in schema:
        more = schema.get("additionalProperties", {})
        return f"Record<string, {_type(more if isinstance(more, dict) else {}, schemas)}>"
    needed = set(schema.get("required", ()))
    members = [
        f'"{name}"{"" if name in needed else "?"}: {_type(member, schemas)}'
        for name, member in schema["properties"].items()
    ]
    return "{ " + "; ".join(members) + " }"


def _union(options: list[dict[str, Any]], schemas: dict[str, Any]) -> str:
    resolved = [schemas[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in options]
    if sum("properties" in one for one in resolved) < 2:
        return " | ".join(dict.fromkeys(_type(one, schemas) for one in options))
    structs = [one for one in resolved if "properties" in one]
    shared = set.intersection(*(set(one.get("required", ())) for one in structs))
    merged: dict[str, dict[str, Any]] = {}
    for one in structs:
        for name, member in one["properties"].items():
            known = merged.get(name)
            merged[name] = member if known in (None, member) else {"anyOf": [known, member]}
    rest = [_type(one, schemas) for one in options if "properties" not in one and "$ref" not in one]
    return " | ".join([_object({"properties": merged, "required": sorted(shared)}, schemas), *rest])
