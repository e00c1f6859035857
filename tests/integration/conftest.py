"""Nodes that rest, for tests of chains over scripted nodes."""

import pytest

from cambist.config.timeouts import NODE_REST_S
from cambist.engine.chain.nodes import failover
from support.chain.scripted_rpc import LONG_REST_S


@pytest.fixture
def long_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that rests does so to the end of the test."""
    monkeypatch.setattr(failover, "NODE_REST_S", LONG_REST_S)


@pytest.fixture
def short_rests(long_rests: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that wait for the end of a rest."""
    monkeypatch.setattr(failover, "NODE_REST_S", NODE_REST_S)
