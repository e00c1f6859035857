"""api.md and venue.md against the venue that they describe: endpoints, members, examples, words."""

import re
from pathlib import Path

import msgspec
import pytest

from cambist.codecs.messages.delta_messages import BuildBody, OrderRecord, Route, Strategies
from cambist.codecs.messages.market_messages import (
    PricesQuery,
    PricesResponse,
    QuoteQuery,
    QuoteResponse,
    SwapQuery,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from cambist.codecs.messages.resource_messages import TradingError
from cambist.codecs.messages.tape_messages import TradeMessage
from cambist.codecs.messages.wire import encode
from cambist.feeds.firm.firm_check import AGAINST_MAKER, FirmFault
from cambist.feeds.standing import PairStanding
from support.venue.quiet_venue import a_quiet_venue

DOCS = Path(__file__).parents[5] / "docs" / "guides"
PAGE = (DOCS / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def members(struct: type[msgspec.Struct], *, needed: bool | None = None) -> set[str]:
    return {
        one.encode_name for one in msgspec.structs.fields(struct) if needed is None or one.required is needed
    }


def first_column(head: str, page: str = PAGE) -> set[str]:
    """Names in the first column of the table with this head."""
    table = page.split(f"| {head} |", 1)[1].split("\n\n", 1)[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return set(re.findall(r"`([^`]+)`", " ".join(cells)))


async def test_every_endpoint_is_on_the_page_and_no_other(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        document = await venue.get("/openapi.json")
    served = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert first_column("Endpoint | Cost |") == served


def test_what_a_quote_needs_is_said() -> None:
    sentence = PAGE.split("## A quote", 1)[1].split(" are needed.", 1)[0].rsplit("\n\n", 1)[1]
    assert set(re.findall(r"`(\w+)`", sentence)) == members(QuoteQuery, needed=True)


def test_parameters_and_members_are_those_that_are_read() -> None:
    assert first_column("Parameter of `POST /transactions` |") == members(TransactionQuery)
    optional = first_column("Members of its body that are not needed |")
    assert optional | {"srcAmount", "destAmount", "srcDecimals", "destDecimals"} == members(
        TransactionBody, needed=False
    )
    built = first_column("Members of a build that are not needed |")
    assert built | {"partiallyFillable", "deadline"} == members(BuildBody, needed=False)
    further = first_column("Further parameters of `GET /prices` and `GET /swap` |")
    assert further <= members(PricesQuery) & members(SwapQuery)


@pytest.mark.parametrize(
    ("text", "struct"),
    list(
        zip(
            EXAMPLES,
            (
                QuoteResponse,
                Route,
                Strategies,
                OrderRecord,
                TradeMessage,
                PricesResponse,
                TransactionEnvelope,
                TradingError,
            ),
            strict=True,
        )
    ),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_examples_are_whole_answers(text: str, struct: type[msgspec.Struct]) -> None:
    read = msgspec.json.decode(text, type=struct)
    assert msgspec.json.decode(encode(read)) == msgspec.json.decode(text)


def test_where_a_pair_stands_and_what_came_of_a_firm_quote_is_said() -> None:
    page = (DOCS / "venue.md").read_text(encoding="utf-8")
    assert first_column("Standing |", page) == {standing.value for standing in PairStanding}
    assert first_column("Fault | Counts against the maker |", page) == {fault.value for fault in FirmFault}
    against = [line.split("|")[1] for line in page.splitlines() if "| yes |" in line]
    assert set(re.findall(r"`([^`]+)`", " ".join(against))) == AGAINST_MAKER
