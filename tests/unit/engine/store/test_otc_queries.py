"""Pages of OTC orders are read along an index in every sort order: no query sorts or reads all rows."""

import itertools
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OtcType
from cambist.engine.store.queries import OtcFilter, live_otc, otc_page
from cambist.engine.store.rows import amount32
from support.store.query_plans import empty_database, plan_of

ACCOUNT, TOKEN = b"\xa1" * 20, b"\xe0" * 20
ACCOUNTS: list[dict[str, Any]] = [{"maker": ACCOUNT}, {"taker": ACCOUNT}]
SMALL: list[dict[str, Any]] = [
    {},
    {"swappable_min": ()},
    {"swappable_min": ((TOKEN, amount32(5)),)},
]
TYPES: list[dict[str, Any]] = [{}, {"type": OtcType.P2P}]
SORTED: list[dict[str, Any]] = [{"order_by": key} for key in ("created_ms", "updated_ms", "expires_s")]
FILTERS = [
    OtcFilter(1, **account, **small, **kind, **key)
    for account, small, kind, key in itertools.product(ACCOUNTS, SMALL, TYPES, SORTED)
]


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with empty_database() as connection:
        yield connection


def searched(steps: list[str]) -> list[str]:
    """The steps that read rows: each along an index."""
    assert not any("TEMP B-TREE" in step for step in steps), steps
    reading = [step for step in steps if step.startswith(("SEARCH", "SCAN")) and step != "SCAN CONSTANT ROW"]
    assert all(step.startswith("SEARCH otc_order USING ") for step in reading), steps
    return reading


@pytest.mark.parametrize("as_of", ["", "7"])
@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_no_page_is_sorted_and_none_reads_all(
    wanted: OtcFilter, as_of: str, database: sqlite3.Connection
) -> None:
    key = {"created_ms": "created", "updated_ms": "updated", "expires_s": "expiry"}[wanted.order_by]
    pending = "" if wanted.swappable_min is None else "_pending"
    whose = ["maker"] if wanted.maker else ["addressee", "filler"]
    for is_backwards in (False, True):
        page, total = otc_page(wanted, 100, 50, as_of, is_backwards=is_backwards)
        for name, step in zip(whose, searched(plan_of(page, database)), strict=True):
            assert f" INDEX otc_{name}_{key}{pending} " in step
        for name, step in zip(whose, searched(plan_of(total, database)), strict=True):
            assert f" INDEX otc_{name}_" in step
            assert ("_pending" in step) == bool(pending)
            assert ("rowid<" in step) == (bool(as_of) and not pending), "an earlier state is a range"


def test_a_part_without_orders_is_not_merged(database: sqlite3.Connection) -> None:
    wanted = OtcFilter(1, taker=ACCOUNT)
    for counts, names in (((5, 0), ["addressee"]), ((0, 5), ["filler"]), ((5, 5), ["addressee", "filler"])):
        page, total = otc_page(wanted, 100, 50, "7", counts=counts)
        for name, step in zip(names, searched(plan_of(page, database)), strict=True):
            assert f" INDEX otc_{name}_created " in step
        assert len(searched(plan_of(total, database))) == 2, "what is counted is all of it"


@pytest.mark.parametrize("asset", [None, TOKEN], ids=["all tokens", "one token"])
def test_live_orders_are_found_by_account(asset: bytes | None, database: sqlite3.Connection) -> None:
    (step,) = searched(plan_of(live_otc(1, ACCOUNT, asset), database))
    assert " INDEX otc_order_live (chain_id=? AND maker=?" in step


def test_a_listing_is_of_one_account() -> None:
    wrong: list[dict[str, Any]] = [{}, {"maker": ACCOUNT, "taker": ACCOUNT}]
    for accounts in wrong:
        with pytest.raises(ValueError, match="of a maker's orders, or of a taker's"):
            OtcFilter(1, **accounts)
