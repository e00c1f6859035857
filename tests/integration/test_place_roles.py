"""Roles that run in one process, from their settings files: the order in which they stop."""

from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.engine.dev.demo.settlement import a_stage
from cambist.engine.dev.demo.venue import a_market_place
from cambist.engine.roles.agent.app import AgentApp
from cambist.engine.roles.maker.app import MakerApp
from cambist.engine.roles.venue.app import VenueApp
from support.patience import STORY_S


async def test_nobody_stops_before_those_that_ask_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[bool]] = []

    def watched(kind: Any) -> None:
        drain = kind.drain

        def seen(app: Any) -> None:
            asking: list[VenueApp | AgentApp] = [place.venue, *place.agents.values()]
            told.append([one.drained for one in asking])
            drain(app)

        monkeypatch.setattr(kind, "drain", seen)

    for kind in (VenueApp, AgentApp, MakerApp):
        watched(kind)
    with trio.fail_after(STORY_S):
        async with a_stage(tmp_path) as stage, a_market_place(stage, tmp_path) as place:
            agents, makers = len(place.agents), len(place.makers)
    assert told[0] == [False] * (1 + agents)
    assert {tuple(ended[:1]) for ended in told[1:]} == {(True,)}
    assert told[-makers:] == [[True] * (1 + agents)] * makers
