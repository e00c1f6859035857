"""openapi-spec-validator and jsonschema as a process of .venv-peers: JSON lines in, JSON lines out.

The schema of AsyncAPI documents is that of the npm package @asyncapi/specs, which its authors publish.
"""

# pyright: reportMissingImports=false
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import relevance
from openapi_spec_validator import OpenAPIV31SpecValidator

ASYNCAPI = Path(__file__).parent / "node_modules" / "@asyncapi" / "specs" / "schemas" / "3.0.0.json"


@cache
def asyncapi_schema() -> Draft7Validator:
    """Validator of AsyncAPI 3.0 documents."""
    return Draft7Validator(json.loads(ASYNCAPI.read_bytes()))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Errors of a document, or of instances of its schemas."""
    document = request["document"]
    if request["ask"] == "document":
        return {"errors": [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]}
    if request["ask"] == "asyncapi":
        found = sorted(asyncapi_schema().iter_errors(document), key=relevance, reverse=True)
        return {"errors": [f"{error.json_path}: {error.message[:300]}" for error in found]}
    if request["ask"] == "instance":
        validator = Draft202012Validator({**request["schema"], "components": document["components"]})
        return {
            "errors": [
                f"{error.json_path}: {error.message}" for error in validator.iter_errors(request["instance"])
            ]
        }
    raise ValueError(request["ask"])


for line in sys.stdin:
    sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
    sys.stdout.flush()
