"""Webhooks: every event that a hook wants reaches its receiver, signed, whatever fails in between."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.messages.vocabulary import DeliveryState, OrderStatus, OtcState
from cambist.config.errors import StoreError, StoreUnavailable
from cambist.config.limits import WEBHOOK_ROWS_MAX
from cambist.engine.store.follower import START, token_of
from cambist.engine.store.queries import Query, by, deliveries, delivery_counts, last_event
from cambist.engine.store.rows import Delivery, DeltaOrderRow, OrderEvent, Webhook, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELIVERY, WEBHOOK
from cambist.engine.store.units import Done, Unit, UnitOutcome, cas, new, put, row_of
from cambist.engine.trade.events.deliveries import new_delivery, replayed
from cambist.engine.trade.events.webhooks import Webhooks, shard_of
from support.events.webhook_receiver import Receiver, a_hook, now_ms, posting
from support.patience import until_told
from support.store.stores import ALICE, NOW_MS, Engine, a_delta_order, an_otc_order, kept, moved

_S = OrderStatus


Quick = tuple[Store, Receiver]


@pytest.fixture
async def quick(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[Quick]:
    """A store in this process, and a receiver, on a clock that jumps."""
    engine = Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)
    async with engine.open() as store, trio.open_nursery() as nursery:
        yield store, Receiver(nursery)
        nursery.cancel_scope.cancel()


async def settle(seconds: float = 1.0) -> None:
    """Let what is going on come to its end."""
    await trio.sleep(seconds)


async def lives(store: Store, number: int, **changed: Any) -> DeltaOrderRow:
    """An order that is taken in, gets active and is cancelled: three events."""
    order = await kept(store, a_delta_order(number, **changed))
    order = await moved(store, order, status=_S.ACTIVE)
    return await moved(store, order, status=_S.CANCELLED)


async def replay(store: Store, dead: Delivery) -> None:
    assert isinstance(await store.write(Unit((cas(DELIVERY, replayed(dead, now_ms())),))), Done)


async def kept_deliveries(store: Store, state: DeliveryState, name: str = "acme") -> list[Delivery]:
    (rows,) = await store.read(deliveries(name, state.value, "", 1_000))
    return [row_of(DELIVERY, values) for values in rows]


# --- On every engine ------------------------------------------------------------------------------------


async def test_every_event_is_posted_signed_and_in_the_order_of_its_order(store: Store) -> None:
    async def is_done() -> bool:
        return len(receiver.taken) >= 15 and not await kept_deliveries(store, DeliveryState.WAITING)

    async with trio.open_nursery() as nursery:
        receiver = Receiver(nursery)
        async with posting(store, receiver, a_hook()):
            for number in range(1, 6):
                await lives(store, number)
            await until_told(is_done)
        nursery.cancel_scope.cancel()
    by_order: dict[str, list[int]] = {}
    for token, event in receiver.taken:
        assert event["token"] == token
        by_order.setdefault(event["orderHash"], []).append(event["version"])
    assert list(by_order.values()) == [[1, 2, 3]] * 5


async def test_a_dead_delivery_is_replayed_on_every_engine(store: Store) -> None:
    async def is_dead() -> bool:
        return bool(await kept_deliveries(store, DeliveryState.DEAD))

    async def is_taken() -> bool:
        return receiver.versions() == [1]

    async with trio.open_nursery() as nursery:
        receiver = Receiver(nursery)
        receiver.status = 500
        async with posting(store, receiver, a_hook(give_up_ms=0)) as webhooks:
            await kept(store, a_delta_order(1))
            await until_told(is_dead)
            (dead,) = await kept_deliveries(store, DeliveryState.DEAD)
            assert dead.reason == "answered 500"
            receiver.status = 200
            await replay(store, dead)
            webhooks.rouse("acme")
            await until_told(is_taken)
        nursery.cancel_scope.cancel()


# --- What is told ---------------------------------------------------------------------------------------


async def test_a_hook_is_told_of_what_it_wants_alone(quick: Quick, autojump_clock: MockClock) -> None:
    store, receiver = quick
    hook = a_hook(partner="acme", chains=frozenset({1, 10}), statuses=frozenset({"ACTIVE"}))
    async with posting(store, receiver, hook):
        await settle()
        await lives(store, 1, partner="acme")
        await lives(store, 2, partner="other")
        await lives(store, 3, partner="acme", chain_id=137)
        await lives(store, 4, partner="acme", chain_id=10)
        await settle()
    told = {(event["chainId"], event["status"]) for _, event in receiver.taken}
    assert told == {(1, "ACTIVE"), (10, "ACTIVE")}
    assert len(receiver.taken) == 2


async def test_otc_orders_are_told_to_whoever_asks_for_them(quick: Quick, autojump_clock: MockClock) -> None:
    """A receiver that was written for Delta orders is not sent other shapes."""
    store, receiver = quick
    asking = a_hook(
        "both", surfaces=frozenset({"otc", "delta"}), statuses=frozenset({"SUSPENDED", "CANCELLED"})
    )
    async with posting(store, receiver, a_hook(), asking) as webhooks:
        await settle()
        order = await kept(store, an_otc_order(1))
        await lives(store, 2)
        await moved(store, order, status=OtcState.SUSPENDED, swappable=amount32(0))
        await settle()
        assert webhooks.statistics()["acme"].taken == 3
        assert webhooks.statistics()["both"].taken == 2
    told = [(event["surface"], event["status"]) for _, event in receiver.taken]
    assert sorted(told) == sorted(
        [
            *[("delta", status) for status in ("PENDING", "ACTIVE", "CANCELLED")],
            *[("delta", "CANCELLED"), ("otc", "SUSPENDED")],
        ]
    )
    (suspended,) = [event for _, event in receiver.taken if event["surface"] == "otc"]
    assert (suspended["fillableBalance"], suspended["swappableBalance"]) == (str(10**18), "0")


async def test_a_new_hook_is_told_of_what_comes(
    quick: Quick, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task has its first turn after the event."""
    store, receiver = quick
    order = await kept(store, a_delta_order(1))
    place = Webhooks._place

    async def comes_late(*arguments: Any) -> Any:
        await trio.sleep(0.5)
        return await place(*arguments)

    monkeypatch.setattr(Webhooks, "_place", comes_late)
    async with posting(store, receiver, a_hook()):
        await moved(store, order, status=_S.ACTIVE)
        await settle()
    assert receiver.versions() == [2]


