"""The attester of a CCTP bridge between development chains: completes and signs the messages that are sent.

    MessageSent on a chain  ->  after the finality asked for: nonce, fee, expiry, and a signature of the hash

An attestation stays even if a re-organisation removes its message, as with Circle's attester. A message that
waits is forgotten in a re-organisation, and is seen again if its transaction is mined again. After a restart
the attester reads all messages anew and gives them the same nonces.
"""

from collections.abc import Mapping
from math import inf

import msgspec
import structlog
import trio
from msgspec import Struct

from ....codecs.bridges import cctp
from ....config.errors import ChainError, InvalidInput
from ....config.limits import DEV_BRIDGE_MESSAGES_MAX
from ....config.timeouts import DEV_BRIDGE_AGAIN_S, DEV_BRIDGE_LOOK_S
from ....crypto.keccak import keccak256
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_65
from ...chain.port import Chain, LogFilter
from .attest_plan import AttesterOrders, as_final, completed, nonce_of
from .followed_logs import FollowedLogs, another_head

_log = structlog.get_logger("cambist.devnet")


class AttestEnd(Struct, frozen=True):
    """A chain of the bridge, and its MessageTransmitter's address of 20 bytes."""

    chain: Chain
    transmitter: bytes


class SentMessage(Struct):
    """A message that the attester has seen.

    Attributes:
        sent: the message as its sender made it.
        nonce: nonce that the attester gives the message, 32 bytes.
        seen_s: time at which the attester first saw the message (trio's clock).
        raw: the signed bytes; empty before the signature.
        attestation: signature of the hash of `raw`, 65 bytes; empty before the signature.
        delay_reason: reason why the message waits longer than its sender asked for; empty for none.
    """

    sent: cctp.CctpMessage
    nonce: bytes
    seen_s: float
    raw: bytes = b""
    attestation: bytes = b""
    delay_reason: str = ""


class DevAttester:
    """Attester of a CCTP bridge between development chains. `run` is its task.

    Args:
        ends: domain -> the chain and its transmitter.
        key: key whose address the transmitters know.

    Attributes:
        orders: the present instructions to the attester; `order` changes them.
    """

    def __init__(
        self,
        ends: Mapping[int, AttestEnd],
        key: SigningKey,
        *,
        orders: AttesterOrders = AttesterOrders(),  # noqa: B008 - frozen
    ) -> None:
        self.ends = ends
        self.orders = orders
        self._key = key
        self._wrong_key = SigningKey(keccak256(key.address))
        self._followed: dict[int, FollowedLogs] = {}
        self._messages: dict[tuple[int, bytes], list[SentMessage]] = {}
        self._wake = trio.Event()

    def order(self, **changes: object) -> AttesterOrders:
        """Change members of the instructions; the changes hold for messages that are attested from now on.

        Raises:
            ValueError, TypeError: a member or a value is unknown.
        """
        self.orders = msgspec.structs.replace(self.orders, **changes)
        self._wake.set()
        return self.orders

    def messages(self, domain: int, tx_hash: bytes) -> list[SentMessage]:
        """List a transaction's messages, in the sequence of its logs; empty for an unknown transaction."""
        return list(self._messages.get((domain, tx_hash), ()))

    def message(self, domain: int | None, nonce: bytes) -> SentMessage | None:
        """Find the message of a nonce; None for an unknown nonce.

        Args:
            domain: domain of the message's origin; None for any.
        """
        for place, messages in self._messages.items():
            for found in messages:
                if found.nonce == nonce and domain in (None, place[0]):
                    return found
        return None

    def attest_again(self, found: SentMessage) -> None:
        """Sign an attested message anew, without its expiry, by the present instructions (`orders`)."""
        self._sign(found, as_final(cctp.parse_message(found.raw)))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Attest messages until cancelled."""
        self._messages = {}
        self._followed = {
            domain: FollowedLogs(end.chain, LogFilter((end.transmitter,), ((cctp.MESSAGE_SENT.topic,),)))
            for domain, end in self.ends.items()
        }
        task_status.started()
        while True:
            self._wake = wake = trio.Event()
            try:
                again_s = await self._step()
            except ChainError as error:
                _log.warning("the attester waits for a chain", fault=error.detail)
                await trio.sleep(DEV_BRIDGE_AGAIN_S)
                continue
            heads = [(end.chain, self._followed[domain].known) for domain, end in self.ends.items()]
            await another_head(heads, wake, again_s)

    # --- One step ---------------------------------------------------------------------------------

    async def _step(self) -> float:
        """Sign the messages that are due; return the seconds until the next look."""
        again_s = inf
        for domain in self.ends:
            await self._read(domain)
        for found in [
            message for messages in self._messages.values() for message in messages if not message.raw
        ]:
            end = self.ends.get(found.sent.destination_domain)
            head = await end.chain.block() if end else None
            waited_s = trio.current_time() - found.seen_s
            plan = completed(found.sent, found.nonce, self.orders, waited_s, head.number if head else 0)
            found.delay_reason = plan.delay_reason
            if plan.raw:
                self._sign(found, plan.raw)
            else:
                again_s = min(again_s, plan.again_s, DEV_BRIDGE_LOOK_S)
        return again_s

    async def _read(self, domain: int) -> None:
        is_gone, logs = await self._followed[domain].read()
        if is_gone:
            for place in [place for place in self._messages if place[0] == domain]:
                if not all(found.raw for found in self._messages[place]):
                    del self._messages[place]
        sent: dict[bytes, list[bytes]] = {}
        for log in logs:
            event = cctp.decode_cctp_log(log.topics, log.data)
            if isinstance(event, cctp.MessageSent):
                sent.setdefault(log.tx_hash, []).append(event.message)
        for tx_hash, messages in sent.items():
            self._messages.setdefault((domain, tx_hash), self._seen(domain, tx_hash, messages))
        while len(self._messages) > DEV_BRIDGE_MESSAGES_MAX:
            del self._messages[next(iter(self._messages))]

    def _seen(self, domain: int, tx_hash: bytes, messages: list[bytes]) -> list[SentMessage]:
        found = []
        for number, raw in enumerate(messages):
            try:
                sent = cctp.parse_message(raw)
            except InvalidInput as error:
                _log.warning("a message is malformed", fault=error.detail)
                continue
            found.append(SentMessage(sent, nonce_of(domain, tx_hash, number), trio.current_time()))
        return found

    def _sign(self, found: SentMessage, raw: bytes) -> None:
        key = self._wrong_key if self.orders.signs_wrongly else self._key
        found.raw, found.attestation = raw, to_65(*key.sign(keccak256(raw)))
