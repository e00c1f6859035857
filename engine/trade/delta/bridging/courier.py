"""Brings CCTP messages to one destination: has each burned message attested, and hands it in.

    wanted -> attestation service, with growing pauses -> attested: verified against the burned message
           -> nonce unused, a simulated call succeeds: handed to the relayer, as a try
    the attestation expired, the nonce is unused -> the service is requested to attest the message anew
    the nonce is used, the destination would refuse the call, or the venue has no relayer there
           -> the attestation, which may have changed, is read again, with growing pauses

A message is wanted until the delivery watch has verified its delivery. Anybody may hand a message in first:
the destination accepts each nonce once, and the watch finds the log, whoever sent the transaction. A try is
an intent of the relayer, with a key of nonce, expiry and number of the try: even after a crash, or with a
second engine, each try is sent once. A next try follows a try without effect (`INTENT_IN_VAIN`); an
attestation has at most BRIDGE_RECEIVES_MAX tries. The courier keeps only data that the process finds again
after a restart.

Source: CCTP V2 `receiveMessage`; developers.circle.com, "CCTP API".
"""

from collections.abc import Mapping
from math import inf

import structlog
import trio
from msgspec import Struct

from .....codecs.bridges.cctp import receive_message, used_nonce
from .....codecs.contracts.abi import decode_uint
from .....config.errors import BridgeError, ChainError, InvalidInput, Reverted, StoreUnavailable
from .....config.limits import BRIDGE_RECEIVE_GAS, BRIDGE_RECEIVES_MAX
from .....config.timeouts import BRIDGE_ATTEST_S, BRIDGE_ATTEST_S_MAX, BRIDGE_RECEIVE_LOOK_S
from .....crypto.hexadecimal import to_hex
from ....chain.port import EthCall
from ....chain.relay.relay_lifecycles import INTENT_IN_VAIN
from ....chain.relay.relayer import Relayer
from ....store.rows import BridgeTransfer
from ..orders.transfers import TransferKey
from .attestations import AttestedMessage
from .attester_client import AttesterClient
from .bridge_places import BridgePlace
from .origins import BurnedMessage

_log = structlog.get_logger("cambist.venue")
_GROWTH = 1.25


class WantedAttestation(Struct, frozen=True):
    """A CCTP message that burned tokens on the origin, and that is to be attested and handed in."""

    sent: BridgeTransfer
    burned: BurnedMessage


class _Errand(Struct):
    """State of one message: the time of its next look, the length of its pauses, and the reason why it waits.

    Attributes:
        is_asked_again: whether to ask for the attestation again: at the last look the destination would have
            refused the message, its nonce was used, or the venue had no relayer there.
    """

    wanted: WantedAttestation
    pause_s: float
    due_s: float = 0.0
    attested: AttestedMessage | None = None
    is_asked_again: bool = False
    hint: str = "it waits for its attestation"


class CourierStatistics(Struct, frozen=True):
    """Counters of a courier.

    Attributes:
        waiting: number of burned messages without attestation.
        attested, handed_in: numbers of messages attested, and handed to the relayer, since the start.
        failed: number of failed requests to the attestation service.
    """

    waiting: int
    attested: int
    handed_in: int
    failed: int


