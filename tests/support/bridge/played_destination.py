"""A destination and a relayer as far as the courier of CCTP messages asks them, and a message for it."""

from typing import Any

import trio
from msgspec.structs import replace

from cambist.codecs.bridges.cctp import RECEIVE_MESSAGE, USED_NONCES, CctpMessage, pack_burn
from cambist.codecs.contracts.abi import uint_word
from cambist.config.errors import Reverted
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.bridging.bridge_places import BridgePlace
from cambist.engine.trade.delta.bridging.courier import WantedAttestation
from cambist.engine.trade.delta.bridging.origins import BurnedMessage
from cambist.engine.trade.delta.orders.transfers import key_of
from support.chain.bridge_logs import BURN, MESSAGE, SENT, TRANSMITTER

NONCE = b"\x21" * 32
BURNED = BurnedMessage(MESSAGE, BURN, 0)
KEY = key_of(SENT)
WANTED = {KEY: WantedAttestation(SENT, BURNED)}
RELAYER = b"\x99" * 20


def attested(expiry: int = 0) -> CctpMessage:
    body = pack_burn(replace(BURN, fee_executed=5, expiration_block=expiry))
    return replace(MESSAGE, nonce=NONCE, finality_executed=2_000, body=body)


class PlayedDestination:
    """As much of a chain as the courier asks.

    Attributes:
        used: nonces that are used; refuses: whether the message would revert.
        height: of the latest block.
        is_malformed: whether the answer about a nonce is empty.
    """

    chain_id = 10

    def __init__(self) -> None:
        self.used: set[bytes] = set()
        self.refuses = self.is_malformed = False
        self.height = 7

    async def call(self, call: EthCall, at: At = None) -> bytes:
        await trio.lowlevel.checkpoint()
        assert call.to == TRANSMITTER
        if call.data[:4] == USED_NONCES:
            return b"" if self.is_malformed else uint_word(call.data[4:] in self.used)
        assert call.data[:4] == RECEIVE_MESSAGE
        assert call.sender == RELAYER
        if self.refuses:
            raise Reverted("Invalid signature", b"")
        return uint_word(1)

    async def block(self, at: At = None) -> Header:
        await trio.lowlevel.checkpoint()
        return Header(self.height, b"\xbb" * 32, b"\xba" * 32, 1, 7)


class KnownIntents:
    """As much of a relayer: intents by key.

    Attributes:
        state: of each submitted intent.
    """

    address = RELAYER

    def __init__(self) -> None:
        self.state = IntentState.PENDING
        self.submitted: dict[str, EthCall] = {}

    async def relay(self, effect_key: str, call: EthCall) -> None:
        await trio.lowlevel.checkpoint()
        assert effect_key not in self.submitted
        self.submitted[effect_key] = call

    async def outcome(self, effect_key: str) -> IntentOutcome | None:
        await trio.lowlevel.checkpoint()
        if effect_key not in self.submitted:
            return None
        return IntentOutcome(effect_key, self.state, "", None)


def a_place(chain: PlayedDestination, relayer: KnownIntents) -> BridgePlace:
    """The destination of the messages."""
    unreal: dict[str, Any] = {"chain": chain, "relayer": relayer}
    return BridgePlace(confirmations=1, transmitter=TRANSMITTER, domain=9, **unreal)
