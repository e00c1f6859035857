"""Outcomes of deliveries, and the webhooks that settings define."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import DeliveryState
from cambist.config.errors import ConfigError
from cambist.config.secret import Secret
from cambist.config.sections.webhooks import WebhookSettings
from cambist.config.timeouts import WEBHOOK_AGAIN_S_MAX
from cambist.engine.store.rows import Delivery, OrderEvent
from cambist.engine.trade.events.deliveries import (
    PAUSE_MS_MAX,
    given_up,
    new_delivery,
    not_taken,
    reason_of,
    replayed,
    rest_s,
)
from cambist.engine.trade.events.open_webhooks import hooks_of
from support.events.webhook_receiver import SECRET, a_hook
from support.store.stores import ALICE, NOW_MS

TOKEN = "0" * 31 + "7"
DAY_MS = 86_400_000
EVENT = OrderEvent("delta", b"\x0a" * 32, 10, 1, ALICE, 3, "ACTIVE", NOW_MS, b"", "acme")


def a_delivery(**changed: Any) -> Delivery:
    return replace(new_delivery(a_hook(), TOKEN, EVENT, b"{}", NOW_MS + 5), **changed)


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        ({}, True),
        ({"surfaces": frozenset({"delta", "otc"})}, True),
        ({"surfaces": frozenset({"otc"})}, False),
        ({"partner": "acme"}, True),
        ({"partner": "Acme"}, False),
        ({"chains": frozenset({1, EVENT.chain_id})}, True),
        ({"chains": frozenset({99})}, False),
        ({"statuses": frozenset({"ACTIVE", "COMPLETED"})}, True),
        ({"statuses": frozenset({"COMPLETED"})}, False),
        ({"partner": "acme", "chains": frozenset({99}), "statuses": frozenset({"ACTIVE"})}, False),
    ],
)
def test_everything_that_a_hook_asks_for_has_to_be_met(wanted: dict[str, Any], *, is_wanted: bool) -> None:
    assert a_hook(**wanted).wants(EVENT) is is_wanted


def test_otc_orders_are_for_whoever_asks_for_them() -> None:
    event = replace(EVENT, surface="otc", partner="", status="PENDING")
    assert not a_hook().wants(event)
    for surfaces in ({"otc"}, {"otc", "delta"}):
        asking = frozenset(surfaces)
        assert a_hook(surfaces=asking).wants(event)
        assert not a_hook(surfaces=asking, chains=frozenset({99})).wants(event)
        assert not a_hook(surfaces=asking, statuses=frozenset({"FULFILLED"})).wants(event)
        assert a_hook(surfaces=asking, statuses=frozenset({"PENDING"})).wants(event)


def test_a_new_delivery_is_due_at_once_and_as_old_as_its_event() -> None:
    made = a_delivery()
    assert (made.webhook, made.token, made.state, made.tries) == ("acme", TOKEN, DeliveryState.WAITING, 0)
    assert (made.created_ms, made.due_ms) == (NOW_MS, NOW_MS + 5)


def test_pauses_double_up_to_an_hour_and_differ() -> None:
    for tries, usual_s in ((0, 5), (1, 10), (2, 20), (9, 2_560), (10, 3_600), (10**6, 3_600)):
        pauses = [
            not_taken(a_delivery(tries=tries), "away", 1, NOW_MS, Random(seed)).due_ms - NOW_MS
            for seed in range(50)
        ]
        assert usual_s * 500 <= min(pauses) < usual_s * 700
        assert usual_s * 1_300 < max(pauses) <= usual_s * 1_500 <= PAUSE_MS_MAX
    assert PAUSE_MS_MAX == WEBHOOK_AGAIN_S_MAX * 1_500


@pytest.mark.parametrize(("age_ms", "state"), [(DAY_MS - 1, "WAITING"), (DAY_MS, "DEAD")])
def test_it_is_given_up_by_its_age(age_ms: int, state: str) -> None:
    after = not_taken(a_delivery(tries=3), "answered 500", DAY_MS, NOW_MS + age_ms, Random(1))
    assert (after.state, after.tries, after.reason) == (DeliveryState(state), 4, "answered 500")


def test_one_that_was_not_tried_again_keeps_its_own_reason() -> None:
    assert given_up(a_delivery(tries=2, reason="mine"), "another's", NOW_MS).reason == "mine"
    never = given_up(a_delivery(), "another's", NOW_MS)
    assert (never.state, never.tries, never.reason) == (DeliveryState.DEAD, 0, "another's")


def test_a_replay_is_tried_as_long_as_a_new_one_with_the_same_id_and_body() -> None:
    dead = a_delivery(state=DeliveryState.DEAD, tries=12, reason="answered 500")
    anew = replayed(dead, NOW_MS + DAY_MS)
    assert (anew.token, anew.body) == (dead.token, dead.body)
    assert (anew.state, anew.tries, anew.reason) == (DeliveryState.WAITING, 0, "")
    assert (anew.created_ms, anew.due_ms) == (NOW_MS + DAY_MS, NOW_MS + DAY_MS)


def test_a_receiver_rests_up_to_a_minute() -> None:
    assert [rest_s(failures) for failures in (0, 1, 2, 6, 7, 10**6)] == [0, 1, 2, 32, 60, 60]


def test_reasons_are_short_and_printable() -> None:
    assert reason_of(OSError()) == "OSError"
    assert reason_of(OSError("a\x00b\ud800\n")) == "OSError: a?b??"
    assert len(reason_of(OSError("x" * 10_000))) == 300


# --- Settings -------------------------------------------------------------------------------------------


def said(**changed: Any) -> dict[str, WebhookSettings]:
    given: dict[str, Any] = {
        "url": "https://acme.example/orders?password=hush",
        "secret": Secret(SECRET, "env:HOOK"),
    }
    return {"acme": WebhookSettings(**given | changed)}


def test_settings_become_hooks_that_show_no_secret() -> None:
    settings = said(chains=(1, 10), statuses=("ACTIVE", "COMPLETED"), api_key="acme", give_up_s=1.5)
    hook = hooks_of(settings)["acme"]
    assert (hook.chains, hook.statuses) == (frozenset({1, 10}), frozenset({"ACTIVE", "COMPLETED"}))
    assert (hook.manager, hook.give_up_ms) == ("acme", 1_500)
    assert hook.surfaces == frozenset({"delta"})
    for shown in (repr(settings), repr(hook), str(hook.sign)):
        assert SECRET.removeprefix("whsec_") not in shown


def test_statuses_may_be_those_of_either_surface_that_is_asked_for() -> None:
    settings = said(surfaces=("delta", "otc"), statuses=("COMPLETED", "FULFILLED"))
    hook = hooks_of(settings)["acme"]
    assert hook.surfaces == frozenset({"delta", "otc"})
    assert hook.statuses == frozenset({"COMPLETED", "FULFILLED"})


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"statuses": ("ACTIVE", "active")}, r"venue\.webhooks\.acme\.statuses: .* got 'active'"),
        ({"statuses": ("FULFILLED",)}, r"acme\.statuses: expected statuses of delta orders, got 'FULFILLED'"),
        (
            {"surfaces": ("otc",), "statuses": ("PENDING", "COMPLETED")},
            r"acme\.statuses: expected statuses of otc orders, got 'COMPLETED'",
        ),
        (
            {"surfaces": ("delta", "otc"), "statuses": ("DONE",)},
            r"acme\.statuses: expected statuses of delta or otc orders, got 'DONE'",
        ),
        ({"secret": Secret("whsec_c2hvcnQ=", "env:A")}, r"venue\.webhooks\.acme\.secret: .* 24 to 64 bytes"),
        ({"secret": Secret("hush" * 10, "env:A")}, r"venue\.webhooks\.acme\.secret: .*whsec_"),
        ({"url": "https://xn--.example/hush"}, r"venue\.webhooks\.acme\.url: "),
    ],
)
def test_what_cannot_be_used_is_named_and_secrets_are_not_repeated(changed: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        hooks_of(said(**changed))
    for secret in ("c2hvcnQ", "hush"):
        assert secret not in str(refused.value)
