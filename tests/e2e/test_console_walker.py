"""Every page and dialog of the console, in every state, at 320 to 3840 pixels, light and dark."""

from collections.abc import Iterator

import pytest

from support.browser import Browser
from support.venue.venue_processes import Running, venue_processes

pytestmark = pytest.mark.seldom


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console")
    with venue_processes(folder, [("WETH", "USDC")], has_agent=True, has_wallet=True) as processes:
        yield processes


@pytest.mark.parametrize("state", ["plain", "empty", "error", "loading", "long", "foreign"])
async def test_nothing_is_cut_hidden_or_untrue(browser: Browser, running: Running, state: str) -> None:
    visit = await browser.look("console_walker", running.url, state)
    assert not visit.told["found"], "\n".join(visit.told["found"])
    assert visit.told["seen"] == 34
