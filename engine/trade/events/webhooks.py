"""Posts order events to webhooks: the engine that holds a webhook's shard stores and posts its deliveries.

    log of events --_take_in--> delivery rows and the webhook's place, one unit --_deliver--> POST, signed
                                                        2xx: the row is deleted    failure: tried again later

Each event is delivered at least once, even across restarts: the delivery's row is written before the place
moves on, and deleted after the receiver answers 2xx. A failing receiver gets one delivery at a time, with a
cool-down that grows to a minute, until a delivery succeeds. While the store is unavailable, no POST is sent.

A receiver that takes its events more slowly than they come has a bounded number of rows: the webhook's place
then stays, and later events wait in the log, which ends by retention. No receiver can have more stored.

Source: ARCHITECTURE.md, "Push"; Standard Webhooks 1.0.0.
Choice: Any 2xx takes a delivery; redirects are not followed.
Choice: A new webhook starts with the next event. A webhook whose name the store knows starts with the events
    that it missed, as far as they are kept.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from math import inf
from random import Random

import httpx
import structlog
import trio
from msgspec import Struct
from msgspec.structs import replace

from ....codecs.messages.vocabulary import DeliveryState
from ....config.errors import StoreError
from ....config.limits import WEBHOOK_ROWS_MAX
from ....config.timeouts import STORE_PAUSE_S_MAX, WEBHOOK_LOOK_S, WEBHOOK_PLACE_S
from ....crypto.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from ...store.follower import EventFollower, latest
from ...store.leases import SHARDS, FencedOff, Leases
from ...store.queries import (
    by,
    deliveries,
    delivery_counts,
    due_deliveries,
    next_delivery,
    overdue_deliveries,
)
from ...store.rows import Delivery, OrderEvent, Webhook
from ...store.store import Store
from ...store.tables import DELIVERY, WEBHOOK
from ...store.units import (
    Change,
    Conflict,
    Done,
    Duplicate,
    Fence,
    Fenced,
    Unit,
    UnitOutcome,
    cas,
    drop,
    new,
    put,
    row_of,
)
from .deliveries import PAUSE_MS_MAX, Hook, given_up, new_delivery, not_taken, reason_of, rest_s
from .message import encode_event

_log = structlog.get_logger("cambist.webhooks")

_S_MS = 1_000
_SAID_CHARS_MAX = 300


class HookStatistics(Struct, frozen=True):
    """Counters of one webhook in this process.

    Attributes:
        is_held: whether this process, as holder of the shard's lease, delivers to the webhook.
        taken_in: events for which a delivery was stored.
        posted: POSTs sent.
        taken, failed: POSTs that the receiver answered with 2xx, and all other POSTs.
        dead: deliveries given up.
        under_way: POSTs without an answer at this moment.
        failures: number of failed POSTs since the last success.
        reason: text of the last failure; empty after a success.
    """

    is_held: bool
    taken_in: int
    posted: int
    taken: int
    failed: int
    dead: int
    under_way: int
    failures: int
    reason: str


class _WebhookState:
    """Counters and open POSTs of one webhook in this process."""

    def __init__(self) -> None:
        self.is_held = False
        self.taken_in = self.posted = self.taken = self.failed = self.dead = 0
        self.under_way: set[str] = set()
        self.failures = 0
        self.rests_until = -inf
        self.reason = ""
        self.wake = trio.Event()
        self.replaying = trio.Lock()

    def rouse(self) -> None:
        """Wake the task that posts to the webhook, because a delivery may be due."""
        self.wake.set()

    def pause_s(self, hook: Hook) -> float:
        """Return the seconds until the next POST may start, at most WEBHOOK_LOOK_S; 0 if it may start now.

        At most `posts_max` POSTs are under way, only a single POST after a failure, and none in a cool-down.
        """
        if len(self.under_way) >= (1 if self.failures else hook.posts_max):
            return WEBHOOK_LOOK_S
        return min(max(self.rests_until - trio.current_time(), 0.0), WEBHOOK_LOOK_S)

    def statistics(self) -> HookStatistics:
        return HookStatistics(
            is_held=self.is_held,
            taken_in=self.taken_in,
            posted=self.posted,
            taken=self.taken,
            failed=self.failed,
            dead=self.dead,
            under_way=len(self.under_way),
            failures=self.failures,
            reason=self.reason,
        )


def _ended(name: str, outcome: UnitOutcome) -> FencedOff:
    """Make the error that ends a webhook's tasks after the store has refused one of their writes."""
    if not isinstance(outcome, Fenced):
        _log.error("a webhook's task restarts", webhook=name, outcome=repr(outcome)[:_SAID_CHARS_MAX])
    return FencedOff()


