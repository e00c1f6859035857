"""The two machine-readable resources made from this package: errors.json and contracts.json.

`python -m cambist.config.catalogue` writes both files beside this one; a test fails while they differ from
what the code says. A running venue serves contracts.json made from its own settings.

Source: document 1, "Spender rules" and "Errors"; choices.md 4.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .chains import SHIPPED_CHAINS, Chain
from .errors import request_rows


def errors_document() -> dict[str, Any]:
    """errors.json: one entry per message that a client can match on."""
    return {
        "_meta": {
            "description": "Error catalogue: `match` is what `details` starts with.",
            "body": "{errorType, details, description, error, requestId}",
        },
        "errors": [
            {
                "endpoint": row.endpoint,
                "status": row.status,
                "errorType": row.error_type,
                "match": message,
                "cause": row.cause,
                "fix": row.fix,
                "docs": f"docs/api.md#{row.error_type.lower()}",
            }
            for row in request_rows()
            for message in row.messages
        ],
    }


def contracts_document(chains: Mapping[int, Chain]) -> dict[str, Any]:
    """contracts.json: the contract addresses of each chain, under the keys that clients know."""
    return {
        "_meta": {"description": "Contract addresses by chain id; empty where not deployed."},
        "chains": {
            str(chain_id): {
                "name": chain.name,
                "augustusV6_2": chain.router,
                "delta": chain.delta_contract,
                "augustusRFQ": chain.rfq_contract,
                "executor": chain.executor,
                "feeClaimer": chain.fee_vault,
            }
            for chain_id, chain in sorted(chains.items())
        },
    }


def documents() -> dict[str, str]:
    """File name -> text of both resources as shipped."""
    made = {"errors.json": errors_document(), "contracts.json": contracts_document(SHIPPED_CHAINS)}
    return {name: json.dumps(document, indent=2) + "\n" for name, document in made.items()}


if __name__ == "__main__":
    for name, text in documents().items():
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")
