"""An order's events reach its partner's own server, signed; also over a restart, and after it was away."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import Struct

from cambist.config import timeouts
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.events import deliveries
from support.chain.world import USDC, World, person
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.events.webhook_socket import SECRET, WebhookSocket, a_webhook_socket
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

API_KEY = "a-key-of-an-integrator"
_MORE = """
[partners.acme]
address = "{partner}"
fee_bps = 0
[venue.api_keys.acme]
secret = "file:api-key"
[venue.webhooks.acme]
url = "{url}"
private_addresses = true
secret = "file:hook-secret"
partner = "acme"
chains = [31337]
api_key = "acme"
give_up_s = {give_up_s}
"""
PARTNER = to_checksum(person(51).address)


@pytest.fixture
def receiver() -> Iterator[WebhookSocket]:
    with a_webhook_socket() as opened:
        yield opened


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries that retry a tenth of a second after a failure."""
    monkeypatch.setattr(deliveries, "WEBHOOK_AGAIN_S", 0.1)
    monkeypatch.setattr(deliveries, "rest_s", lambda failures: 0.1 if failures else 0.0)
    monkeypatch.setattr(
        "cambist.engine.trade.events.webhooks.rest_s", lambda failures: 0.1 if failures else 0.0
    )


def told_to(receiver: WebhookSocket, folder: Path, give_up_s: float = timeouts.WEBHOOK_GIVE_UP_S) -> str:
    """The settings of a webhook; its secrets are files."""
    (folder / "api-key").write_text(API_KEY)
    (folder / "hook-secret").write_text(SECRET)
    return _MORE.format(partner=PARTNER, url=receiver.url, give_up_s=give_up_s)


async def settled(story: DeltaStory, nonce: int, partner: str = "acme") -> Any:
    """An order that was settled."""
    story.agents["ann"].gives = lambda _: 2_500 * USDC
    paid = int(PARTNER, 16) << 96 if partner == "acme" else 0
    order = await story.world.a_delta_order(nonce=nonce, partner_and_fee=paid)
    record = await story.submitted(order, partner=partner)
    return await story.becomes(record, "COMPLETED")


async def is_told(receiver: WebhookSocket, record: Any) -> None:
    """Wait until the whole life of an order is."""
    await until(lambda: "COMPLETED" in receiver.statuses(record["orderHash"]))
    assert receiver.statuses(record["orderHash"])[0] == "PENDING"


class Done(Struct, frozen=True):
    """Exit code and output of a command."""

    exit_code: int
    stdout: str
    stderr: str


