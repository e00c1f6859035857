"""Default settings of Delta orders at a venue."""

from cambist.config.sections.venue import DeltaSettings, VenueSettings


def test_the_figures_of_the_choices() -> None:
    delta = DeltaSettings()
    assert delta.failures_max == 10, "failed settlements, after which an order is FAILED"
    assert delta.round_s == 1.0
    assert VenueSettings().route_life_s == 600.0, "an issued route is known for ten minutes"
