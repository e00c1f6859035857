"""A trader at the console: quote, swap, orders and a TWAP, on a venue with makers and an agent."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Browser, Visit
from support.venue.venue_processes import AGENT, Running, venue_processes

pytestmark = pytest.mark.seldom


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    pairs = [("WETH", "USDC"), ("USDC", "DAI")]
    with venue_processes(
        tmp_path_factory.mktemp("console"), pairs, has_agent=True, has_wallet=True
    ) as processes:
        yield processes


async def told(browser: Browser, running: Running, *story: str) -> Any:
    """Report of a story; the page called no other host but the venue and its chain's node."""
    visit: Visit = await browser.look("console_trade", running.url, *story)
    assert visit.complaints == ()
    assert {url.rstrip("/") for url in visit.foreign} <= {running.rpc}
    return visit.told


async def test_a_swap_shows_its_route_and_is_sent(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "swap", "6", "WETH", "USDC", "8", "SELL", "")
    assert report["route"] == "Route: 100 % to USDC with alpha 62.5 % and beta 37.5 %"
    assert [fill[:1] + fill[2:] for fill in report["fills"]] == [
        ["alpha", "62.5 %", "12,500 USDC", "5 WETH", "2,500.00"],
        ["beta", "37.5 %", "7,498.5 USDC", "3 WETH", "2,499.50"],
    ]
    assert report["others"] == [
        ["alpha", "19,995 USDC", "1.49985 USDC worse, before gas"],
        ["beta", "19,980.5 USDC", "15.9984 USDC worse, before gas"],
    ]
    assert report["shown"]["Price, before gas"] == "1 WETH = 2,499.56 USDC"
    assert report["agreement"]["title"] == "Swap 8 WETH for 19,996.5 USDC"
    terms = report["agreement"]["terms"]
    assert terms["You pay"] == "exactly 8 WETH"
    assert terms["You receive"] == "at least 19,896.517649 USDC"
    assert terms["Contract"] == f"{running.devnet.text('router')} (Router)"
    assert report["said"][0] == "✓ approved"
    assert re.fullmatch(r"✓ mined in block \d+", report["said"][1])
    assert re.fullmatch(r"✓ Received 19,996\.5\d* USDC", report["headline"])
    assert report["result"]["Paid"] == "8 WETH"
    assert report["swaps"][0][0] == "8 WETH → 19,996.5 USDC"
    assert report["faults"] == []
    assert report["overflowing"] == []


@pytest.mark.parametrize(
    ("pay", "get", "amount", "of"),
    [("USDC", "WETH", "1000", "SELL"), ("WETH", "USDC", "500", "BUY"), ("ETH", "USDC", "1", "SELL")],
)
async def test_swaps_of_all_kinds(
    browser: Browser, running: Running, pay: str, get: str, amount: str, of: str
) -> None:
    report = await told(browser, running, "swap", "7", pay, get, amount, of, "")
    assert "mined in block" in report["said"][-1]


async def test_an_order_is_signed_auctioned_and_followed(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "order", "6", "Gasless", "WETH", "USDC", "2", "SELL")
    terms = report["agreement"]["terms"]
    assert terms["You pay"] == "exactly 2 WETH"
    assert terms["You receive"].startswith("at least 4,97")
    assert report["said"][-1] == "✓ accepted"
    assert report["headline"] == "✓ Order placed"
    assert report["head"]["Received"].endswith(" USDC")
    assert report["head"]["Received"] in report["outcome"]
    assert "against the quote" in report["outcome"]
    assert report["settled"] == "settled"
    assert "pending" in report["timeline"][0]
    assert "2 WETH sold for 4,99" in report["timeline"][-1]
    assert report["bids"][0][:2] == [AGENT, "won"]
    assert report["bids"][0][3].endswith(" USDC")
    assert report["orders"][0][0] == f"2 WETH → {report['head']['Received']}"
    assert report["orders"][0][1] == "completed"
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_native_tokens_are_deposited_for_an_order(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "order", "8", "Gasless", "ETH", "USDC", "1", "SELL")
    assert report["agreement"]["terms"]["You sign"] == "a deposit of the native tokens, and a message"
    assert "1 ETH sold for" in report["timeline"][-1]


