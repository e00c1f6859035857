"""The courier of CCTP messages: what it asks the attestation service, and what it hands in how often."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from msgspec import Struct
from msgspec.structs import replace

from cambist.codecs.bridges.cctp import CctpMessage, pack_message, receive_message
from cambist.codecs.http1 import encode_response
from cambist.config.errors import BridgeError
from cambist.config.limits import BRIDGE_MESSAGES_BYTES_MAX, BRIDGE_RECEIVES_MAX
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.bridging import courier as courier_module
from cambist.engine.trade.delta.bridging.attestations import AttestedMessage
from cambist.engine.trade.delta.bridging.attester_client import AttesterClient, attester_http
from cambist.engine.trade.delta.bridging.courier import Courier
from support.bridge.played_destination import (
    BURNED,
    KEY,
    NONCE,
    WANTED,
    KnownIntents,
    PlayedDestination,
    a_place,
    attested,
)
from support.chain.bridge_logs import SENT
from support.patience import until
from support.server.scripted_server import Caller, scripted_server


def an_answer(message: CctpMessage, status: str = "complete") -> bytes:
    item = {"message": f"0x{pack_message(message).hex()}", "attestation": "0xaa", "status": status}
    return msgspec.json.encode({"messages": [item]})


class Attestations:
    """An attestation service on a socket.

    Attributes:
        status, body: its answers; a status of 0 is no answer.
        asked: method and target of each request.
    """

    def __init__(self) -> None:
        self.status, self.body = 200, an_answer(attested())
        self.asked: list[tuple[str, str]] = []

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
            except (EOFError, trio.BrokenResourceError):
                return
            self.asked.append((request.method.decode(), request.target.decode()))
            if not self.status:
                await trio.sleep_forever()
            try:
                await caller.stream.send_all(encode_response(self.status, self.body))
            except trio.BrokenResourceError:
                return


class Scene(Struct):
    service: Attestations
    chain: PlayedDestination
    relayer: KnownIntents
    courier: Courier
    client: AttesterClient


@asynccontextmanager
async def a_client(service: Attestations, request_s: float = 10) -> AsyncIterator[AttesterClient]:
    async with scripted_server(service.serve) as port, attester_http(ssl.create_default_context()) as http:
        yield AttesterClient(f"http://127.0.0.1:{port}/iris/", http, request_s)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    for name in ("BRIDGE_ATTEST_S", "BRIDGE_ATTEST_S_MAX", "BRIDGE_RECEIVE_LOOK_S"):
        monkeypatch.setattr(courier_module, name, 0.0)
    service, relayer = Attestations(), KnownIntents()
    chain = PlayedDestination()
    place = a_place(chain, relayer)
    async with a_client(service) as client:
        courier = Courier(place, client)
        courier.want(WANTED)
        yield Scene(service, chain, relayer, courier, client)


# --- The service ----------------------------------------------------------------------------------------


async def test_a_burn_is_asked_for_by_its_transaction(scene: Scene) -> None:
    found = await scene.client.attested(SENT.tx_hash, BURNED)
    assert isinstance(found, AttestedMessage)
    assert found.nonce == NONCE
    assert scene.service.asked == [("GET", f"/iris/v2/messages/7?transactionHash=0x{SENT.tx_hash.hex()}")]


async def test_a_transaction_that_the_service_does_not_know_is_not_attested(scene: Scene) -> None:
    scene.service.status = 404
    assert await scene.client.attested(SENT.tx_hash, BURNED) == ""


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"{}"), (429, b"{}"), (200, b"{"), (200, b" " * (BRIDGE_MESSAGES_BYTES_MAX + 1))],
    ids=["error", "too many", "malformed", "too long"],
)
async def test_an_answer_that_cannot_be_used_is_an_error(scene: Scene, status: int, body: bytes) -> None:
    scene.service.status, scene.service.body = status, body
    with pytest.raises(BridgeError):
        await scene.client.attested(SENT.tx_hash, BURNED)


async def test_a_message_is_attested_anew_unless_the_service_refuses(scene: Scene) -> None:
    await scene.client.attest_anew(NONCE)
    scene.service.status = 429
    with pytest.raises(BridgeError, match="answered 429"):
        await scene.client.attest_anew(NONCE)
    assert scene.service.asked == [("POST", f"/iris/v2/reattest/0x{NONCE.hex()}")] * 2


async def test_a_service_that_does_not_answer_costs_no_more_than_its_time() -> None:
    service = Attestations()
    service.status = 0
    async with a_client(service, request_s=0.05) as client:
        with pytest.raises(BridgeError, match="Timeout"):
            await client.attested(SENT.tx_hash, BURNED)
        with pytest.raises(BridgeError, match="Timeout"):
            await client.attest_anew(NONCE)


# --- Errands --------------------------------------------------------------------------------------------


async def test_a_message_is_handed_in_once_it_is_attested_and_once(scene: Scene) -> None:
    scene.service.body = an_answer(attested(), "pending_confirmations")
    await scene.courier.look()
    assert scene.courier.attested(KEY) is None
    assert scene.courier.hint(KEY) == "it waits for its attestation"
    scene.service.body = an_answer(attested())
    for _ in range(3):
        await scene.courier.look()
    (call,) = scene.relayer.submitted.values()
    assert call.data == receive_message(pack_message(attested()), b"\xaa")
    assert len(scene.service.asked) == 2
    told = scene.courier.statistics()
    assert (told.waiting, told.attested, told.handed_in, told.failed) == (0, 1, 1, 0)


async def test_a_message_is_attested_at_once_though_no_other_was_wanted_before(scene: Scene) -> None:
    scene.courier.want({})
    scene.service.body = an_answer(attested())
    async with trio.open_nursery() as nursery:
        await nursery.start(scene.courier.run)
        await trio.testing.wait_all_tasks_blocked()
        scene.courier.want(WANTED)
        await until(lambda: scene.courier.attested(KEY) is not None)
        nursery.cancel_scope.cancel()


async def test_a_try_that_came_to_nothing_is_followed_by_some_others(scene: Scene) -> None:
    scene.relayer.state = IntentState.FAILED
    for _ in range(2 * BRIDGE_RECEIVES_MAX):
        await scene.courier.look()
    assert len(scene.relayer.submitted) == BRIDGE_RECEIVES_MAX
    assert scene.courier.hint(KEY).startswith("it failed too often when handed in")


async def test_a_second_courier_finds_the_try_of_the_first(scene: Scene) -> None:
    await scene.courier.look()
    place: Any = scene.courier._place
    other = Courier(place, scene.client)
    other.want(WANTED)
    await other.look()
    assert len(scene.relayer.submitted) == 1


async def test_a_message_that_somebody_handed_in_is_left_alone(scene: Scene) -> None:
    scene.chain.used = {NONCE}
    await scene.courier.look()
    assert scene.relayer.submitted == {}
    assert scene.courier.attested(KEY) is not None
    assert scene.courier.hint(KEY) == "it is taken on the destination, and waits to be verified"


async def test_a_false_attestation_with_a_used_nonce_is_replaced_once_the_service_tells_the_truth(
    scene: Scene,
) -> None:
    used = NONCE[:-1] + b"\x00"
    scene.chain.used = {used}
    scene.service.body = an_answer(replace(attested(), nonce=used))
    await scene.courier.look()
    assert scene.courier.hint(KEY) == "it is taken on the destination, and waits to be verified"
    scene.service.body = an_answer(attested())
    await scene.courier.look()
    found = scene.courier.attested(KEY)
    assert found is not None
    assert found.nonce == NONCE
    assert len(scene.relayer.submitted) == 1


async def test_a_message_that_would_be_refused_costs_no_gas(scene: Scene) -> None:
    scene.chain.refuses = True
    await scene.courier.look()
    assert scene.relayer.submitted == {}
    assert scene.courier.hint(KEY).startswith("the destination would refuse it: ")


async def test_a_venue_without_a_relayer_there_says_so(scene: Scene) -> None:
    place: Any = scene.courier._place
    courier = Courier(replace(place, relayer=None), scene.client)
    courier.want(WANTED)
    await courier.look()
    assert "no relayer on the destination" in courier.hint(KEY)


async def test_an_expired_message_is_attested_anew(scene: Scene) -> None:
    scene.service.body = an_answer(attested(expiry=7))
    await scene.courier.look()
    assert scene.relayer.submitted == {}
    assert scene.service.asked[-1] == ("POST", f"/iris/v2/reattest/0x{NONCE.hex()}")
    assert scene.courier.attested(KEY) is None
    assert scene.courier.hint(KEY) == "its attestation has expired; it is attested anew"
    scene.service.body = an_answer(attested(expiry=8))
    await scene.courier.look()
    assert len(scene.relayer.submitted) == 1


async def test_a_service_that_is_away_is_asked_again(scene: Scene) -> None:
    scene.service.status = 503
    await scene.courier.look()
    assert "answered 503" in scene.courier.hint(KEY)
    assert scene.courier.statistics().failed == 1
    scene.service.status = 200
    await scene.courier.look()
    assert len(scene.relayer.submitted) == 1


async def test_what_is_not_wanted_any_more_is_forgotten(scene: Scene) -> None:
    await scene.courier.look()
    scene.courier.want({})
    await scene.courier.look()
    assert (scene.courier.hint(KEY), scene.courier.attested(KEY)) == ("", None)
    assert scene.courier.statistics().waiting == 0