async def test_what_happens_while_nobody_delivers_is_delivered_afterwards(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook()):
        await settle()
    await lives(store, 1)
    assert receiver.taken == []
    async with posting(store, receiver, a_hook(), holder="two"):
        await settle(20)
    assert receiver.versions() == [1, 2, 3]


async def test_the_place_moves_on_over_what_is_not_wanted(quick: Quick, autojump_clock: MockClock) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook(partner="nobody")):
        await settle()
        await lives(store, 1)
        await settle(10)
        (rows,) = await store.read(by(WEBHOOK, "acme"))
    row: Webhook = row_of(WEBHOOK, rows[0])
    assert row.token != START
    assert receiver.taken == []


# --- What fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["status", "away", "hangs"])
async def test_what_is_not_taken_is_tried_again_until_it_is(
    fault: str, quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook()) as webhooks:
        await settle()
        receiver.status = 503 if fault == "status" else 204
        receiver.is_away, receiver.hangs = fault == "away", fault == "hangs"
        await lives(store, 1)
        await settle(60)
        told = webhooks.statistics()["acme"]
        assert told.failures > 1
        assert receiver.taken == []
        assert {"status": "503", "away": "Connect", "hangs": "Timeout"}[fault] in told.reason
        receiver.status, receiver.is_away, receiver.hangs = 204, False, False
        await settle(300)
        assert webhooks.statistics()["acme"].reason == ""
    assert receiver.versions() == [1, 2, 3]
    assert await kept_deliveries(store, DeliveryState.WAITING) == []


