"""The console with care: by keyboard, with a wallet, against lies and markup, with thousands of orders."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cambist.codecs.contracts.delta_calldata import deposit_native_and_pre_sign
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from support.browser import Browser
from support.venue.venue_processes import Running, asked, venue_processes
from support.venue.venue_role import CHAIN_ID, KEYS

pytestmark = pytest.mark.seldom

MARKUP = "<img src=x onerror=\"window.ran='markup'\"><b>bold</b>"
ORDERS, PAIRS = 5_000, 500
SCROLLED_PX, ROW_PX = 60 * 90, 44
WORK_MORE_MAX = 4.0
"""A frame of a scroll may take so many times the work of a frame of a plain table."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console")
    with venue_processes(folder, [("WETH", "USDC")], has_agent=True, has_wallet=True) as processes:
        yield processes


async def told(browser: Browser, running: Running, *story: str) -> Any:
    """Report of a story."""
    visit = await browser.look("console_care", running.url, *story)
    assert visit.complaints == ()
    return visit.told


async def test_a_swap_needs_no_pointer(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "keyboard")
    assert report["first"] == "Skip to the content"
    assert report["said"][0] == "✓ approved"
    assert "mined in block" in report["said"][1]
    assert report["last"] == "Done"
    assert report["announced"].startswith("Received ")


async def test_a_wallet_of_the_browser_signs_the_shown_terms(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "wallet", running.rpc)
    assert report["refusal"] == "You refused in the wallet. Nothing was signed."
    assert report["methods"].count("eth_signTypedData_v4") == 2
    typed = report["typed"]
    owner = to_checksum(KEYS[5].address)
    assert typed["primaryType"] == "Order"
    assert typed["domain"]["chainId"] == CHAIN_ID
    assert typed["domain"]["verifyingContract"] == running.devnet.text("delta")
    assert (typed["message"]["owner"], typed["message"]["srcAmount"]) == (owner, str(10**18))


DEPOSIT = to_hex(deposit_native_and_pre_sign(bytes(32)))
FAULTS = REFUSED, UNKNOWN, LATE, REVERTED, OVER, SAME = (
    "You refused in the wallet",
    "does not say whether it sent",
    "not mined after three minutes",
    "was reverted",
    "The time of this order is over",
    "“Try again” sends the same order",
)


@pytest.mark.parametrize(
    ("mode", "kind", "pay", "faults", "sent", "orders"),
    [
        ("lost", "Swap", "WETH", [UNKNOWN] * 4, 2, 0),  # an approval, and a swap that is not sent again
        ("lost", "Gasless", "ETH", [UNKNOWN, SAME], 1, 1),
        ("late", "Swap", "ETH", [LATE], 1, 0),
        ("late", "Gasless", "ETH", [LATE, SAME], 1, 1),
        ("reverted", "Swap", "ETH", [REVERTED], 2, 0),
        ("time", "Gasless", "ETH", [REFUSED, OVER, OVER, OVER], 1, 0),
    ],
)
async def test_trying_again_sends_nothing_twice(
    browser: Browser,
    running: Running,
    mode: str,
    kind: str,
    pay: str,
    faults: list[str],
    sent: int,
    orders: int,
) -> None:
    visit = await browser.look("console_care", running.url, "again", running.rpc, mode, kind, pay)
    told = visit.told
    said = [next((named for named in FAULTS if named in fault), fault) for fault in told["faults"]]
    assert said == faults
    assert (len(told["sent"]), told["orders"]) == (sent, orders)
    if kind == "Gasless":
        assert told["sent"] == [DEPOSIT]


@pytest.mark.parametrize(
    ("path", "member", "value", "named"),
    [
        ("/v2/delta/orders/build", "destAmount", "1", "destAmount should be at least 248"),
        ("/v2/delta/orders/build", "beneficiary", "0x" + "66" * 20, "beneficiary should be 0x"),
        ("/v2/delta/orders/build", "srcAmount", str(2 * 10**18), "srcAmount should be 1000000000000000000"),
        ("/v2/delta/orders/build", "partnerAndFee", str(200), "partnerAndFee should be a fee of at most 1"),
        ("/v2/delta/orders/build", "permit", "0x01", "permit should be 0x"),
        ("/transactions/*", "to", "0x" + "66" * 20, "to should be 0x"),
        ("/transactions/*", "value", "1", "value should be 0"),
        ("/transactions/*", "data", "0x095ea7b3", "data should be a swap of the Router"),
    ],
)
async def test_what_was_not_agreed_is_not_signed(
    browser: Browser, running: Running, path: str, member: str, value: str, named: str
) -> None:
    address = to_checksum(KEYS[9].address)
    fault = await told(browser, running, "lies", path, member, value)
    assert named in fault
    assert asked(f"{running.url}/v2/delta/orders?userAddress={address}")["total"] == 0


