"""docs/reference/choices.md is made of the `Choice:` paragraphs of the sources, each under one topic."""

from pathlib import Path

import pytest
from docs.generators import choices_page as choices

ROOT = Path(__file__).parents[3]
COLLECTED = choices.collected()
CHARACTERS_MAX = 260
SOURCE = '''
"""A module.

Rules:
    Choice: The first rule
        goes on.
    Choice: The second, with `a: b`.
Source: a document.

Choice: The third.

Not of it.
"""


class Thing:
    """A class.

    Choice: The fourth.
    """

    def act(self) -> None:
        """Choice: The fifth."""


# Choice: a comment is none.
'''


def test_the_committed_page_is_made_of_the_docstrings() -> None:
    assert (ROOT / choices.PAGE).read_text(encoding="utf-8") == choices.page(), "run `make catalogue`"


def test_paragraphs_end_at_a_blank_line_at_the_next_word_and_with_the_docstring() -> None:
    assert list(choices.choices_of(SOURCE)) == [
        "The first rule goes on.",
        "The second, with `a: b`.",
        "The third.",
        "The fourth.",
        "The fifth.",
    ]


def test_the_longest_name_that_fits_a_module_decides_its_topic() -> None:
    assert choices.topic_of("engine.trade.market.ticket") == "Market swaps"
    assert choices.topic_of("engine.trade.quote.ask") == "Quotes and routes"
    assert choices.topic_of("engine.trade.delta.auction.auction") == "Auctions and settlements"
    assert choices.topic_of("engine.trade.delta.auctions") == "Delta orders"


def test_a_module_without_a_topic_is_named() -> None:
    with pytest.raises(LookupError, match="engine\\.unheard"):
        choices.topic_of("engine.unheard")


def test_each_topic_and_each_name_in_the_table_has_choices() -> None:
    named = {name for names in choices.TOPICS.values() for name in names}
    deciding = (
        max((name for name in named if f"{module}.".startswith(f"{name}.")), key=len) for module in COLLECTED
    )
    assert set(deciding) == named


def test_each_choice_is_short() -> None:
    long = {
        module: text for module, texts in COLLECTED.items() for text in texts if len(text) > CHARACTERS_MAX
    }
    assert long == {}