async def test_a_receiver_that_fails_is_asked_one_at_a_time_and_ever_less_often(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook()) as webhooks:
        await settle()
        receiver.status = 500
        for number in range(1, 41):
            await kept(store, a_delta_order(number))
        await settle(900)
        asked, receiver.at_once = sum(receiver.seen.values()), 0
        await settle(600)
        assert receiver.at_once == 1
        assert sum(receiver.seen.values()) - asked <= 11
        receiver.status = 200
        await settle(4_000)
        assert webhooks.statistics()["acme"].failures == 0
    assert sorted(receiver.versions()) == [1] * 40


async def test_a_receiver_that_is_well_is_asked_several_at_a_time(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook(posts_max=4)):
        await settle()
        for number in range(1, 41):
            await kept(store, a_delta_order(number))
        await settle(5)
    assert receiver.at_once == 4
    assert receiver.versions() == [1] * 40


async def test_what_is_too_old_is_dead_and_what_comes_after_is_not(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook(give_up_ms=600_000)) as webhooks:
        await settle()
        receiver.status = 410
        for number in range(1, 4):
            await kept(store, a_delta_order(number))
        await settle(900)
        dead = await kept_deliveries(store, DeliveryState.DEAD)
        assert [(one.reason, one.tries > 0) for one in dead] == [("answered 410", True)] * 3
        assert webhooks.statistics()["acme"].dead == 3
        receiver.status = 200
        late = await kept(store, a_delta_order(4, updated_ms=now_ms(), created_ms=now_ms()))
        await settle(120)
        assert [event["orderHash"] for _, event in receiver.taken] == [f"0x{late.order_hash.hex()}"]
        for one in dead:
            await replay(store, one)
        webhooks.rouse("acme")
        await settle(120)
    assert len(receiver.taken) == 4
    assert await kept_deliveries(store, DeliveryState.DEAD) == []