class Courier:
    """Has burned messages attested, and hands them in on one destination; `run` is its task.

    Args:
        place: the destination.
        attester: client of the attestation service.
    """

    def __init__(self, place: BridgePlace, attester: AttesterClient) -> None:
        self._place = place
        self._attester = attester
        self._errands: dict[TransferKey, _Errand] = {}
        self._wake = trio.Event()
        self._attested = self._handed_in = self._failed = 0

    def statistics(self) -> CourierStatistics:
        """Return the number of messages without attestation, and the counters since the start."""
        waiting = sum(errand.attested is None for errand in self._errands.values())
        return CourierStatistics(waiting, self._attested, self._handed_in, self._failed)

    def want(self, wanted: Mapping[TransferKey, WantedAttestation]) -> None:
        """Set the messages to be attested and handed in, and forget all other messages."""
        fresh = wanted.keys() - self._errands.keys()
        self._errands = {
            key: self._errands.get(key) or _Errand(message, BRIDGE_ATTEST_S)
            for key, message in wanted.items()
        }
        if fresh:
            self._wake.set()

    def attested(self, key: TransferKey) -> AttestedMessage | None:
        """Return the attested message of a transfer; None before the attestation."""
        errand = self._errands.get(key)
        return None if errand is None else errand.attested

    def hint(self, key: TransferKey) -> str:
        """Return a text that says what a transfer's message waits for; empty for an unknown transfer."""
        errand = self._errands.get(key)
        return "" if errand is None else errand.hint

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look at each wanted message when it is due, until cancelled."""
        task_status.started()
        while True:
            # The event is replaced before the look: a message that is wanted during the look sets it.
            self._wake = trio.Event()
            await self.look()
            next_s = min((errand.due_s for errand in self._errands.values()), default=inf)
            with trio.move_on_at(next_s):
                await self._wake.wait()

    async def look(self) -> None:
        """Have each message that is due attested or handed in, one after the other."""
        now_s = trio.current_time()
        for key, errand in list(self._errands.items()):
            if errand.due_s <= now_s and key in self._errands:
                await self._run(errand)

    async def _run(self, errand: _Errand) -> None:
        try:
            if errand.attested is None or errand.is_asked_again:
                await self._attest(errand)
            if errand.attested is not None:
                await self._hand_in(errand, errand.attested)
                if not errand.is_asked_again:
                    errand.due_s = trio.current_time() + BRIDGE_RECEIVE_LOOK_S
                    return
        except (BridgeError, ChainError, StoreUnavailable) as error:
            self._failed += isinstance(error, BridgeError)
            errand.hint = f"it waits: {error.detail}"
        except Exception as error:  # noqa: BLE001  one message's bug is not the others' end
            sent = errand.wanted.sent
            _log.error(
                "a bridge message is stuck", order=to_hex(sent.order_hash), detail=repr(error), exc_info=True
            )
            errand.hint = "it is stuck by an error of the venue"
        errand.due_s = trio.current_time() + errand.pause_s
        errand.pause_s = min(_GROWTH * errand.pause_s, BRIDGE_ATTEST_S_MAX)

    async def _attest(self, errand: _Errand) -> None:
        wanted = errand.wanted
        found = await self._attester.attested(wanted.sent.tx_hash, wanted.burned)
        if isinstance(found, str):
            delayed = f", which the attester delays: {found}" if found else ""
            errand.hint = f"it waits for its attestation{delayed}"
        elif found != errand.attested:
            errand.attested, errand.pause_s = found, BRIDGE_ATTEST_S
            errand.hint = "it is attested, and waits to be taken on the destination"
            self._attested += 1

    async def _hand_in(self, errand: _Errand, attested: AttestedMessage) -> None:
        """Submit an attested message to the relayer, unless its nonce is used or a try is under way.

        Raises:
            BridgeError: the service refused to attest an expired message anew.
            ChainError, StoreUnavailable: the chain or the store is away.
        """
        errand.is_asked_again = False  # as the last look left it; the branches below set it anew
        relayer, transmitter = self._place.relayer, self._place.transmitter
        if relayer is None or transmitter is None:
            errand.is_asked_again = True
            errand.hint = "it is attested; the venue has no relayer on the destination to hand it in"
            return
        chain = self._place.chain
        # First: `DeliveryWatch._search` relies on it that a look drops no attestation whose nonce is used.
        returned = await chain.call(EthCall(transmitter, used_nonce(attested.nonce)))
        try:
            if decode_uint(returned):
                errand.is_asked_again = True
                errand.hint = "it is taken on the destination, and waits to be verified"
                return
        except InvalidInput as error:
            raise ChainError(error.detail) from None
        if await self._is_expired(attested):
            # Dropped before the request: if the request fails, the next look begins with a new attestation.
            errand.attested, errand.hint = None, "its attestation has expired; it is attested anew"
            await self._attester.attest_anew(attested.nonce)
            return
        key = await _free_key(relayer, attested, errand)
        if key is None:
            return
        call = EthCall(
            transmitter,
            receive_message(attested.raw, attested.attestation),
            relayer.address,
            gas_max=BRIDGE_RECEIVE_GAS,
        )
        # Before `relay`: a stored intent is a try, even in vain, and an attestation has few of them.
        try:
            await chain.call(call)
        except Reverted as error:
            errand.is_asked_again, errand.hint = True, f"the destination would refuse it: {error.detail}"
            return
        await relayer.relay(key, call)
        self._handed_in += 1

    async def _is_expired(self, attested: AttestedMessage) -> bool:
        if not attested.expiration_block:
            return False
        head = await self._place.chain.block()
        return head is not None and head.number >= attested.expiration_block


async def _free_key(relayer: Relayer, attested: AttestedMessage, errand: _Errand) -> str | None:
    """Return the key of the next try; None while a try is under way or mined, and after BRIDGE_RECEIVES_MAX.

    After so many failed tries, the errand's `hint` says that the message failed too often.
    """
    for number in range(BRIDGE_RECEIVES_MAX):
        key = f"cctp:{attested.nonce.hex()}:{attested.expiration_block}:{number}"
        outcome = await relayer.outcome(key)
        if outcome is None:
            return key
        if outcome.state not in INTENT_IN_VAIN:
            return None
    errand.hint = "it failed too often when handed in: anybody may call receiveMessage on the destination"
    return None
