"""Generated files are committed as generated, and have the members that clients read."""

import json
from pathlib import Path

import msgspec
import pytest

from cambist.config import catalogue
from cambist.config.chains import SHIPPED_CHAINS
from cambist.config.errors import catalogue_rows

ROOT = Path(__file__).parents[3]
GENERATED = catalogue.files()


@pytest.mark.parametrize("name", GENERATED)
def test_committed_file_is_what_the_code_says(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[name], "run `make catalogue`"


def test_both_resources_are_generated() -> None:
    assert {"config/errors.json", "config/contracts.json"} <= set(GENERATED)


def test_errors_has_a_row_per_message_with_the_documented_keys() -> None:
    document = json.loads(GENERATED["config/errors.json"])
    assert set(document) == {"_meta", "errors"}
    assert [row["match"] for row in document["errors"]] == [
        message for row in catalogue_rows() for message in row.messages
    ]
    for row in document["errors"]:
        assert {"endpoint", "status", "match", "cause", "fix", "docs"} <= set(row)


def test_every_docs_link_of_errors_leads_to_a_file() -> None:
    for row in json.loads(GENERATED["config/errors.json"])["errors"]:
        assert (ROOT / row["docs"].partition("#")[0]).is_file()


def test_contracts_are_keyed_by_chain_id_under_the_names_that_clients_know() -> None:
    document = json.loads(GENERATED["config/contracts.json"])
    assert list(document["chains"]) == [str(chain_id) for chain_id in sorted(SHIPPED_CHAINS)]
    for chain_id, row in document["chains"].items():
        assert set(row) == {
            "name",
            "augustusV6_2",
            "delta",
            "augustusRFQ",
            "executor",
            "feeClaimer",
            "served",
        }
        assert row.pop("name") == SHIPPED_CHAINS[int(chain_id)].name
        assert not any(row.pop("served").values()), "nothing is served as shipped"
        assert not any(row.values()), "nothing is deployed as shipped"


def test_a_venues_own_contracts_are_served_where_they_belong() -> None:
    addresses = {
        "router": "0x01",
        "delta_contract": "0x02",
        "rfq_contract": "0x03",
        "executor": "0x04",
        "fee_vault": "0x05",
    }
    chains = {56: SHIPPED_CHAINS[56], 1: msgspec.structs.replace(SHIPPED_CHAINS[1], **addresses)}
    roles = {1: {"delta": True, "market": True, "rfq": False}}
    served = catalogue.contracts_document(chains, roles)["chains"]
    assert list(served) == ["1", "56"]
    assert served["1"] == {
        "name": "Ethereum",
        "augustusV6_2": "0x01",
        "delta": "0x02",
        "augustusRFQ": "0x03",
        "executor": "0x04",
        "feeClaimer": "0x05",
        "served": roles[1],
    }
    assert not any(served["56"]["served"].values())
