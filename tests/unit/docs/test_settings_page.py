"""docs/reference/all-settings.md has each setting that a file may have, with the structs' own defaults."""

import subprocess
import sys
from pathlib import Path

import pytest
from docs.generators import settings_page

from cambist.config.sections.partners import Tier
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]


@pytest.mark.process
def test_the_committed_page_is_made_of_the_structs() -> None:
    """In a process of its own: the defaults of this one are stretched."""
    made = subprocess.run(
        [sys.executable, "-c", "from docs.generators import settings_page as s; print(s.page(), end='')"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (ROOT / settings_page.PAGE).read_text(encoding="utf-8") == made.stdout, "make catalogue"


@pytest.mark.parametrize(
    "row",
    [
        "| `takes_surplus` | true or false | `true` |",
        "| `tip_min_wei`<br>`tip_max_wei` | integer | `0`<br>`5000000000` |",
        "| `give_up_s` | number above 0 to 2592000 | `86400.0` |",
        '| `tier` | `"fast"`, `"standard"` | absent |',
        "| `amounts` | list of 2 decimal numbers | `[10, 100000]` |",
        "| `secret` | secret reference | required |",
        "but a burst of 16 at least. |",
    ],
)
def test_a_row_says_type_bounds_and_default(row: str) -> None:
    assert row in settings_page.page()


def test_a_table_that_several_roles_have_is_explained_once() -> None:
    assert "## `[venue.firm]`, `[agent.firm]`\n" in settings_page.page()


def test_a_setting_without_a_meaning_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Tier.__doc__
    monkeypatch.setattr(Tier, "__doc__", Tier.__doc__.replace("takes_surplus:", "takes_it:"))
    with pytest.raises(LookupError, match="the docstring of Tier lacks takes_surplus"):
        settings_page.page()
