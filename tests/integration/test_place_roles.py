"""Roles that run in one process, from their settings files: the order in which they stop."""

from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console

from cambist.engine.dev.demo.stage import open_stage
from cambist.engine.roles.agent.app import AgentApp
from cambist.engine.roles.maker.app import MakerApp
from cambist.engine.roles.venue.app import VenueApp
from support.patience import STORY_S
from support.programs import DEVELOPMENT_CHAIN, program


async def test_nobody_stops_before_those_that_ask_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(*DEVELOPMENT_CHAIN)
    told: list[list[bool]] = []

    def watched(kind: Any) -> None:
        drain = kind.drain

        def seen(app: Any) -> None:
            asking: list[VenueApp | AgentApp | None] = [roles.venue, *roles.agents.values()]
            told.append([one is not None and one.drained for one in asking])
            drain(app)

        monkeypatch.setattr(kind, "drain", seen)

    for kind in (VenueApp, AgentApp, MakerApp):
        watched(kind)
    with trio.fail_after(STORY_S):
        async with open_stage(Console(quiet=True), tmp_path) as stage:
            roles = stage.place.roles
            agents, makers = len(roles.agents), len(roles.makers)
    assert told[0] == [False] * (1 + agents)
    assert {tuple(ended[:1]) for ended in told[1:]} == {(True,)}
    assert told[-makers:] == [[True] * (1 + agents)] * makers
