"""openapi-spec-validator and jsonschema as a process of .venv-peers: JSON lines in, JSON lines out."""

# pyright: reportMissingImports=false
import json
import sys
from typing import Any

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Errors of a document, or of instances of its schemas."""
    document = request["document"]
    if request["ask"] == "document":
        return {"errors": [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]}
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
