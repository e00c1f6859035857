"""A maker hears of its faults at the URL that its operator has given, signed by the venue."""

from contextlib import suppress

import msgspec
import trio

from cambist.codecs.http1 import Http1Limits, Request, encode_response
from cambist.codecs.messages.resource_messages import MakerFaults
from cambist.config.limits import MAKER_FAULTS_WAITING_MAX
from cambist.crypto.hmac_auth import RequestSigner, RequestVerifier
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server.gate import Gate
from cambist.engine.trade.routing.firm.fault_notices import FaultNotices, fault_of
from cambist.feeds.firm.firm_check import FirmFault
from cambist.feeds.firm.maker_health import FaultTold
from cambist.feeds.transport.signed_client import SignedClient
from support.patience import until
from support.server.scripted_server import Caller, scripted_server

NETWORK = 31_337
SECRET = b"what venue and maker have exchanged"
now_ms = WallClock().now_ms


def a_fault(number: int) -> FaultTold:
    return FaultTold(number, FirmFault.INVALID, b"\x01" * 20, b"\x02" * 20, f"invalid: {number}")


class Receiver:
    """Answers with a status, and keeps what came."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.requests: list[Request] = []

    async def script(self, caller: Caller) -> None:
        with suppress(EOFError):
            while True:
                self.requests.append(await caller.request())
                await caller.stream.send_all(encode_response(self.status, b"{}"))

    def faults(self) -> list[MakerFaults]:
        return [msgspec.json.decode(request.body, type=MakerFaults) for request in self.requests]


async def test_what_waits_is_told_in_one_request_and_signed() -> None:
    receiver = Receiver()
    async with scripted_server(receiver.script) as port, trio.open_nursery() as nursery:
        signer = RequestSigner("venue", "key-1", SECRET)
        async with SignedClient(
            f"http://127.0.0.1:{port}/faults/",
            signer=signer,
            wall_ms=now_ms,
            connections_max=1,
            limits=Http1Limits(),
        ) as client:
            notices = FaultNotices("alpha", NETWORK, client)
            for number in range(2):
                notices.tell(a_fault(number))
            nursery.start_soon(notices.run)
            await until(lambda: notices.taken == 2)
            assert (notices.taken, notices.lost) == (2, 0)
            receiver.status = 299
            notices.tell(a_fault(2))
            await until(lambda: notices.taken == 3)
            receiver.status = 300
            notices.tell(a_fault(3))
            await until(lambda: notices.lost == 1)
            assert notices.taken == 3
            nursery.cancel_scope.cancel()
    told = [fault_of(a_fault(number)) for number in range(4)]
    assert receiver.faults() == [
        MakerFaults("alpha", NETWORK, tuple(told[:2])),
        MakerFaults("alpha", NETWORK, (told[2],)),
        MakerFaults("alpha", NETWORK, (told[3],)),
    ]
    gate = Gate(RequestVerifier({"venue": [("key-1", SECRET)]}), "required")
    for request in receiver.requests:
        assert request.target == b"/faults"
        assert gate.admit(request, request.target, now_ms()) == b"venue"


async def test_of_too_many_the_oldest_go_first_and_a_maker_that_is_away_costs_nothing() -> None:
    async with SignedClient(
        "http://127.0.0.1:9/", signer=None, wall_ms=now_ms, connections_max=1, limits=Http1Limits()
    ) as client:
        notices = FaultNotices("alpha", NETWORK, client)
        for number in range(MAKER_FAULTS_WAITING_MAX + 3):
            notices.tell(a_fault(number))
        assert notices.lost == 3
        async with trio.open_nursery() as nursery:
            nursery.start_soon(notices.run)
            await until(lambda: notices.lost == MAKER_FAULTS_WAITING_MAX + 3)
            nursery.cancel_scope.cancel()
        assert notices.taken == 0
