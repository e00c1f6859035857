"""Makers, solvers and operators at the console of a venue with makers and an agent."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Browser
from support.venue.venue_processes import AGENT, Running, venue_processes
from support.venue.venue_role import API_KEY, SECRETS

pytestmark = pytest.mark.seldom


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console")
    with venue_processes(folder, [("WETH", "USDC")], has_agent=True, has_wallet=True) as processes:
        yield processes


async def told(browser: Browser, running: Running, *story: str, refusals: int = 0) -> Any:
    """Report of a story in which so many requests are refused."""
    visit = await browser.look("console_views", running.url, *story)
    assert [line for line in visit.complaints if "the server responded with a status of 4" not in line] == []
    assert len(visit.complaints) == refusals
    return visit.told


async def test_makers_are_shown_as_the_venue_sees_them(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "makers")
    assert [line[:2] for line in report["listed"]] == [["alpha", "live"], ["beta", "live"]]
    assert [line[:4] for line in report["shown"]] == [
        ["WETH/DAI", "live", "2,498", "2,503"],
        ["WETH/USDC", "live", "2,500", "2,501"],
    ]
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_a_maker_sees_its_own_book_by_its_signature(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "own", "venue", "key-1", SECRETS["beta"], refusals=2)
    assert "signature" in report["refused"].lower()
    assert report["name"] == "beta"
    assert [line[0] for line in report["shown"]] == ["WBTC/USDC", "WETH/DAI", "WETH/USDC"]
    assert report["faultsTold"] == 1
    assert report["left"] == ""
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_everybody_sees_rounds_and_why_bids_lost(browser: Browser, running: Running) -> None:
    auction = await told(browser, running, "round")
    report = await told(browser, running, "auctions", API_KEY, auction["id"])
    assert report["bids"][0][0] == AGENT
    assert report["bids"][0][1] in ("won", "settled")
    assert report["bids"][0][3].startswith("2,49")
    assert report["open"] == report["bids"]
    assert report["everybody"][0][0].startswith("sell 1 WETH for ≥ ")
    assert report["isIdHidden"] is True
    assert report["agents"][0][:2] == [AGENT, "active"]
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_operators_see_the_venue_and_switch_makers(browser: Browser, running: Running) -> None:
    await told(browser, running, "round")
    report = await told(browser, running, "operator", API_KEY, refusals=1)
    assert "Makers and their switch" not in report["without"]
    assert report["needs"] == "Needs you\n\nNothing."
    assert "chains 1/1" in report["strip"]
    assert [line[:2] for line in report["makers"]] == [["alpha", "in use"], ["beta", "in use"]]
    assert "9,999." in report["chains"]
    assert report["height"] <= 1_800  # two screens
    latencies = {line[0]: line[1:] for line in report["latencies"]}
    assert int(latencies["GET /chains"][0]) >= 1
    assert all(line[3].startswith("≤ ") for line in latencies.values())
    ((chain_id, number, *_),) = report["rounds"]
    assert (chain_id, int(number) >= 1) == ("31337", True)
    assert report["out"][1][:2] == ["beta", "left out"]
    assert report["withheld"] == ["excluded"]
    assert report["faults"] == []
    assert report["overflowing"] == []
    assert report["fits"] == []


async def test_a_link_signs_in_and_leaves_no_key_behind(browser: Browser, running: Running) -> None:
    report = await told(browser, running, "link", API_KEY)
    assert report["address"] == "#operator"
    (light, bright), (dark, gloomy), (system, _) = report["themes"]
    assert (light, dark, system) == ("light", "dark", "")
    assert (bright, gloomy) == ("rgb(246, 247, 249)", "rgb(12, 15, 19)")