@pytest.mark.parametrize(
    ("member", "value", "named"),
    [
        ("totalDestAmount", "1", "totalDestAmount should be 1000000000"),
        ("maxSrcAmount", str(10**18), "maxSrcAmount should be "),
        ("numSlices", 3, "numSlices should be 4"),
        ("interval", 61, "interval should be 60"),
        ("destToken", "0x" + "66" * 20, "destToken should be 0x"),
    ],
)
async def test_slices_of_a_purchase_that_were_not_agreed_are_not_signed(
    browser: Browser, running: Running, member: str, value: Any, named: str
) -> None:
    address = to_checksum(KEYS[9].address)
    path = "/v2/delta/orders/build"
    fault = await told(browser, running, "lies", path, member, str(value), "TWAP", "BUY")
    assert named in fault
    assert asked(f"{running.url}/v2/delta/orders?userAddress={address}")["total"] == 0


async def test_markup_is_shown_as_text(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "hostile", MARKUP)
    assert report["ran"] is None
    assert report["elements"] == 0
    assert f"1 WETH{MARKUP}" in report["shown"]
    assert MARKUP in report["route"]


async def test_a_first_look_that_fails_is_repeated(browser: Browser, running: Running) -> None:
    visit = await browser.look("console_care", running.url, "busy")
    assert visit.told == {"failed": ["orders", "explain"], "orders": 1}
    assert ["503" in complaint for complaint in visit.complaints] == [True]


async def test_orders_are_listed_when_their_events_are_refused(browser: Browser, running: Running) -> None:
    visit = await browser.look("console_care", running.url, "crowded")
    assert visit.told == {"isRefused": True, "orders": 1}


async def test_a_list_that_is_refused_for_good_is_asked_for_once(browser: Browser, running: Running) -> None:
    visit = await browser.look("console_care", running.url, "denied")
    assert visit.told == 1


async def test_a_late_answer_about_an_order_does_not_hide_its_end(browser: Browser, running: Running) -> None:
    assert await told(browser, running, "overtaken") == [1, 1]


async def test_a_refused_cancellation_says_so_until_the_next_try(browser: Browser, running: Running) -> None:
    visit = await browser.look("console_care", running.url, "refused")
    assert visit.told == {"said": ["too busy", ""], "isKept": True, "hiddenLooks": 0, "after": ["", ""]}


@pytest.mark.parametrize("unknown", ["none", "00000000-0000-4000-8000-000000000000"])
async def test_an_unknown_order_is_asked_for_once(browser: Browser, running: Running, unknown: str) -> None:
    visit = await browser.look("console_care", running.url, "unknown", unknown)
    assert visit.told == 1


async def test_another_pair_has_another_limit_price(browser: Browser, running: Running) -> None:
    before, after = await told(browser, running, "flipped")
    assert before < 0.001
    assert after > 1_000


@pytest.mark.parametrize(
    ("kind", "label", "text"), [("Limit", "Limit price", "3000"), ("Gasless", "You receive", "1000")]
)
async def test_a_price_does_not_write_where_a_person_types(
    browser: Browser, running: Running, kind: str, label: str, text: str
) -> None:
    assert await told(browser, running, "typing", kind, label, text) == text


async def test_a_field_that_a_person_leaves_has_the_price(browser: Browser, running: Running) -> None:
    assert float(await told(browser, running, "typing", "Gasless", "You receive", "")) > 1_000


async def test_two_tabs_of_a_trader_are_both_served(browser: Browser, running: Running) -> None:
    assert await told(browser, running, "tabs") == [1, 2]


async def test_thousands_of_orders_scroll_smoothly(browser: Browser, running: Running) -> None:
    await told(browser, running, "wallet", running.rpc)
    owner = to_checksum(KEYS[5].address)
    (record, *_) = asked(f"{running.url}/v2/delta/orders?userAddress={owner}")["data"]
    report = await told(browser, running, "orders", str(ORDERS), json.dumps(record))
    assert report["rowcount"] == str(ORDERS + 1)
    assert report["added"] <= SCROLLED_PX / ROW_PX + report["elements"]  # a row that stays is not moved
    assert_smooth(report)


async def test_hundreds_of_pairs_scroll_smoothly(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "pairs", str(PAIRS))
    assert report["rowcount"] == str(PAIRS + 1)
    assert_smooth(report)


def assert_smooth(report: dict[str, Any]) -> None:
    """A frame takes about the work of a plain table's frame, and few rows exist."""
    assert report["scrolledPx"] == SCROLLED_PX
    assert report["elements"] < 60
    assert report["work"] <= WORK_MORE_MAX * report["plain"]
