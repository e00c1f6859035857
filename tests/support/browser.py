"""A browser that visits pages of a server under test: Chromium, by scripts of tests/oracles (browser.mjs).

    told = await browser.visit("docs_visit", "http://127.0.0.1:8080", "/docs")

Pictures of pages are kept in the folder BROWSER_ARTEFACTS; without it only that of a failed visit is taken,
into the folder of the test.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from support.oracles import Stories


class Visit(msgspec.Struct, frozen=True):
    """Report of a visit.

    Attributes:
        told: answer of the script.
        complaints: errors and warnings of the browser's console, and errors of the page's scripts.
        foreign: URLs of other origins that the page asked for.
    """

    told: Any
    complaints: tuple[str, ...]
    foreign: tuple[str, ...]


class Browser:
    """Runs scripts that visit pages, each in a fresh profile."""

    def __init__(self, stories: Stories, executable: str, artefacts: Path) -> None:
        self._stories, self._executable, self.artefacts = stories, executable, artefacts

    async def look(self, script: str, base: str, *arguments: str) -> Visit:
        """Run a script of tests/oracles.

        Args:
            base: origin of the pages, such as http://127.0.0.1:8080.
        """
        place = self._executable, str(self.artefacts), base
        told = partial(self._stories.told, script, *place, *arguments)
        return msgspec.convert(await trio.to_thread.run_sync(told), Visit)

    async def visit(self, script: str, base: str, *arguments: str) -> Any:
        """As `look`, for a page without complaints and foreign requests; return the answer of the script."""
        visit = await self.look(script, base, *arguments)
        assert visit.complaints == ()
        assert visit.foreign == ()
        return visit.told


def artefacts(folder: Path) -> Path:
    """Folder of the pictures: BROWSER_ARTEFACTS, or `folder`."""
    chosen = Path(os.environ.get("BROWSER_ARTEFACTS") or folder)
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen
