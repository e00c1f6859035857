"""Lighthouse's judgement of the console's pages on `cambist up`; ends with 1 below a bound of BOUNDS.

`make lighthouse` prints a row for each page. The browser is Chromium (`support.programs`); Lighthouse
measures as on a phone with a slow network.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.oracles import NODE
from support.programs import program

BOUNDS = {"accessibility": 100, "best-practices": 100, "performance": 95}
PAGES = ("", "#otc", "#makers", "#auctions", "#operator")
LIGHTHOUSE = Path(__file__).parent / "node_modules" / "lighthouse" / "cli" / "index.js"
PAGE_S, START_S = 180.0, 20.0


def scores(url: str, browser: Path) -> dict[str, int]:
    """Judge a page: category -> score of 100."""
    command = [str(NODE), str(LIGHTHOUSE), url, "--quiet", "--output=json"]
    command += [
        f"--only-categories={','.join(BOUNDS)}",
        "--chrome-flags=--headless --no-sandbox --disable-gpu",
    ]
    environ = os.environ | {"CHROME_PATH": str(browser)}
    done = subprocess.run(command, capture_output=True, check=True, timeout=PAGE_S, env=environ)
    told: dict[str, Any] = json.loads(done.stdout)["categories"]
    return {name: round(100 * told[name]["score"]) for name in BOUNDS}


def main() -> int:
    """Start `cambist up`, judge its pages, print a row for each, and return the exit status."""
    browser, is_below = program("chromium"), False
    with tempfile.TemporaryDirectory(prefix="cambist-lighthouse-") as folder:
        command = [sys.executable, "-m", "cambist", "up", "--json", "--port", "0", "--devnet-port", "0"]
        environ = os.environ | {"CAMBIST__STATE_DIR": folder}
        up = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, env=environ
        )
        try:
            assert up.stdout is not None
            console = json.loads(up.stdout.readline())["console"]
            for page in PAGES:
                found = scores(console + page, browser)
                is_below |= any(found[name] < bound for name, bound in BOUNDS.items())
                sys.stdout.write(f"{page or '#trade':<12}{found}\n")
                sys.stdout.flush()
        finally:
            up.terminate()
            up.wait(START_S)
    return int(is_below)


if __name__ == "__main__":
    sys.exit(main())
