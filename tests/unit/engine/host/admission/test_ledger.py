"""The ledger of what callers cost: all accounts or none, what is held, what fades, what is given back."""

from cambist.config.sections.venue import Rate
from cambist.engine.host.admission.ledger import Budget, Charge, Hold, Lack, Ledger

NOW_MS = 1_700_000_000_000
HELD = Budget(name="places", unit="places", most=2)
FADING = Budget(name="gas", unit="units", most=100, refill_s=50)


def taken(ledger: Ledger, *charges: Charge, now_ms: int = NOW_MS) -> Hold:
    found = ledger.take(charges, now_ms)
    assert isinstance(found, Hold), found
    return found


def refused(ledger: Ledger, *charges: Charge, now_ms: int = NOW_MS) -> Lack:
    found = ledger.take(charges, now_ms)
    assert isinstance(found, Lack)
    return found


def test_an_account_holds_up_to_its_bound_until_it_is_freed() -> None:
    ledger = Ledger()
    first = taken(ledger, Charge(HELD, "a"))
    taken(ledger, Charge(HELD, "a"))
    assert refused(ledger, Charge(HELD, "a")) == Lack(Charge(HELD, "a"), 0)
    taken(ledger, Charge(HELD, "b"))
    ledger.free(first)
    ledger.free(first)
    assert ledger.held(HELD, "a") == 1
    taken(ledger, Charge(HELD, "a"))


def test_nobody_is_charged_if_one_lacks_room() -> None:
    ledger = Ledger()
    taken(ledger, Charge(HELD, "everybody", 2))
    lack = refused(ledger, Charge(HELD, "a"), Charge(FADING, "a", 100), Charge(HELD, "everybody"))
    assert lack.charge.account == "everybody"
    assert ledger.held(HELD, "a") == 0
    taken(ledger, Charge(HELD, "a", 2), Charge(FADING, "a", 100))


def test_what_is_used_fades_and_is_not_freed() -> None:
    ledger = Ledger()
    hold = taken(ledger, Charge(FADING, "a", 100))
    ledger.free(hold)
    assert refused(ledger, Charge(FADING, "a", 10)).wait_s == 5
    assert refused(ledger, Charge(FADING, "a", 10), now_ms=NOW_MS + 4_999).wait_s == 1
    taken(ledger, Charge(FADING, "a", 10), now_ms=NOW_MS + 5_000)


def test_what_was_not_caused_is_given_back_whole() -> None:
    ledger = Ledger()
    hold = taken(ledger, Charge(FADING, "a", 100), Charge(HELD, "a", 2))
    ledger.undo(hold)
    ledger.undo(hold)
    taken(ledger, Charge(FADING, "a", 100), Charge(HELD, "a", 2))
    refused(ledger, Charge(FADING, "a"))


def test_what_is_free_may_still_be_undone_and_each_end_counts_once() -> None:
    ledger = Ledger()
    hold = taken(ledger, Charge(FADING, "a", 100), Charge(HELD, "a"))
    ledger.free(hold)
    refused(ledger, Charge(FADING, "a"))
    ledger.undo(hold)
    assert ledger.held(HELD, "a") == 0
    taken(ledger, Charge(FADING, "a", 100), Charge(HELD, "a"))
    ledger.undo(hold)
    refused(ledger, Charge(FADING, "a"))
    assert ledger.held(HELD, "a") == 1


def test_a_rated_budget_is_one_wherever_it_is_asked_for() -> None:
    ledger, rate = Ledger(accounts_max=1), Rate(per_s=1, burst=2)
    assert ledger.rated("requests", rate).take("a", 2, NOW_MS).wait_s == 0
    assert ledger.rated("requests", rate).take("a", 1, NOW_MS).wait_s == 1
    assert ledger.rated("signatures", rate).take("a", 2, NOW_MS).wait_s == 0
    assert ledger.rated("requests", rate).take("b", 1, NOW_MS).wait_s == 1  # no second account has room


def test_more_than_a_whole_budget_never_fits() -> None:
    assert refused(Ledger(), Charge(FADING, "a", 101)).wait_s == 0
    assert refused(Ledger(), Charge(HELD, "a", 3)).wait_s == 0


def test_a_charge_may_name_another_bound() -> None:
    ledger = Ledger()
    taken(ledger, Charge(HELD, "a", 5, most=5))
    assert refused(ledger, Charge(HELD, "a", 1, most=5)).charge.bound == 5


def test_accounts_that_fade_are_bounded_in_number() -> None:
    ledger = Ledger(accounts_max=2)
    taken(ledger, Charge(FADING, "a", 100))
    taken(ledger, Charge(FADING, "b", 100))
    assert refused(ledger, Charge(FADING, "c", 1)).wait_s == 1
    taken(ledger, Charge(FADING, "c", 1), now_ms=NOW_MS + 50_000)