async def test_one_receiver_that_hangs_does_not_hold_up_another(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    receiver.hanging_hosts.add("slow.example")
    async with posting(store, receiver, a_hook("slow"), a_hook("quick")):
        await settle()
        await lives(store, 1)
        await settle()
    assert receiver.versions() == [1, 2, 3]


async def test_a_receiver_that_answers_slowly_on_purpose_takes_no_more_than_its_place(
    quick: Quick, autojump_clock: MockClock
) -> None:
    """It accepts each delivery just in time, and so never fails: its rows wait, and never get too old."""
    store, receiver = quick
    receiver.slow_hosts["slow.example"] = 9.9
    slow = a_hook("slow", posts_max=1, waiting_max=200)
    async with posting(store, receiver, slow, a_hook("quick")) as webhooks:
        await settle()
        for number in range(1, 601):
            await kept(store, a_delta_order(number))
        await settle(30)
        assert webhooks.statistics()["quick"].taken == 600, "others are not held up"
        assert len(await kept_deliveries(store, DeliveryState.WAITING, "slow")) <= 200
        receiver.slow_hosts.clear()
        await settle(60)
        assert webhooks.statistics()["slow"].taken == 600, "what had no place waited in the log"
    assert await kept_deliveries(store, DeliveryState.WAITING, "slow") == []


async def test_replays_and_new_events_together_have_no_more_than_the_bound(
    quick: Quick, autojump_clock: MockClock
) -> None:
    """Half of it is replayed after the venue has counted what waits, and before events come."""
    store, receiver = quick
    receiver.status, receiver.slow_hosts["acme.example"] = 500, 9.9
    hook = a_hook(waiting_max=1_000, posts_max=1)
    async with posting(store, receiver, hook):
        await settle()
        await kept(store, a_delta_order(1_000))
        await settle()
        event = OrderEvent("delta", bytes(32), 0, 1, ALICE, 1, "ACTIVE", NOW_MS, b"", "")
        old = [
            new_delivery(hook, token_of(1, number), event, b"{}", now_ms())
            for number in range(hook.waiting_half)
        ]
        for at in range(0, len(old), 100):
            assert await store.write(Unit(tuple(put(DELIVERY, one) for one in old[at : at + 100]))) == Done()
        for number in range(1, 1_000):
            await kept(store, a_delta_order(number))
        await settle(30)
        waiting = dict((await store.read(delivery_counts(hook.name)))[0])[DeliveryState.WAITING.value]
    assert hook.waiting_max - WEBHOOK_ROWS_MAX <= waiting <= hook.waiting_max


async def test_of_what_a_receiver_never_takes_the_oldest_goes_first(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    receiver.status = 500
    hook = a_hook(give_up_ms=0, waiting_max=200, dead_max=150)
    async with posting(store, receiver, hook):
        await settle()
        for number in range(1, 601):
            await kept(store, a_delta_order(number))
        await settle(600)
        dead = await kept_deliveries(store, DeliveryState.DEAD)
        newest = await store.read(last_event())
    assert len(dead) <= 150 + 200
    assert dead[-1].token == token_of(*newest[0][0])
    assert dead[0].token > token_of(0, 200)


# --- The store, and the clock ---------------------------------------------------------------------------


class Failing:
    """A store that is away, or refuses, as long as a test wants it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.error: StoreError | None = None
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, *queries: Query) -> Any:
        if self.error is not None:
            raise self.error
        return await self._store.read(*queries)

    async def write(self, unit: Unit) -> UnitOutcome:
        self.writes += 1
        if self.error is not None:
            raise self.error
        return await self._store.write(unit)


@pytest.mark.parametrize("error", [StoreUnavailable("it is away"), StoreError("it is damaged")])
async def test_a_store_that_is_away_holds_up_deliveries_and_loses_none(
    error: StoreError, quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    failing = Failing(store)
    async with posting(cast("Store", failing), receiver, a_hook()) as webhooks:
        await settle()
        receiver.status = 503
        await lives(store, 1)
        await settle(5)
        failing.error = error
        await lives(store, 2)
        receiver.status = 204
        await settle(120)
        assert sum(receiver.seen.values()) <= 10
        failing.error = None
        await settle(120)
        assert webhooks.statistics()["acme"].failures == 0
    assert sorted(set(receiver.seen)) == sorted({token for token, _ in receiver.taken})
    by_order: dict[str, list[int]] = {}
    for _, event in receiver.taken:
        by_order.setdefault(event["orderHash"], []).append(event["version"])
    assert [list(dict.fromkeys(versions)) for versions in by_order.values()] == [[1, 2, 3]] * 2
    assert await kept_deliveries(store, DeliveryState.WAITING) == []


class Slow(Failing):
    """A store whose answers to reads are on their way for a while."""

    async def read(self, *queries: Query) -> Any:
        found = await super().read(*queries)
        await trio.sleep(0.03)
        return found


async def test_no_post_starts_in_a_rest_that_began_during_a_read(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(cast("Store", Slow(store)), receiver, a_hook()):
        await settle()
        receiver.status = 500
        for number in range(1, 21):
            await kept(store, a_delta_order(number))
            await trio.sleep(0.01)
        await settle(5)
    failed_at = receiver.times[0] + 0.01
    assert min(at for at in receiver.times if at > failed_at + 0.001) >= failed_at + 1


async def test_the_place_is_kept_however_much_comes_that_is_not_wanted(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    counting = Failing(store)
    async with posting(cast("Store", counting), receiver, a_hook(partner="nobody")):
        await settle()
        before = counting.writes
        for number in range(60):
            await kept(store, a_delta_order(number))
            await settle(0.5)
        (rows,) = await store.read(by(WEBHOOK, "acme"))
        ((event,),) = await store.read(last_event())
    row: Webhook = row_of(WEBHOOK, rows[0])
    lag = int(row.token[16:], 16)
    assert event[1] - lag <= 15
    assert 4 <= counting.writes - before <= 8


async def test_what_was_put_off_by_a_clock_that_was_ahead_is_delivered(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    ahead_ms = 30 * 86_400_000
    late = new_delivery(
        a_hook(),
        f"{7:032x}",
        OrderEvent("delta", b"\x0a" * 32, 10, 1, ALICE, 1, "PENDING", NOW_MS, b"", ""),
        b'{"version":1}',
        now_ms() + ahead_ms,
    )
    assert isinstance(await store.write(Unit((put(DELIVERY, late),))), Done)
    async with posting(store, receiver, a_hook()):
        await settle(20)
    assert receiver.versions() == [1]


async def test_one_that_is_given_up_untried_says_why_and_how_often_it_was_tried(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook(give_up_ms=60_000)):
        await settle()
        receiver.status = 500
        await lives(store, 1)
        await settle(300)
        first, *others = await kept_deliveries(store, DeliveryState.DEAD)
    assert first.tries > 0
    assert [one.reason for one in (first, *others)] == ["answered 500"] * 3
    assert sum(receiver.seen.values()) == sum(one.tries for one in (first, *others))


async def test_an_engine_without_webhooks_has_nothing_to_do(quick: Quick, autojump_clock: MockClock) -> None:
    store, receiver = quick
    async with posting(store, receiver) as webhooks:
        await lives(store, 1)
        await settle(30)
        assert webhooks.statistics() == {}
    assert receiver.seen == {}


async def test_one_that_was_out_of_the_settings_is_told_of_what_happened_meanwhile(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with posting(store, receiver, a_hook()):
        await settle()
    async with posting(store, receiver, a_hook("other")):
        await settle(20)
        await lives(store, 1)
        await settle(20)
    assert receiver.versions() == [1, 2, 3]
    async with posting(store, receiver, a_hook()):
        await settle(20)
    assert receiver.versions() == [1, 2, 3] * 2


# --- Who delivers ---------------------------------------------------------------------------------------


async def test_of_two_engines_one_delivers_and_the_other_takes_over(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    async with (
        posting(store, receiver, a_hook(), holder="one") as first,
        posting(store, receiver, a_hook(), holder="two") as second,
    ):
        await settle(1)
        assert first.statistics()["acme"].is_held
        assert not second.statistics()["acme"].is_held
        await lives(store, 1)
        await settle(1)
        assert receiver.versions() == [1, 2, 3]
    async with posting(store, receiver, a_hook(), holder="two") as second:
        await settle(20)
        assert second.statistics()["acme"].is_held
        await lives(store, 2)
        await settle(1)
    assert receiver.versions() == [1, 2, 3] * 2


async def test_nothing_is_written_under_a_lease_that_was_lost(
    quick: Quick, autojump_clock: MockClock
) -> None:
    store, receiver = quick
    receiver.hangs = True
    async with posting(store, receiver, a_hook(), holder="one"):
        await settle()
        await lives(store, 1)
        await settle(2)
        await store.lease("two", 256, now_ms() + 60_000, 3_600_000)  # as if this one had stood still
        receiver.hangs = False
        await settle(30)
    waiting = await kept_deliveries(store, DeliveryState.WAITING)
    assert len(waiting) == 3
    assert [one.tries for one in waiting] == [0, 0, 0]


def test_the_shard_of_a_name_stays_the_same() -> None:
    assert [shard_of(name) for name in ("acme", "other")] == [shard_of("acme"), shard_of("other")]
    assert len({shard_of(f"hook {number}") for number in range(64)}) > 32


async def test_a_place_that_is_kept_already_is_gone_on_from(quick: Quick, autojump_clock: MockClock) -> None:
    store, receiver = quick
    await lives(store, 1)
    assert isinstance(
        await store.write(Unit((new(WEBHOOK, Webhook("acme", NOW_MS, 1, START, NOW_MS)),))), Done
    )
    async with posting(store, receiver, a_hook()):
        await settle(2)
    assert receiver.versions() == [1, 2, 3]


async def test_however_much_is_too_old_is_given_up_at_once(quick: Quick, autojump_clock: MockClock) -> None:
    store, receiver = quick
    old = [
        new_delivery(
            a_hook(),
            f"{number:032x}",
            OrderEvent("delta", number.to_bytes(32, "big"), 0, 1, ALICE, 1, "PENDING", NOW_MS, b"", ""),
            b'{"version":1}',
            NOW_MS,
        )
        for number in range(1, 251)
    ]
    assert isinstance(await store.write(Unit(tuple(put(DELIVERY, one) for one in old))), Done)
    receiver.status = 500
    await settle(120)
    async with posting(store, receiver, a_hook(give_up_ms=60_000)) as webhooks:
        await settle(20)
        assert webhooks.statistics()["acme"].dead == 250
    dead = await kept_deliveries(store, DeliveryState.DEAD)
    assert len(dead) == 250
    assert sum(one.tries for one in dead) == sum(receiver.seen.values())
