"""The endpoints of webhooks over HTTP, on a venue's own routes and store: permissions of their callers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest
import trio
from click.testing import CliRunner, Result

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.event_messages import decode_order_event
from cambist.codecs.messages.vocabulary import DeliveryState
from cambist.config.limits import WEBHOOK_WAITING_MAX
from cambist.engine.cli import cli
from cambist.engine.store.queries import by, deliveries
from cambist.engine.store.rows import Delivery, OrderEvent, Webhook
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELIVERY, WEBHOOK
from cambist.engine.store.units import Done, Unit, new, put, row_of
from cambist.engine.trade.events.deliveries import new_delivery
from cambist.engine.trade.events.message import encode_event
from cambist.feeds.transport.http_client import HttpClient
from support.client.commands import invoked
from support.events.webhook_receiver import SECRET, a_hook
from support.patience import PATIENCE_S, STORY_S
from support.server.server_harness import serving
from support.store.stores import ALICE, NOW_MS, hash_of
from support.venue.quiet_venue import CHAIN_ID, a_quiet_venue

HOOKS = "/v2/webhooks"
_MORE = """
[venue.api_keys.other]
secret = "env:OTHER_KEY"
[venue.webhooks.acme]
url = "https://acme.example/orders?password=hush"
secret = "env:HOOK_SECRET"
partner = "acme"
chains = [130, 31337]
statuses = ["COMPLETED", "ACTIVE"]
api_key = "known"
[venue.webhooks.more]
url = "https://acme.example/more"
secret = "env:HOOK_SECRET"
surfaces = ["otc", "delta"]
api_key = "known"
[venue.webhooks.theirs]
url = "https://other.example/orders"
secret = "env:HOOK_SECRET"
api_key = "other"
[venue.webhooks.nobodys]
url = "https://nobody.example/orders"
secret = "env:HOOK_SECRET"
"""
KNOWN = {"x-api-key": "a-key-of-an-integrator"}
OTHER = {"x-api-key": "a-key-of-another"}
NOBODY: dict[str, str] = {}
ENVIRON = {"OTHER_KEY": OTHER["x-api-key"], "HOOK_SECRET": SECRET}


class Front:
    """Asks the venue."""

    def __init__(self, store: Store, client: HttpClient, port: int) -> None:
        self.store = store
        self.port = port
        self._client = client

    async def ask(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = KNOWN
    ) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        sent = [(name.encode(), text.encode()) for name, text in headers.items()]
        if raw:
            sent.append((b"content-type", b"application/json"))
        answer = await self._client.request(
            method.encode(), target.encode(), sent, raw, deadline_s=PATIENCE_S
        )
        return answer.status, msgspec.json.decode(answer.body)

    async def get(self, target: str) -> Any:
        status, told = await self.ask("GET", target)
        assert status == 200, told
        return told

    async def command(self, *arguments: str) -> Result:
        """`cambist webhooks`, in a thread."""
        places = ["--venue", f"http://127.0.0.1:{self.port}", "--api-key", "env:KEY"]
        environ = {"KEY": KNOWN["x-api-key"]}
        return await invoked(["webhooks", *arguments, *places], environ, within_s=STORY_S)

    async def replay(self, body: Any, name: str = "acme") -> Any:
        status, told = await self.ask("POST", f"{HOOKS}/{name}/replay", body)
        assert status == 200, told
        return told

    async def refusal(self, *request: Any, **more: Any) -> tuple[int, str, str]:
        status, told = await self.ask(*request, **more)
        assert told["description"] == told["error"] == told["details"]
        assert told["requestId"]
        return status, told["errorType"], told["details"]

    async def keep(self, *numbers: int, name: str = "acme", state: str = "DEAD") -> list[str]:
        """Keep deliveries; their tokens."""
        tokens = [token(number) for number in numbers]
        rows = [
            msgspec.structs.replace(
                new_delivery(a_hook(name), token(number), event(number), body_of(number), NOW_MS),
                state=DeliveryState(state),
                tries=3,
                reason="answered 500",
            )
            for number in numbers
        ]
        assert await self.store.write(Unit(tuple(put(DELIVERY, row) for row in rows))) == Done()
        return tokens

    async def kept(self, state: str, name: str = "acme") -> list[Delivery]:
        (rows,) = await self.store.read(deliveries(name, state, "", 1_000))
        return [row_of(DELIVERY, values) for values in rows]


def token(number: int) -> str:
    return f"{1:016x}{number:016x}"


def event(number: int) -> OrderEvent:
    order = hash_of(number)
    return OrderEvent("delta", order, order[0], CHAIN_ID, ALICE, 1, "ACTIVE", NOW_MS, b"", "acme")


def body_of(number: int) -> bytes:
    return encode_event(token(number), event(number))


@asynccontextmanager
async def a_front(folder: Path) -> AsyncIterator[Front]:
    async with (
        a_quiet_venue(folder, more=_MORE, environ=ENVIRON) as venue,
        serving(venue.app.router, reactor=False) as served,
        HttpClient("127.0.0.1", served.port, connections_max=2, limits=Http1Limits()) as client,
    ):
        yield Front(cast("Any", venue.app)._store, client, served.port)


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    async with a_front(tmp_path) as opened:
        yield opened


# --- Who may --------------------------------------------------------------------------------------------

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", HOOKS, None),
    ("GET", f"{HOOKS}/acme/deliveries", None),
    ("POST", f"{HOOKS}/acme/replay", {}),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one[1])
@pytest.mark.parametrize("headers", [NOBODY, {"x-api-key": "a-key-of-nobody"}], ids=["none", "unknown"])
async def test_without_a_key_nothing_is_told(
    front: Front, request_: tuple[str, str, Any], headers: dict[str, str]
) -> None:
    await front.keep(1)
    status, error_type, details = await front.refusal(*request_, headers=headers)
    assert (status, error_type) == (401, "Unauthorized")
    assert "a-key-of-nobody" not in details
    assert ("the request has none" in details) is (headers is NOBODY)
    assert ("unknown key" in details) is (headers is not NOBODY)
    assert len(await front.kept("DEAD")) == 1


@pytest.mark.parametrize("name", ["theirs", "nobodys", "unknown", "acme%20"])
@pytest.mark.parametrize("request_", REQUESTS[1:], ids=lambda one: one[1])
async def test_the_webhook_of_another_does_not_exist(
    front: Front, request_: tuple[str, str, Any], name: str
) -> None:
    method, target, body = request_
    await front.keep(1, name=name)
    status, error_type, details = await front.refusal(method, target.replace("acme", name), body)
    assert (status, error_type) == (404, "WebhookNotFound")
    assert details.startswith("Webhook not found: name: expected a webhook that the key manages, got ")
    assert len(await front.kept("DEAD", name)) == 1


async def test_each_key_lists_its_own(front: Front) -> None:
    _, told = await front.ask("GET", HOOKS, headers=OTHER)
    assert [hook["name"] for hook in told["webhooks"]] == ["theirs"]
    _, told = await front.ask("GET", HOOKS)
    assert [hook["name"] for hook in told["webhooks"]] == ["acme", "more"]


# --- Listing --------------------------------------------------------------------------------------------


async def test_how_a_webhook_stands(front: Front) -> None:
    await front.keep(1, 2, 3)
    await front.keep(4, 5, state="WAITING")
    await front.keep(6, name="theirs")
    row = Webhook("acme", NOW_MS, 1, token(5), NOW_MS)
    assert await front.store.write(Unit((new(WEBHOOK, row),))) == Done()
    hooks = (await front.get(HOOKS))["webhooks"]
    assert hooks[0] == {
        "name": "acme",
        "url": "https://acme.example/orders",
        "partner": "acme",
        "chains": [130, 31337],
        "statuses": ["ACTIVE", "COMPLETED"],
        "place": token(5),
        "waiting": 2,
        "dead": 3,
        "failures": 0,
        "reason": "",
        "surfaces": ["delta"],
    }
    assert hooks[1]["surfaces"] == ["delta", "otc"]
    assert (hooks[1]["place"], hooks[1]["waiting"], hooks[1]["dead"]) == ("", 0, 0)
    shown = msgspec.json.encode(hooks)
    assert SECRET.encode()[6:] not in shown
    assert b"hush" not in shown


async def test_deliveries_page_after_page(front: Front) -> None:
    tokens = await front.keep(*range(1, 8))
    await front.keep(8, state="WAITING")
    told, after = list[dict[str, Any]](), ""
    for has_more in (True, True, False):
        page = await front.get(f"{HOOKS}/acme/deliveries?limit=3" + (f"&after={after}" if after else ""))
        assert page["hasMore"] is has_more
        told += page["deliveries"]
        after = told[-1]["token"]
    assert [one["token"] for one in told] == tokens
    assert told[0] | {"body": ...} == {
        "token": token(1),
        "status": "DEAD",
        "tries": 3,
        "reason": "answered 500",
        "createdAt": "2023-11-14T22:13:20.000Z",
        "dueAt": "2023-11-14T22:13:20.000Z",
        "body": ...,
    }
    message = decode_order_event(msgspec.json.encode(told[0]["body"]))
    assert (message.token, message.status, message.chain_id) == (token(1), "ACTIVE", CHAIN_ID)
    page = await front.get(f"{HOOKS}/acme/deliveries?status=WAITING")
    assert ([one["token"] for one in page["deliveries"]], page["hasMore"]) == ([token(8)], False)


async def test_a_page_is_a_hundred_at_most(front: Front) -> None:
    tokens = await front.keep(*range(1, 102))
    page = await front.get(f"{HOOKS}/acme/deliveries")
    assert [one["token"] for one in page["deliveries"]] == tokens[:100]
    assert page["hasMore"] is True


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("status=TAKEN", "status"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=1.5", "limit"),
        ("after=7", "after"),
        (f"after={'F' * 32}", "after"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_name(front: Front, query: str, named: str) -> None:
    status, _, details = await front.refusal("GET", f"{HOOKS}/acme/deliveries?{query}")
    assert status == 400
    assert f"{named}: expected" in details


# --- Replay ---------------------------------------------------------------------------------------------


async def test_replay_by_tokens_takes_what_is_dead_of_this_webhook(front: Front) -> None:
    one, two, three = await front.keep(1, 2, 3)
    (waiting,) = await front.keep(4, state="WAITING")
    (theirs,) = await front.keep(5, name="theirs")
    sent = [two, waiting, two, theirs, one, "no token"]
    assert await front.replay({"tokens": sent}) == {"replayed": [two, one], "more": False}
    assert [row.token for row in await front.kept("DEAD")] == [three]
    anew = {row.token: row for row in await front.kept("WAITING")}
    assert set(anew) == {one, two, waiting}
    assert (anew[one].tries, anew[one].reason, anew[one].body) == (0, "", body_of(1))
    assert anew[waiting].tries == 3
    assert [row.token for row in await front.kept("DEAD", "theirs")] == [theirs]


@pytest.mark.parametrize("body", [{}, {"tokens": []}], ids=["nothing", "none"])
async def test_replay_of_all_takes_a_hundred_at_a_time(front: Front, body: Any) -> None:
    tokens = await front.keep(*range(1, 104))
    assert await front.replay(body) == {"replayed": tokens[:100], "more": True}
    assert await front.replay(body) == {"replayed": tokens[100:], "more": False}
    assert await front.replay(body) == {"replayed": [], "more": False}
    assert await front.kept("DEAD") == []


async def test_replays_fill_no_more_than_half_of_what_may_wait(front: Front) -> None:
    """A receiver that takes nothing cannot have its dead deliveries wait without a bound."""
    half = WEBHOOK_WAITING_MAX // 2
    tokens = await front.keep(*range(1, 11))
    for at in range(1_000, 1_000 + half - 4, 499):
        await front.keep(*range(at, min(at + 499, 1_000 + half - 4)), state="WAITING")
    status, kind, said = await front.refusal("POST", f"{HOOKS}/acme/replay", {"tokens": tokens[:5]})
    assert (status, kind) == (429, "RateLimited")
    assert said.endswith("replays fill at most 5000 waiting deliveries of a webhook")
    assert len(await front.kept("DEAD")) == 10
    assert await front.replay({"tokens": tokens[9:]}) == {"replayed": tokens[9:], "more": False}
    assert await front.replay({}) == {"replayed": tokens[:3], "more": True}
    for body in ({}, {"tokens": tokens[3:4]}):
        assert (await front.refusal("POST", f"{HOOKS}/acme/replay", body))[0] == 429
    assert await front.replay({"tokens": tokens[:1]}) == {"replayed": [], "more": False}
    assert (await front.get(HOOKS))["webhooks"][0]["waiting"] == half


async def test_replays_at_once_fill_it_no_further(front: Front) -> None:
    half = WEBHOOK_WAITING_MAX // 2
    tokens = await front.keep(*range(1, 101))
    for at in range(1_000, 1_000 + half - 50, 495):
        await front.keep(*range(at, min(at + 495, 1_000 + half - 50)), state="WAITING")
    async with trio.open_nursery() as nursery:
        for one in (tokens[:50], tokens[50:]):
            nursery.start_soon(front.ask, "POST", f"{HOOKS}/acme/replay", {"tokens": one})
    assert len(await front.kept("DEAD")) == 50
    assert (await front.get(HOOKS))["webhooks"][0]["waiting"] == half


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"tokens": "all"},
        {"tokens": [1]},
        {"tokens": ["a"] * 101},
        {"tokens": ["a" * 129]},
        {"token": "a"},
        b"{",
        b"",
    ],
)
async def test_a_replay_that_makes_no_sense(front: Front, body: Any) -> None:
    await front.keep(1)
    status, _, _ = await front.refusal("POST", f"{HOOKS}/acme/replay", body)
    assert status == 400
    assert len(await front.kept("DEAD")) == 1


async def test_a_key_that_is_given_twice_is_refused(front: Front) -> None:
    (one,) = await front.keep(1)
    twice = b'{"tokens": [], "tokens": ["%b"]}' % one.encode()
    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        answer = await client.post(
            f"http://127.0.0.1:{front.port}{HOOKS}/acme/replay", content=twice, headers=KNOWN
        )
    assert (answer.status_code, answer.json()["errorType"]) == (400, "InvalidInput")
    assert answer.json()["details"] == "Invalid input: tokens: given twice in one object"
    assert len(await front.kept("DEAD")) == 1


async def test_the_document_describes_what_is_answered(front: Front) -> None:
    document = await front.get("/openapi.json")
    for path, method in (
        (HOOKS, "get"),
        (f"{HOOKS}/{{name}}/deliveries", "get"),
        (f"{HOOKS}/{{name}}/replay", "post"),
    ):
        assert document["paths"][path][method]["security"] == [{"apiKey": []}]
        assert {"200", "401"} <= document["paths"][path][method]["responses"].keys()
    for path, method in ((f"{HOOKS}/{{name}}/deliveries", "get"), (f"{HOOKS}/{{name}}/replay", "post")):
        assert "404" in document["paths"][path][method]["responses"]


async def test_a_delivery_that_was_taken_meanwhile_is_left_out(front: Front) -> None:
    (one,) = await front.keep(1)
    (rows,) = await front.store.read(by(DELIVERY, "acme", one))
    assert rows
    assert await front.replay({"tokens": [one]}) == {"replayed": [one], "more": False}
    assert await front.replay({"tokens": [one]}) == {"replayed": [], "more": False}


# --- cambist webhooks -----------------------------------------------------------------------------------


async def test_the_command_goes_on_from_page_to_page(front: Front) -> None:
    tokens = await front.keep(*range(1, 204))
    (waiting,) = await front.keep(300, state="WAITING")
    listed = await front.command("deliveries", "acme", "--json")
    assert [msgspec.json.decode(line)["token"] for line in listed.stdout.splitlines()] == tokens
    listed = await front.command("deliveries", "acme", "--status", "waiting")
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [[waiting, "WAITING"]]
    assert listed.stderr == "1 delivery WAITING\n"
    done = await front.command("replay", "acme", "--all", "--json")
    assert msgspec.json.decode(done.stdout) == {"replayed": tokens, "notDead": []}
    assert await front.kept("DEAD") == []


async def test_the_command_says_what_the_key_manages(front: Front) -> None:
    done = await front.command("list")
    assert (done.exit_code, done.stderr) == (0, "2 webhooks\n")
    headers, acme, more = [line.split() for line in done.stdout.splitlines()]
    assert headers[:5] == ["NAME", "URL", "SURFACES", "PARTNER", "CHAINS"]
    assert acme == [
        "acme", "https://acme.example/orders", "delta", "acme", "130,31337", "ACTIVE,COMPLETED", "0", "0",
        "0", "-",
    ]  # fmt: skip
    assert more == ["more", "https://acme.example/more", "delta,otc", "-", "-", "-", "0", "0", "0", "-"]


async def test_the_command_is_refused_as_the_endpoint_refuses(front: Front) -> None:
    done = await front.command("replay", "theirs", "--all")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: POST /v2/webhooks/theirs/replay: 404 WebhookNotFound: ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("list",), "--api-key: expected the key that manages the webhooks"),
        (("list", "--api-key", "a-literal"), "--api-key: expected env:NAME or file:PATH"),
        (("replay", "acme", "--api-key", "env:KEY"), "expected either TOKENs or --all"),
        (("replay", "acme", "--all", "0" * 32, "--api-key", "env:KEY"), "expected either TOKENs or --all"),
        (("replay", "acme", "0" * 31, "--api-key", "env:KEY"), "TOKEN: expected 32 hexadecimal digits"),
        (("deliveries", "..", "--api-key", "env:KEY"), "NAME: expected the name of a webhook"),
        (("deliveries", "acme", "--status", "taken", "--api-key", "env:KEY"), "--status"),
        (("list", "--venue", "ftp://x", "--api-key", "env:KEY"), "--venue: expected http://"),
    ],
)
def test_wrong_usage_names_the_option(arguments: tuple[str, ...], named: str) -> None:
    given = ["webhooks", *arguments, *(() if "--venue" in arguments else ("--venue", "http://127.0.0.1:9"))]
    done = CliRunner().invoke(cli, given, env={"KEY": "a-key"})
    assert done.exit_code in (1, 2)
    assert named in done.stderr
    assert "a-literal" not in done.stderr
