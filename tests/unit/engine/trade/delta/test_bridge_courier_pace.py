"""The courier's time: when it asks for attestations, when it looks at the destination, and what it says."""

from itertools import accumulate
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs
from trio.testing import MockClock

from cambist.codecs.bridges.cctp import pack_message
from cambist.config.errors import BridgeError, ChainError
from cambist.config.timeouts import BRIDGE_ATTEST_S, BRIDGE_ATTEST_S_MAX, BRIDGE_RECEIVE_LOOK_S
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.bridging.attestations import AttestedMessage
from cambist.engine.trade.delta.bridging.courier import Courier, WantedAttestation
from cambist.engine.trade.delta.bridging.origins import BurnedMessage
from cambist.engine.trade.delta.orders.transfers import TransferKey, key_of
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

GROWTH = 1.25


def signed(expiry: int = 0, nonce: bytes = NONCE) -> AttestedMessage:
    return AttestedMessage(pack_message(replace(attested(expiry), nonce=nonce)), b"\xaa", nonce, expiry)


def another(number: int) -> tuple[TransferKey, WantedAttestation]:
    sent = replace(SENT, tx_hash=bytes([number]) * 32)
    return key_of(sent), WantedAttestation(sent, BURNED)


class PacedCourier:
    """A courier between a service and a destination that are played, by the test's clock.

    Attributes:
        answers: what the service says, one after the other, the last one again and again.
        asked: when the service was asked, and by which transaction.
        anew: nonces that the service was requested to attest anew.
    """

    def __init__(self, *answers: AttestedMessage | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[float, bytes]] = []
        self.anew: list[bytes] = []
        self.chain, self.relayer = PlayedDestination(), KnownIntents()
        unreal: Any = self
        self.courier = Courier(a_place(self.chain, self.relayer), unreal)
        self.began_s = trio.current_time()

    async def attested(self, tx_hash: bytes, _: BurnedMessage) -> AttestedMessage | str:
        """As `AttesterClient.attested`."""
        await trio.lowlevel.checkpoint()
        self.asked.append((trio.current_time() - self.began_s, tx_hash))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer or ""

    async def attest_anew(self, nonce: bytes) -> None:
        """As `AttesterClient.attest_anew`."""
        await trio.lowlevel.checkpoint()
        self.anew.append(nonce)

    @property
    def times(self) -> list[float]:
        """When the service was asked."""
        return [at_s for at_s, _ in self.asked]

    async def runs(self, seconds: float) -> None:
        """Have the courier work for so long."""
        with trio.move_on_after(seconds):
            await self.courier.run()

    async def looks(self) -> str:
        """Have it look once when all is due; what it says of its message."""
        await trio.sleep(BRIDGE_ATTEST_S_MAX + BRIDGE_RECEIVE_LOOK_S)
        await self.courier.look()
        return self.courier.hint(KEY)


def growing(number: int, start: float = BRIDGE_ATTEST_S) -> list[float]:
    """Times of requests whose pauses grow up to their bound, from 0 on."""
    pauses = [min(start * GROWTH**at, BRIDGE_ATTEST_S_MAX) for at in range(number - 1)]
    return [0.0, *accumulate(pauses)]


# --- Pauses ---------------------------------------------------------------------------------------------


async def test_an_attestation_is_asked_for_with_pauses_that_grow_up_to_a_bound(
    autojump_clock: MockClock,
) -> None:
    paced = PacedCourier(None)
    paced.courier.want(WANTED)
    await paced.runs(500)
    assert len(paced.times) > 20
    assert paced.times == pytest.approx(growing(len(paced.times)))
    assert paced.times[-1] - paced.times[-2] == pytest.approx(BRIDGE_ATTEST_S_MAX)


async def test_each_message_is_asked_for_when_it_is_due_and_at_once_when_it_is_new(
    autojump_clock: MockClock,
) -> None:
    paced = PacedCourier(None)
    (first, of_first), (second, of_second) = another(1), another(2)

    async def acts() -> None:
        await trio.sleep(1)
        paced.courier.want({first: of_first})
        await trio.sleep(1)
        paced.courier.want({first: of_first, second: of_second})
        await trio.sleep(20)
        paced.courier.want({second: of_second})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acts)
        await paced.runs(60)
    of_one, of_other = (
        [at_s for at_s, tx_hash in paced.asked if tx_hash == wanted.sent.tx_hash]
        for wanted in (of_first, of_second)
    )
    times = [1 + at_s for at_s in growing(20)]
    assert of_one == pytest.approx([at_s for at_s in times if at_s < 22])
    assert of_other == pytest.approx([1 + at_s for at_s in times if at_s < 59])
    assert len(paced.asked) == len(of_one) + len(of_other)


