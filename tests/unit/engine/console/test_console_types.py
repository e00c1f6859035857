"""The console's scripts read only members that the API's answers have, by types of the OpenAPI document."""

import json
from pathlib import Path

import pytest
import trio

from support.console_types import console_types
from support.oracles import NODE
from support.patience import STORY_S
from support.programs import ORACLES, program
from support.venue.quiet_venue import a_quiet_venue

pytestmark = pytest.mark.oracle


async def checked(folder: Path, **files: str) -> str:
    """Messages of the compiler about the console's scripts, and about scripts beside them."""
    program("npm-packages")
    async with a_quiet_venue(folder) as venue:
        document = await venue.get("/openapi.json")
    (folder / "api.d.ts").write_text(console_types(document))
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text)
    base = json.loads((ORACLES / "tsconfig.console.json").read_text())
    paths = {
        name: [str((ORACLES / each).resolve()) for each in at]
        for name, at in base["compilerOptions"]["paths"].items()
    }
    include = [*((str((ORACLES / each).resolve())) for each in base["include"]), "*"]
    config = {"compilerOptions": base["compilerOptions"] | {"paths": paths}, "include": include}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    compiler = ORACLES / "node_modules" / ".bin" / "tsc"
    command = [str(NODE), str(compiler), "-p", str(folder / "tsconfig.json")]
    with trio.fail_after(STORY_S):
        done = await trio.run_process(command, capture_stdout=True, check=False)
    return done.stdout.decode()


async def test_scripts_read_what_the_api_answers(tmp_path: Path) -> None:
    assert await checked(tmp_path) == ""


async def test_a_member_that_no_answer_has_is_found(tmp_path: Path) -> None:
    """The fault that the console once had: `others`, a map, was read as a list."""
    wrong = (
        "/** @param {Api_PriceRoute} market */\n"
        "export const names = (market) => market.others?.map((one) => one.exchange);\n"
        'export const chains = async () => (await ask("/chains")).map(({ chainID }) => chainID);\n'
        'import { ask } from "/console/shared/http.js";\n'
    )
    said = await checked(tmp_path, wrong=wrong)
    assert "This expression is not callable" in said
    assert "Property 'chainID' does not exist" in said
    assert all("wrong.js" in line for line in said.splitlines() if "error" in line)