async def webhooks(story: DeltaStory, folder: Path, *arguments: str) -> Done:
    """`cambist webhooks`, as a process of its own: the logs of the test's process stay out of its output."""
    places = ["--venue", story.web.url, "--api-key", f"file:{folder / 'api-key'}"]
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(
            [sys.executable, "-m", "cambist", "webhooks", *arguments, *places],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_an_orders_events_reach_its_partner(
    world: World, tmp_path: Path, receiver: WebhookSocket
) -> None:
    async with a_delta_story(world, tmp_path, "ann", more=told_to(receiver, tmp_path)) as story:
        await settled(story, 1, partner="anon")
        record = await settled(story, 2)
        await is_told(receiver, record)
        events = [one.event for one in receiver.taken]
        assert {event["orderHash"] for event in events} == {record["orderHash"]}
        assert [event["version"] for event in events] == list(range(1, len(events) + 1))
        assert [one.id for one in receiver.taken] == [event["token"] for event in events]
        last = next(event for event in events if event["status"] == "COMPLETED")
        assert (last["id"], last["partner"], last["chainId"]) == (record["id"], "acme", 31337)
        assert last["receivedAmount"] == str(2_500 * USDC)
        done = await webhooks(story, tmp_path, "list", "--json")
    (entry,) = (json.loads(line) for line in done.stdout.splitlines())
    assert (entry["name"], entry["waiting"], entry["dead"], entry["failures"]) == ("acme", 0, 0, 0)
    assert entry["place"] == receiver.taken[-1].id
    assert receiver.forged == []


async def test_what_was_not_taken_before_a_restart_is_delivered_after_it(
    world: World, tmp_path: Path, receiver: WebhookSocket, impatient: None
) -> None:
    more = told_to(receiver, tmp_path)
    async with a_delta_story(world, tmp_path, "ann", more=more) as story:
        receiver.status = 503
        first = await settled(story, 1)
        await until(lambda: receiver.asked > 0)
        assert receiver.taken == []
        market = story.market
    receiver.status = 200
    async with a_delta_story(world, tmp_path, "ann", more=more, market=market) as story:
        await is_told(receiver, first)
        second = await settled(story, 2)
        await is_told(receiver, second)
    versions = [one.event["version"] for one in receiver.taken if one.event["id"] == first["id"]]
    assert list(dict.fromkeys(versions)) == list(range(1, max(versions) + 1))
    assert receiver.forged == []


async def test_what_was_given_up_is_listed_and_replayed_by_the_command(
    world: World, tmp_path: Path, receiver: WebhookSocket, impatient: None
) -> None:
    async def counts() -> tuple[int, int]:
        answer = await story.web.ask("GET", "/v2/webhooks", headers={"x-api-key": API_KEY})
        (entry,) = json.loads(answer.body)["webhooks"]
        return entry["waiting"], entry["dead"]

    async def all_dead() -> None:
        with trio.fail_after(PATIENCE_S):
            while (standing := await counts())[0] or not standing[1]:  # noqa: ASYNC110  as operators look
                await trio.sleep(0.05)

    async with a_delta_story(world, tmp_path, "ann", more=told_to(receiver, tmp_path, 0.001)) as story:
        receiver.status = 500
        record = await settled(story, 1)
        await story.is_final(record)
        await all_dead()
        shown = await webhooks(story, tmp_path, "list")
        assert "answered 500" in shown.stdout
        assert "from=venue" not in shown.stdout
        listed = await webhooks(story, tmp_path, "deliveries", "acme", "--json")
        dead = [json.loads(line) for line in listed.stdout.splitlines()]
        assert [one["body"]["version"] for one in dead] == list(range(1, len(dead) + 1))
        table = await webhooks(story, tmp_path, "deliveries", "acme")
        headers, *rows = [line.split() for line in table.stdout.splitlines()]
        assert headers == ["TOKEN", "STATUS", "TRIES", "CREATED", "DUE", "REASON"]
        assert [row[0] for row in rows] == [one["token"] for one in dead]
        assert table.stderr == f"{len(dead)} deliveries DEAD\n"

        receiver.status = 204
        one = dead[0]["token"]
        done = await webhooks(story, tmp_path, "replay", "acme", one, "0" * 32)
        assert (done.exit_code, done.stdout) == (3, "1 delivery anew\n")
        assert done.stderr == f"not dead: {'0' * 32}\n"
        await until(lambda: [each.id for each in receiver.taken] == [one])
        done = await webhooks(story, tmp_path, "replay", "acme", "--all", "--json")
        assert (done.exit_code, json.loads(done.stdout)) == (
            0, {"replayed": [each["token"] for each in dead[1:]], "notDead": []},
        )  # fmt: skip
        await is_told(receiver, record)
        await until(lambda: len(receiver.taken) == len(dead))
        assert [each.event for each in receiver.taken] == [each["body"] for each in dead]
        with trio.fail_after(PATIENCE_S):
            while await counts() != (0, 0):  # noqa: ASYNC110  as operators look
                await trio.sleep(0.05)

        refused = await webhooks(story, tmp_path, "deliveries", "others")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "GET /v2/webhooks/others/deliveries: 404 WebhookNotFound: Webhook not found" in refused.stderr
        metrics = (await story.web.ask("GET", "/metrics")).body.decode()
        assert f'cambist_webhook_deliveries_total{{outcome="taken",webhook="acme"}} {len(dead)}.0' in metrics
        assert 'cambist_webhook_failures{webhook="acme"} 0.0' in metrics
    assert receiver.forged == []