def shard_of(name: str) -> int:
    """Return the shard, 0 to 255, of a webhook; the engine that holds the shard's lease delivers to it."""
    return hashlib.sha256(b"webhook " + name.encode()).digest()[0] % SHARDS


class Webhooks:
    """Posts order events to all webhooks of a venue; `run` is the task that posts.

    Args:
        hooks: name -> webhook.
        leases: leases of this engine's shards; must stay open as long as `run` runs.
        http: client that sends the POSTs.
        now_ms: wall clock, Unix milliseconds.
        random: source of jitter for the pauses between tries.
    """

    def __init__(
        self,
        hooks: Mapping[str, Hook],
        store: Store,
        leases: Leases,
        http: httpx.AsyncClient,
        *,
        now_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self.hooks = hooks
        self._store = store
        self._leases = leases
        self._http = http
        self._now_ms = now_ms
        self._random = random
        self._states = {name: _WebhookState() for name in hooks}

    def statistics(self) -> dict[str, HookStatistics]:
        """Return the delivery counters of each webhook by its name."""
        return {name: state.statistics() for name, state in self._states.items()}

    def replaying(self, name: str) -> trio.Lock:
        """Return the lock that a replay of a webhook's deliveries holds."""
        return self._states[name].replaying

    def rouse(self, name: str) -> None:
        """End the pause of a webhook after failed POSTs, and post its due deliveries at once."""
        self._states[name].rests_until = -inf
        self._states[name].rouse()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver events to the webhooks whose shards this engine holds by lease, until cancelled.

        A new webhook gets all events from the start of this task on.
        """
        begun = await latest(self._store)
        async with trio.open_nursery() as nursery:
            for hook in self.hooks.values():
                nursery.start_soon(self._serve, hook, self._states[hook.name], begun)
            task_status.started()

    async def _serve(self, hook: Hook, state: _WebhookState, begun: str) -> None:
        """Deliver events to one webhook while this engine holds the lease of the webhook's shard.

        Args:
            begun: resume token of the place in the event log from which a new webhook gets events.
        """
        while True:
            changed = self._leases.changed()
            fence = self._leases.fence(hook.shard)
            if fence is None:
                with trio.move_on_after(WEBHOOK_LOOK_S):
                    await changed.wait()
                continue
            state.is_held = True
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch, hook, fence, nursery.cancel_scope)
                    nursery.start_soon(self._take_in, hook, state, fence, begun)
                    nursery.start_soon(self._deliver, hook, state, fence)
            except* FencedOff:
                await trio.sleep(WEBHOOK_LOOK_S)
            finally:
                state.is_held = False

    async def _watch(self, hook: Hook, fence: Fence, scope: trio.CancelScope) -> None:
        """Cancel a webhook's tasks when this engine no longer holds the lease of the webhook's shard."""
        while self._leases.fence(hook.shard) == fence:
            changed = self._leases.changed()
            with trio.move_on_after(WEBHOOK_LOOK_S):
                await changed.wait()
        scope.cancel()

    # --- Events in --------------------------------------------------------------------------------------

    async def _take_in(self, hook: Hook, state: _WebhookState, fence: Fence, begun: str) -> None:
        """Store a delivery of each order event that the webhook wants; resume after an error of the store."""
        while True:
            try:
                await self._follow(hook, state, fence, begun)
            except StoreError as error:
                await _store_pause(hook, error)

    async def _follow(self, hook: Hook, state: _WebhookState, fence: Fence, begun: str) -> None:
        row = await self._place(hook, fence, begun)
        follower = EventFollower(self._store, row.token, page_max=WEBHOOK_ROWS_MAX)
        token, moved_at = row.token, trio.current_time()
        room = 0
        while True:
            if room < WEBHOOK_ROWS_MAX:
                room = await self._room(hook, fence)
            page: list[tuple[str, OrderEvent]] = []
            with trio.move_on_after(WEBHOOK_PLACE_S):
                page = await follower.page()
                token, _ = page[-1]
            found = [(at, event) for at, event in page if hook.wants(event)]
            is_late = token != row.token and trio.current_time() - moved_at >= WEBHOOK_PLACE_S
            if found or is_late:
                row = await self._moved(hook, row, token, found, fence)
                moved_at = trio.current_time()
                room -= len(found)
                state.taken_in += len(found)
                if found:
                    state.rouse()

    async def _room(self, hook: Hook, fence: Fence) -> int:
        """Wait until a webhook has room for a page of deliveries; return how many deliveries it may take now.

        The method also deletes the oldest dead deliveries beyond the webhook's bound.
        """
        while True:
            (counted,) = await self._store.read(delivery_counts(hook.name))
            counts = dict(counted)
            excess = counts.get(DeliveryState.DEAD.value, 0) - hook.dead_max
            while excess > 0:
                page = deliveries(hook.name, DeliveryState.DEAD.value, "", min(excess, WEBHOOK_ROWS_MAX))
                (rows,) = await self._store.read(page)
                for values in rows:  # one that a replay has just changed stays
                    await self._write(hook, drop(DELIVERY, row_of(DELIVERY, values)), fence)
                excess -= WEBHOOK_ROWS_MAX
            room: int = hook.waiting_max - counts.get(DeliveryState.WAITING.value, 0)
            if room >= WEBHOOK_ROWS_MAX:
                return min(room, hook.waiting_half)  # replays may take the other half meanwhile
            await trio.sleep(WEBHOOK_LOOK_S)

    async def _place(self, hook: Hook, fence: Fence, begun: str) -> Webhook:
        """Read the webhook's row, which has its position in the event log.

        For a new webhook, the method first stores a row with the position `begun`.
        """
        now_ms = self._now_ms()
        fresh = Webhook(hook.name, now_ms, 1, begun, now_ms)
        (rows,) = await self._store.read(by(WEBHOOK, hook.name))
        if not rows:
            outcome = await self._store.write(Unit((new(WEBHOOK, fresh),), fence))
            if isinstance(outcome, Done):
                return fresh
            if not isinstance(outcome, Duplicate):
                raise _ended(hook.name, outcome)
            rows = [outcome.row]
        kept: Webhook = row_of(WEBHOOK, rows[0])
        return kept

    async def _moved(
        self, hook: Hook, row: Webhook, token: str, found: Sequence[tuple[str, OrderEvent]], fence: Fence
    ) -> Webhook:
        """Store new deliveries and the webhook's new position in the event log in one transaction.

        Args:
            row: the webhook's row before the move.
            token: resume token of the new position.
            found: events to deliver, each with its resume token.

        Returns:
            The webhook's row after the move.
        """
        now_ms = self._now_ms()
        after = replace(row, token=token, updated_ms=now_ms)
        changes: list[Change] = [cas(WEBHOOK, after)]
        for at, event in found:
            changes.append(put(DELIVERY, new_delivery(hook, at, event, encode_event(at, event), now_ms)))
        outcome = await self._store.write(Unit(tuple(changes), fence))
        if not isinstance(outcome, Done):
            raise _ended(hook.name, outcome)
        return replace(after, version=row.version + 1)

    # --- Deliveries out ---------------------------------------------------------------------------------

    async def _deliver(self, hook: Hook, state: _WebhookState, fence: Fence) -> None:
        """Post the due deliveries of a webhook until cancelled."""
        state.under_way.clear()
        async with trio.open_nursery() as nursery:
            while True:
                state.wake = trio.Event()
                try:
                    wait_s = await self._start(hook, state, fence, nursery)
                except StoreError as error:
                    await _store_pause(hook, error)
                    continue
                with trio.move_on_after(wait_s):
                    await state.wake.wait()

    async def _start(self, hook: Hook, state: _WebhookState, fence: Fence, nursery: trio.Nursery) -> float:
        """Start the POSTs to a webhook that are due; return the seconds until the next may be due."""
        if wait_s := state.pause_s(hook):
            return wait_s
        now_ms, count = self._now_ms(), hook.posts_max  # rows under way are found as due, too
        skipped = frozenset(state.under_way)  # the read may return a row that is dropped meanwhile
        rows, following = await self._store.read(
            due_deliveries(hook.name, now_ms, count), next_delivery(hook.name)
        )
        next_ms = following[0][0] if following else now_ms
        if not rows and next_ms - now_ms > PAUSE_MS_MAX:  # set by a clock that was ahead
            (rows,) = await self._store.read(due_deliveries(hook.name, next_ms, count))
        for values in rows:
            delivery: Delivery = row_of(DELIVERY, values)
            # Judged anew: POSTs that have failed during the read have begun a cool-down.
            if delivery.token not in skipped and not state.pause_s(hook):
                state.under_way.add(delivery.token)
                nursery.start_soon(self._post, hook, state, delivery, fence)
        if wait_s := state.pause_s(hook):
            return wait_s
        # `following` may be the row of a POST under way, which is due already: its time would make `_deliver`
        # look again without a pause. The end of each POST wakes `_deliver` (`rouse`).
        if not following or state.under_way:
            return WEBHOOK_LOOK_S
        return min(max(next_ms - now_ms, 0) / _S_MS, WEBHOOK_LOOK_S)

    async def _post(self, hook: Hook, state: _WebhookState, delivery: Delivery, fence: Fence) -> None:
        """Post a delivery once, and store the outcome: delete the row after 2xx, else store the failure."""
        try:
            state.posted += 1
            reason = await self._tried(hook, delivery)
            state.reason = reason
            if reason:
                state.failed += 1
                state.failures += 1
                state.rests_until = trio.current_time() + rest_s(state.failures)
                await self._keep_failed(hook, state, delivery, reason, fence)
            else:
                state.taken += 1
                state.failures = 0
                await self._write(hook, drop(DELIVERY, delivery), fence)
        except StoreError as error:
            await _store_pause(hook, error)
        finally:
            state.under_way.discard(delivery.token)
            state.rouse()

    async def _tried(self, hook: Hook, delivery: Delivery) -> str:
        """Post a delivery once; return the failure as text, empty if the receiver answered 2xx."""
        now_s = self._now_ms() // _S_MS
        headers = {
            "content-type": "application/json",
            ID_HEADER: delivery.token,
            TIMESTAMP_HEADER: str(now_s),
            SIGNATURE_HEADER: hook.sign(delivery.token, now_s, delivery.body),
        }
        try:
            answer = await self._http.post(
                hook.url, content=delivery.body, headers=headers, timeout=hook.post_s
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return reason_of(error)
        return "" if answer.is_success else f"answered {answer.status_code}"

    async def _keep_failed(
        self, hook: Hook, state: _WebhookState, delivery: Delivery, reason: str, fence: Fence
    ) -> None:
        """Store a failed POST; mark as DEAD all further deliveries that are too old to be posted again."""
        now_ms = self._now_ms()
        after = not_taken(delivery, reason, hook.give_up_ms, now_ms, self._random)
        is_kept = await self._write(hook, cas(DELIVERY, after), fence)
        if is_kept and after.state is DeliveryState.DEAD:
            self._tell_dead(hook, state, 1, reason)
        overdue = overdue_deliveries(hook.name, now_ms - hook.give_up_ms, WEBHOOK_ROWS_MAX)
        is_full = True
        while is_full:
            (rows,) = await self._store.read(overdue)
            is_full = len(rows) == WEBHOOK_ROWS_MAX
            count = 0
            for values in rows:
                old: Delivery = row_of(DELIVERY, values)
                if old.token not in state.under_way:
                    count += await self._write(hook, cas(DELIVERY, given_up(old, reason, now_ms)), fence)
            if count:
                self._tell_dead(hook, state, count, reason)

    def _tell_dead(self, hook: Hook, state: _WebhookState, count: int, reason: str) -> None:
        state.dead += count
        _log.error("deliveries are given up", webhook=hook.name, count=count, reason=reason)

    async def _write(self, hook: Hook, change: Change, fence: Fence) -> bool:
        """Change a delivery's row; return False, without a change, if a replay changed the row first."""
        outcome = await self._store.write(Unit((change,), fence))
        if isinstance(outcome, Conflict):
            return False
        if not isinstance(outcome, Done):
            raise _ended(hook.name, outcome)
        return True


async def _store_pause(hook: Hook, error: StoreError) -> None:
    _log.warning("a webhook waits for the store", webhook=hook.name, detail=error.detail)
    await trio.sleep(STORE_PAUSE_S_MAX)