async def test_an_attested_message_is_looked_at_as_often_as_its_tries_need(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced = PacedCourier(None, signed())
    looked: list[float] = []
    outcome = paced.relayer.outcome

    async def noted(effect_key: str) -> Any:
        looked.append(trio.current_time() - paced.began_s)
        return await outcome(effect_key)

    monkeypatch.setattr(paced.relayer, "outcome", noted)
    paced.courier.want(WANTED)
    await paced.runs(BRIDGE_ATTEST_S + 3.5 * BRIDGE_RECEIVE_LOOK_S)
    assert paced.times == pytest.approx([0, BRIDGE_ATTEST_S])
    assert looked == pytest.approx([BRIDGE_ATTEST_S + times * BRIDGE_RECEIVE_LOOK_S for times in range(4)])


async def test_a_new_attestation_is_followed_by_short_pauses_again(autojump_clock: MockClock) -> None:
    """As long as the destination would refuse the message, the service may yet correct it."""
    waits = [None] * 6
    paced = PacedCourier(*waits, signed())
    paced.chain.refuses = True
    paced.courier.want(WANTED)
    await paced.runs(200)
    at_first, later = paced.times[:7], paced.times[6:]
    assert at_first == pytest.approx(growing(7))
    assert [at_s - later[0] for at_s in later] == pytest.approx(growing(len(later)))


# --- What it says ---------------------------------------------------------------------------------------


async def test_a_message_that_is_attested_says_what_it_waits_for(autojump_clock: MockClock) -> None:
    paced = PacedCourier(BridgeError("answered 503"), None, signed())
    paced.courier.want(WANTED)
    assert paced.courier.hint(KEY) == "it waits for its attestation"
    assert "answered 503" in await paced.looks()
    assert await paced.looks() == "it waits for its attestation"
    assert await paced.looks() == "it is attested, and waits to be taken on the destination"
    told = paced.courier.statistics()
    assert (told.waiting, told.attested, told.handed_in, told.failed) == (0, 1, 1, 1)


async def test_the_same_attestation_again_is_no_news(autojump_clock: MockClock) -> None:
    paced = PacedCourier(signed())
    paced.chain.refuses = True
    paced.courier.want(WANTED)
    for _ in range(2):
        assert (await paced.looks()).startswith("the destination would refuse it: ")
    assert (len(paced.asked), paced.courier.statistics().attested) == (2, 1)
    paced.chain.refuses = False
    await paced.looks()
    assert len(paced.relayer.submitted) == 1
    assert (len(paced.asked), paced.courier.statistics().attested) == (3, 1)
    await paced.looks()
    assert len(paced.asked) == 3


async def test_a_destination_that_is_away_or_answers_malformed_delays_a_message(
    autojump_clock: MockClock,
) -> None:
    paced = PacedCourier(signed())
    paced.chain.is_malformed = True
    paced.courier.want(WANTED)
    assert (await paced.looks()).startswith("it waits: ")
    assert paced.relayer.submitted == {}
    assert paced.courier.statistics().failed == 0
    paced.chain.is_malformed = False
    await paced.looks()
    assert len(paced.relayer.submitted) == 1
    away = PacedCourier(ChainError("no answer"))
    away.courier.want(WANTED)
    assert "no answer" in await away.looks()
    assert away.courier.statistics().failed == 0


async def test_a_bug_with_one_message_holds_up_no_other(autojump_clock: MockClock) -> None:
    paced = PacedCourier(ValueError("odd"), signed())
    paced.courier.want(WANTED | dict([another(1)]))
    with capture_logs() as logs:
        assert await paced.looks() == "it is stuck by an error of the venue"
    assert [one["event"] for one in logs] == ["a bridge message is stuck"]
    assert paced.courier.attested(KEY) is None
    assert paced.courier.attested(another(1)[0]) is not None
    assert await paced.looks() != "it is stuck by an error of the venue"


async def test_a_venue_without_relayer_or_contract_there_reads_the_attestation_again(
    autojump_clock: MockClock,
) -> None:
    unreal: Any = None
    for missing in ({"relayer": None}, {"transmitter": None}):
        paced = PacedCourier(signed())
        place = replace(a_place(paced.chain, paced.relayer), **missing)
        unreal = paced
        paced.courier = Courier(place, unreal)
        paced.courier.want(WANTED)
        for _ in range(2):
            assert "no relayer on the destination" in await paced.looks()
        assert len(paced.asked) == 2
        assert paced.relayer.submitted == {}


async def test_a_message_expires_at_its_height_and_never_without_one(autojump_clock: MockClock) -> None:
    for height, expiry, is_expired in ((7, 8, False), (8, 8, True), (9, 8, True), (9, 0, False)):
        paced = PacedCourier(signed(expiry))
        paced.chain.height = height
        paced.courier.want(WANTED)
        hint = await paced.looks()
        assert (hint == "its attestation has expired; it is attested anew") is is_expired
        assert paced.anew == [NONCE] * is_expired
        assert (paced.courier.attested(KEY) is None) is is_expired
        assert len(paced.relayer.submitted) == (not is_expired)


@pytest.mark.parametrize("state", list(IntentState))
async def test_a_try_is_repeated_only_once_it_is_in_vain(
    autojump_clock: MockClock, state: IntentState
) -> None:
    paced = PacedCourier(signed(9))
    paced.relayer.state = state
    paced.courier.want(WANTED)
    for _ in range(2):
        await paced.looks()
    is_in_vain = state in {IntentState.FAILED, IntentState.REVERTED, IntentState.CANCELLED}
    tries = range(1 + is_in_vain)
    assert list(paced.relayer.submitted) == [f"cctp:{NONCE.hex()}:9:{number}" for number in tries]
