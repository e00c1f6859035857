"""Events of any contract, emitted by a tiny contract of ours; and their encoding, the inverse of reading.

The contract takes records one after the other: number of topics (a word), four words of topics, length of the
data (a word), the data. The contract emits a log for each record: a transaction has as many logs as records.
"""

import struct
from collections.abc import Sequence

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.transactions import SignedTransaction, Transaction, contract_address, sign_transaction
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Chain

Record = tuple[tuple[bytes, ...], bytes]
"""(topics, data) of a log."""

GWEI = 10**9

# --- The contract -----------------------------------------------------------------------------------------

_OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "LT": 0x10, "EQ": 0x14, "CALLDATALOAD": 0x35, "CALLDATASIZE": 0x36,
    "CALLDATACOPY": 0x37, "CODECOPY": 0x39, "POP": 0x50, "JUMP": 0x56, "JUMPI": 0x57, "JUMPDEST": 0x5B,
    "RETURN": 0xF3, "REVERT": 0xFD,
    **{f"DUP{n}": 0x7F + n for n in range(1, 17)}, **{f"LOG{n}": 0xA0 + n for n in range(5)},
}  # fmt: skip


def assembled(source: str) -> bytes:
    """Machine code: opcodes, numbers (PUSH1), `:label` (a JUMPDEST) and `@label` (PUSH2 of its place)."""
    places: dict[str, int] = {}
    code = bytearray()
    for _ in range(2):  # the second time every place is known
        code.clear()
        for word in source.split():
            if word.startswith(":"):
                places[word[1:]] = len(code)
                code.append(_OPCODES["JUMPDEST"])
            elif word.startswith("@"):
                code += b"\x61" + struct.pack("!H", places.get(word[1:], 0))
            elif word.isdigit():
                code += bytes([0x60, int(word)])
            else:
                code.append(_OPCODES[word])
    return bytes(code)


def _emit(count: int) -> str:
    """[record, length, number of topics] -> [record, length], with a log."""
    topics = [f"DUP{2 + pushed} {32 * (count - pushed)} ADD CALLDATALOAD" for pushed in range(count)]
    return f":emit{count} POP {' '.join(topics)} DUP{count + 1} 0 LOG{count} @next JUMP"


RUNTIME = assembled(
    "0 :loop CALLDATASIZE DUP2 LT @body JUMPI STOP "
    ":body DUP1 160 ADD CALLDATALOAD DUP1 DUP3 192 ADD 0 CALLDATACOPY DUP2 CALLDATALOAD "
    + " ".join(f"DUP1 {count} EQ @emit{count} JUMPI" for count in range(5))
    + " 0 0 REVERT "
    + " ".join(map(_emit, range(5)))
    + " :next ADD 192 ADD @loop JUMP"
)
_CREATION_BYTES = 12
CREATION = (
    b"\x61"
    + struct.pack("!H", len(RUNTIME))
    + assembled(f"DUP1 {_CREATION_BYTES} 0 CODECOPY 0 RETURN")
    + RUNTIME
)
assert len(CREATION) == _CREATION_BYTES + len(RUNTIME)


def calldata(*records: Record) -> bytes:
    """Calldata that makes the contract emit these logs."""
    return b"".join(
        uint_word(len(topics)) + b"".join(topics).ljust(4 * 32, b"\0") + uint_word(len(data)) + data
        for topics, data in records
    )


class Emitter:
    """An account that deploys such contracts and has them emit; its nonces count on.

    Attributes:
        address: the account's.
        nonce: of its next transaction.
    """

    def __init__(self, key: SigningKey, chain_id: int) -> None:
        self.address = key.address
        self._key = key
        self._chain_id = chain_id
        self.nonce = 0

    def deployment(self) -> tuple[SignedTransaction, bytes]:
        """(the transaction, the address of the contract)."""
        address = contract_address(self.address, self.nonce)
        return self._signed(b"", CREATION), address

    def emission(self, contract: bytes, *records: Record) -> SignedTransaction:
        """The transaction that emits logs of a contract."""
        return self._signed(contract, calldata(*records))

    async def deploy(self, chain: Chain) -> bytes:
        """A contract's address; it is there once the transaction is mined."""
        signed, address = self.deployment()
        await chain.send_raw(signed.raw)
        return address

    async def emit(self, chain: Chain, contract: bytes, *records: Record) -> SignedTransaction:
        """Have logs emitted; returns the transaction, which waits or is mined."""
        signed = self.emission(contract, *records)
        await chain.send_raw(signed.raw)
        return signed

    def _signed(self, to: bytes, data: bytes) -> SignedTransaction:
        tx = Transaction(self._chain_id, self.nonce, GWEI, 100 * GWEI, 1_000_000, to, 0, data)
        self.nonce += 1
        return sign_transaction(tx, self._key)


# --- Events -----------------------------------------------------------------------------------------------


def record(event: events.ContractEvent) -> Record:
    """A log of an event."""
    a, w = address_word, uint_word
    match event:
        case events.OrderFilled(order_hash, maker, asset, maker_amount, taker, taker_asset, taker_amount):
            topics = (events.ORDER_FILLED, order_hash, a(maker), a(taker))
            return topics, a(asset) + w(maker_amount) + a(taker_asset) + w(taker_amount)
        case events.OrderCancelled(order_hash, maker):
            return (events.ORDER_CANCELLED, order_hash, a(maker)), b""
        case events.OrdersCancelledUntil(maker, expiry):
            return (events.ORDERS_CANCELLED_UNTIL, a(maker)), w(expiry)
        case events.OrderSettled(order_hash, owner, nonce, src, dest, spent, received, filled, is_closed):
            data = w(nonce) + a(src) + a(dest) + w(spent) + w(received) + w(filled) + w(is_closed)
            return (events.ORDER_SETTLED, order_hash, a(owner)), data
        case events.OrderBridged(order_hash, selector4, destination, token, amount, output, bridge_id):
            data = (
                selector4.ljust(32, b"\0") + w(destination) + a(token) + w(amount) + w(output) + w(bridge_id)
            )
            return (events.ORDER_BRIDGED, order_hash), data
        case events.FeeAccrued(order_hash, receiver, token, amount, is_surplus):
            return (events.FEE_ACCRUED, order_hash, a(receiver)), a(token) + w(amount) + w(is_surplus)
        case events.NonceInvalidated(owner, nonce):
            return (events.NONCE_INVALIDATED, a(owner)), w(nonce)
        case events.OrderPreSigned(order_hash, owner, is_signed):
            return (events.ORDER_PRE_SIGNED, order_hash, a(owner)), w(is_signed)
        case events.Transfer(owner, receiver, amount):
            return (events.TRANSFER, a(owner), a(receiver)), w(amount)
        case events.Approval(owner, spender, amount):
            return (events.APPROVAL, a(owner), a(spender)), w(amount)
    raise ValueError(f"no record of {event}")


def records(*some: events.ContractEvent) -> Sequence[Record]:
    """Logs of events."""
    return [record(event) for event in some]
