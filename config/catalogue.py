"""What is generated from this package: errors.json, contracts.json and the page docs/errors.md.

`make catalogue` writes them; a test fails while they differ from what the code says. A running venue serves
contracts.json made from its own settings.

Choice: a contract that is not deployed on a chain is null: every key is always there.
Choice: `_meta` is `{name, version}`: what the document is, and the version of cambist that made it.

Source: document 1, "Spender rules" and "Errors"; choices.md 4.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from .chains import SHIPPED_CHAINS, Chain
from .errors import request_rows

_ERRORS_PAGE = "docs/errors.md"


def errors_document() -> dict[str, Any]:
    """errors.json: one row per message; `match` is what the error text starts with."""
    return {
        "_meta": {"name": "cambist errors", "version": __version__},
        "errors": [
            {
                "endpoint": row.endpoint,
                "status": row.status,
                "match": message,
                "cause": row.cause,
                "fix": row.fix,
                "docs": _ERRORS_PAGE,
            }
            for row in request_rows()
            for message in row.messages
        ],
    }


def contracts_document(chains: Mapping[int, Chain]) -> dict[str, Any]:
    """contracts.json: the contract addresses of each chain, under the keys that clients know."""
    return {
        "_meta": {"name": "cambist contracts", "version": __version__},
        "chains": {
            str(chain_id): {
                "name": chain.name,
                "augustusV6_2": chain.router or None,
                "delta": chain.delta_contract or None,
                "augustusRFQ": chain.rfq_contract or None,
                "executor": chain.executor or None,
                "feeClaimer": chain.fee_vault or None,
            }
            for chain_id, chain in sorted(chains.items())
        },
    }


def errors_page() -> str:
    """docs/errors.md: the same rows for people."""
    lines = [
        "# Errors",
        "",
        "Every error that a request can meet. The text of an answer starts with the message; what follows",
        "names the field at fault, what was expected and what came. This page is generated: `make catalogue`;",
        "`/resources/errors.json` holds the same rows.",
        "",
        "| Status | errorType | Message | Cause | What to do | Where |",
        "|---|---|---|---|---|---|",
    ]
    for row in request_rows():
        messages = "<br>".join(row.messages)
        lines.append(
            f"| {row.status} | {row.error_type} | {messages} | {row.cause} | {row.fix} | {row.endpoint} |"
        )
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """Path from the repository's top -> text, for all that is generated."""
    return {
        "config/errors.json": json.dumps(errors_document(), indent=2) + "\n",
        "config/contracts.json": json.dumps(contracts_document(SHIPPED_CHAINS), indent=2) + "\n",
        _ERRORS_PAGE: errors_page(),
    }


def _write() -> None:
    top = Path(__file__).resolve().parents[1]
    for name, text in files().items():
        (top / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write()
