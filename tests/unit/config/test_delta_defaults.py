"""Default settings of Delta orders at a venue."""

import pytest

from cambist.config.sections.venue import DeltaSettings, VenueAgent, VenueSettings


def test_the_figures_of_the_choices() -> None:
    delta = DeltaSettings()
    assert delta.failures_max == 10, "failed settlements, after which an order is FAILED"
    assert delta.round_s == 1.0
    assert VenueSettings().route_life_s == 600.0, "an issued route is known for ten minutes"


@pytest.mark.parametrize("name", ["0xagent", "", "a,b"])
def test_an_agents_name_is_none_that_records_use_for_other_things(name: str) -> None:
    """Records name the venue's own bids by an address; lists of names have commas."""
    with pytest.raises(ValueError, match="the name of a"):
        VenueSettings(agents={name: VenueAgent(url="http://127.0.0.1/agent")})
    assert VenueSettings(agents={"a0x": VenueAgent(url="http://127.0.0.1/agent")}).agents