async def test_a_purchase_is_auctioned(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "order", "8", "Gasless", "WETH", "USDC", "1000", "BUY")
    assert report["agreement"]["terms"]["You receive"] == "exactly 1,000 USDC"
    assert report["agreement"]["terms"]["You pay"].startswith("at most 0.40")
    assert report["head"]["Paid"].endswith(" WETH")


async def test_a_limit_order_says_why_it_waits_and_is_cancelled(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "limit", "9")
    assert report["agreement"]["terms"]["You receive"] == "at least 4,500 USDC"
    assert report["reason"].startswith(
        "The order waits for its price: it sells 1.5 WETH for at least 4,500 USDC, and makers' books give 3,7"
    )


@pytest.mark.parametrize("kind", ["Swap", "Gasless"])
async def test_an_amount_beyond_the_books_is_refused_with_the_reason(
    browser: Browser, running: Running, kind: str
) -> None:
    assert "books" in await told(browser, running, "refused", kind, "500")


async def test_an_amount_above_the_balance_is_noticed(browser: Browser, running: Running) -> None:
    assert (await told(browser, running, "short", "9"))["isDisabled"] is True


async def test_a_twap_is_settled_slice_by_slice(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "order", "7", "TWAP", "WETH", "USDC", "2", "SELL", running.rpc)
    assert report["agreement"]["terms"]["You pay"] == "exactly 2 WETH in 2 slices"
    assert report["head"]["Slices settled"] == "2 of 2"
    assert sum("1 WETH sold for" in entry for entry in report["timeline"]) == 2
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_a_purchase_in_slices_is_settled_slice_by_slice(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "order", "5", "TWAP", "WETH", "USDC", "1000", "BUY", running.rpc)
    terms = report["agreement"]["terms"]
    assert terms["You receive"] == "exactly 1,000 USDC in 2 slices"
    assert terms["You pay"].startswith("at most 0.40")
    assert terms["Most paid, each slice"].startswith("0.20")
    assert report["head"]["Slices settled"] == "2 of 2"
    assert report["head"]["Each slice"] == "500 USDC every 60 s"
    assert [(line[0], line[2]) for line in report["slices"]] == [
        ("1 of 2", "500 USDC"),
        ("2 of 2", "500 USDC"),
    ]
    assert report["orders"][0][2] == "TWAP purchase"
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_an_otc_order_is_posted_filled_in_part_and_cancelled(
    browser: Browser, running: Running
) -> None:
    report = await told(browser, running, "otc", "6", "7")
    assert report["terms"]["You give"] == "exactly 2 WETH, in whole or in parts"
    assert report["terms"]["Taker"] == "anyone"
    assert report["posted"] == "✓ Order posted"
    assert report["fillTerms"]["You pay"] == "exactly 1,255 USDC"
    assert report["fillTerms"]["Of the order"] == "25 %"
    assert report["filled"]["headline"] == "✓ Received 0.5 WETH"
    assert report["cancelled"] == "✓ Order cancelled"
    assert report["steps"][0] == "✓ it is the order’s own"
    assert report["mine"][0][:3] == ["2 WETH", "5,020 USDC", "2,510.00"]
    assert report["mine"][0][5] == "cancelled"
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_a_deposit_that_no_order_needs_is_taken_back(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "withdrawal", "3")
    assert report["terms"]["From"] == f"your deposit at {running.devnet.text('delta')} (Delta)"
    assert report["headline"] == "✓ Withdrew 1 ETH"
    assert report["left"] == 0


async def test_the_form_takes_bounds_of_ones_own(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "settings", "4", running.devnet.text("DAI"))
    assert report["least"].startswith("2,46")  # 1.25 % below
    assert report["ratios"] == pytest.approx([1.01, 0.99], rel=1e-4)
    assert report["rests"].startswith("once the price is ")
    assert report["fills"].startswith("at once: ")
    assert report["found"].startswith("DAI")
    assert float(report["most"]) > 1
