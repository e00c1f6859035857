"""The tables of both life cycles: spec 1.11 and 2.5, and the page that shows the tables."""

from pathlib import Path
from typing import Any

import pytest
from docs.generators.lifecycle_page import PAGE, page

from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.config.errors import TransitionError
from cambist.engine.lifecycle import Lifecycle
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE, OTC_LIFECYCLE

ROOT = Path(__file__).parents[3]
_D, _O = OrderStatus, OtcState
BOTH = pytest.mark.parametrize("lifecycle", [DELTA_LIFECYCLE, OTC_LIFECYCLE], ids=lambda table: table.name)


def after(lifecycle: Lifecycle[Any, Any], state: Any) -> set[Any]:
    """States that may follow a state without a re-organisation."""
    return {to for before, to in lifecycle.steps if before is state}


def test_the_page_is_what_the_tables_say() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(), "run `make catalogue`"


@BOTH
def test_every_line_of_a_table_is_an_arrow_of_its_diagram(lifecycle: Lifecycle[Any, Any]) -> None:
    lines = lifecycle.diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    arrows = {tuple(line.split(":")[0].split(" --> ")) for line in lines[1:]}
    expected = {(f"    {before}", str(to)) for before, to in (*lifecycle.steps, *lifecycle.undone)}
    expected |= {("    [*]", str(state)) for state in lifecycle.initial}
    expected |= {(f"    {state}", "[*]") for state in lifecycle.terminal()}
    assert arrows == expected


@pytest.mark.parametrize(
    ("lifecycle", "states"), [(DELTA_LIFECYCLE, set(_D)), (OTC_LIFECYCLE, set(_O))], ids=["delta", "otc"]
)
def test_every_state_of_the_spec_can_be_reached(lifecycle: Lifecycle[Any, Any], states: set[Any]) -> None:
    reached, todo = set(lifecycle.initial), list(lifecycle.initial)
    while todo:
        fresh = after(lifecycle, todo.pop()) - reached
        reached |= fresh
        todo += fresh
    assert reached == lifecycle.states() == states


def test_delta_orders_end_where_the_spec_says() -> None:
    assert DELTA_LIFECYCLE.terminal() == {_D.COMPLETED, _D.FAILED, _D.EXPIRED, _D.CANCELLED, _D.REFUNDED}


def test_otc_orders_end_where_the_spec_says() -> None:
    assert OTC_LIFECYCLE.terminal() == {_O.FULFILLED, _O.CANCELLED, _O.EXPIRED}


def test_a_cancel_is_taken_in_the_states_that_the_spec_names_and_in_no_other() -> None:
    cancellable = {before for before, to in DELTA_LIFECYCLE.steps if to is _D.CANCELLING}
    assert cancellable == {_D.PENDING, _D.AWAITING_SIGNATURE, _D.ACTIVE, _D.SUSPENDED}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            _D.AWAITING_SIGNATURE,
            {_D.PENDING, _D.EXPIRED, _D.CANCELLING, _D.CANCELLED, _D.COMPLETED, _D.BRIDGING},
        ),
        (_D.CANCELLING, {_D.CANCELLED, _D.COMPLETED, _D.BRIDGING}),
        (_D.BRIDGING, {_D.COMPLETED, _D.REFUNDING}),
        (_D.REFUNDING, {_D.REFUNDED}),
    ],
)
def test_what_follows_is_what_choice_26_says(state: OrderStatus, expected: set[OrderStatus]) -> None:
    assert after(DELTA_LIFECYCLE, state) == expected


def test_a_live_order_has_every_way_that_choice_26_gives_it() -> None:
    assert after(DELTA_LIFECYCLE, _D.PENDING) >= {
        _D.ACTIVE, _D.SUSPENDED, _D.EXPIRED, _D.FAILED, _D.COMPLETED, _D.BRIDGING,
    }  # fmt: skip
    assert after(DELTA_LIFECYCLE, _D.ACTIVE) >= {
        _D.COMPLETED, _D.BRIDGING, _D.SUSPENDED, _D.CANCELLED, _D.EXPIRED, _D.FAILED,
    }  # fmt: skip
    assert after(DELTA_LIFECYCLE, _D.SUSPENDED) >= {_D.ACTIVE, _D.PENDING, _D.EXPIRED, _D.CANCELLING}


@pytest.mark.parametrize("state", [_O.DRAFT, _O.PENDING, _O.SUSPENDED])
def test_any_live_otc_order_can_be_filled_cancelled_and_expire(state: OtcState) -> None:
    assert after(OTC_LIFECYCLE, state) >= {_O.FULFILLED, _O.CANCELLED, _O.EXPIRED}


def test_an_otc_order_without_funds_is_kept_suspended_and_only_a_contracts_is_a_draft() -> None:
    assert OTC_LIFECYCLE.initial == {_O.PENDING, _O.SUSPENDED, _O.DRAFT}
    assert _O.DRAFT not in {to for _, to in OTC_LIFECYCLE.steps}


def test_what_a_clock_decided_gives_way_to_a_fill_that_the_chain_tells_late() -> None:
    late = {(before, to) for before, to in DELTA_LIFECYCLE.undone if before is _D.EXPIRED}
    assert late == {(_D.EXPIRED, _D.COMPLETED), (_D.EXPIRED, _D.BRIDGING)}
    late_otc = {to for before, to in OTC_LIFECYCLE.undone if before is _O.EXPIRED}
    assert late_otc == {_O.FULFILLED, _O.CANCELLED}, "a cancellation in time is told late as a fill is"


@BOTH
def test_nothing_is_undone_once_it_is_final(lifecycle: Lifecycle[Any, Any]) -> None:
    for before, to in lifecycle.undone:
        assert (before, to) not in lifecycle.steps
        lifecycle.check(before, to, is_final=False)
        with pytest.raises(TransitionError, match=f"{before} is final, it cannot go back to {to}"):
            lifecycle.check(before, to, is_final=True)


@BOTH
def test_no_order_begins_in_the_middle(lifecycle: Lifecycle[Any, Any]) -> None:
    for state in lifecycle.states():
        if state in lifecycle.initial:
            lifecycle.check_new(state)
        else:
            with pytest.raises(TransitionError, match=f"no order begins as {state}"):
                lifecycle.check_new(state)


@BOTH
@pytest.mark.parametrize("is_final", [False, True])
def test_what_the_table_does_not_have_is_refused(lifecycle: Lifecycle[Any, Any], is_final: bool) -> None:
    for before in lifecycle.states():
        lifecycle.check(before, before, is_final=is_final)
        for to in lifecycle.states() - {before}:
            known = (before, to) in lifecycle.steps or ((before, to) in lifecycle.undone and not is_final)
            if known:
                lifecycle.check(before, to, is_final=is_final)
            else:
                with pytest.raises(TransitionError):
                    lifecycle.check(before, to, is_final=is_final)
