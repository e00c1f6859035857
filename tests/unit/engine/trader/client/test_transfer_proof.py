"""Logs of false and of other contracts prove no delivery and no refund of a bridge."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from cambist.codecs.bridges.across import RelayData
from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.bridges.cctp import CctpBurn, CctpMessage, pack_burn
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import OrderBridged, OrderSettled, Transfer
from cambist.codecs.eip712_orders.delta import KIND_SELL, DeltaBridge, DeltaOrder
from cambist.codecs.messages.delta_messages import (
    OrderInput,
    OrderOutput,
    OrderRecord,
    OrderTransaction,
    Refund,
)
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.index.watch import UNWRAPPED
from cambist.engine.chain.port import At, EthCall, Receipt
from cambist.engine.trader.client.order.order_following import SettledOnChain, Subject, proven
from cambist.engine.trader.client.order.order_safety import CheckedOrder
from cambist.engine.trader.client.order.transfer_proof import HandedTransfer, ProvenAmount, TransferProof
from support.chain.bridge_logs import deposited, filled, message_received, message_sent, minted, refunded
from support.chain.log_emitter import Record, record
from support.chain.scripted_chain import ScriptedChain, tx

HERE, THERE = 31_337, 10
OWNER, RECEIVER, THIEF = b"\x0a" * 20, b"\x0b" * 20, b"\x66" * 20
TOKEN, OUTPUT = b"\x71" * 20, b"\x72" * 20
POOL, FAR_POOL, TRANSMITTER, MESSENGER = b"\x81" * 20, b"\x82" * 20, b"\x83" * 20, b"\x84" * 20
AMOUNT, ARRIVES = 1_000, 990
HASH = b"\x99" * 32
DELTA = b"\xde" * 20
RELAY = RelayData(
    address_word(OWNER),
    address_word(RECEIVER),
    bytes(32),
    address_word(TOKEN),
    address_word(OUTPUT),
    AMOUNT,
    ARRIVES,
    HERE,
    7,
    2_000_000_000,
    0,
)
BURN = CctpBurn(address_word(TOKEN), address_word(RECEIVER), AMOUNT, address_word(b"\x85" * 20), 10)
MESSAGE = CctpMessage(
    0,
    2,
    bytes(32),
    address_word(MESSENGER),
    address_word(b"\x86" * 20),
    bytes(32),
    2_000,
    0,
    pack_burn(BURN),
)


class BalanceChain(ScriptedChain):
    """A chain on which the receiver's native tokens grow in the last block."""

    grows = 0

    async def balance(self, address: bytes, at: At = None) -> int:
        assert address == RECEIVER
        return self.grows if at == len(self.line) - 1 else 0


def a_proof(kind: BridgeKind = BridgeKind.ACROSS) -> TransferProof:
    bridge = DeltaBridge(SELECTORS[kind], THERE, OUTPUT, 0, b"")
    order = DeltaOrder(
        OWNER,
        RECEIVER,
        b"\x70" * 20,
        TOKEN,
        5,
        ARRIVES,
        ARRIVES,
        2_000_000_000,
        KIND_SELL,
        1,
        0,
        b"",
        b"",
        bridge,
    )
    return TransferProof(order, bridge, HERE, RECEIVER)


def paid(receiver: bytes = RECEIVER, amount: int = ARRIVES, token: bytes = OUTPUT) -> tuple[bytes, Record]:
    return token, record(Transfer(THIEF, receiver, amount))


async def mined(chain: ScriptedChain, *logs: tuple[bytes, Record]) -> Receipt:
    """The receipt of a new transaction with these logs."""
    name = b"%d" % len(chain.line)
    chain.grow([tx(name, *logs)])
    (tx_hash,) = chain.line[-1].tx_hashes
    receipt = await chain.receipt(tx_hash)
    assert receipt is not None
    return receipt


async def handed(proof: TransferProof, *logs: tuple[bytes, Record]) -> HandedTransfer:
    """A transfer whose settlement has these logs, by default those of its deposit or burn."""
    is_across = proof.bridge.protocol_selector == SELECTORS[BridgeKind.ACROSS]
    own = (POOL, deposited(RELAY, THERE)) if is_across else (TRANSMITTER, message_sent(MESSAGE))
    number = 7 if is_across else 0
    event = OrderBridged(HASH, proof.bridge.protocol_selector, THERE, OUTPUT, AMOUNT, ARRIVES, number)
    return HandedTransfer(event, await mined(ScriptedChain(), *(logs or (own,))))


async def delivered(
    *logs: tuple[bytes, Record], kind: BridgeKind = BridgeKind.ACROSS, grows: int = 0, count: int = 1
) -> ProvenAmount:
    """Proof of a transaction with these logs, named as the delivery of `count` equal transfers."""
    proof, chain = a_proof(kind), BalanceChain()
    chain.grows = grows
    receipt = await mined(chain, *logs)
    one = await handed(proof)
    return await proof.deliveries(chain, [(one, to_hex(receipt.tx_hash))] * count)


# --- Across -------------------------------------------------------------------------------------------


async def test_a_fill_that_pays_is_a_delivery() -> None:
    fill = FAR_POOL, filled(RELAY)
    assert await delivered(fill, paid()) == ProvenAmount(ARRIVES)
    assert await delivered(fill, paid(amount=900), paid(amount=90)) == ProvenAmount(ARRIVES)
    more = FAR_POOL, filled(RELAY, output=995)
    assert await delivered(more, paid(amount=995)) == ProvenAmount(995)


@pytest.mark.parametrize(
    ("fill", "arrives"),
    [
        (replace(RELAY, deposit_id=8), 0),
        (replace(RELAY, origin_chain_id=1), 0),
        (replace(RELAY, depositor=address_word(THIEF)), 0),
        (replace(RELAY, recipient=address_word(THIEF)), 0),
        (replace(RELAY, output_token=address_word(THIEF)), 0),
        (replace(RELAY, fill_deadline=1), 0),
    ],
)
async def test_a_fill_of_another_deposit_is_none(fill: RelayData, arrives: int) -> None:
    told = await delivered((FAR_POOL, filled(fill)), paid())
    assert f"delivers {arrives} raw units, the bridge promised {ARRIVES}" in told.fault


async def test_a_fill_for_less_or_for_another_is_none() -> None:
    changes: tuple[dict[str, Any], ...] = ({"output": ARRIVES - 1}, {"recipient": address_word(THIEF)})
    for changed in changes:
        told = await delivered((FAR_POOL, filled(RELAY, **changed)), paid())
        assert f"the bridge promised {ARRIVES}" in told.fault, changed


@pytest.mark.parametrize(
    "logs",
    [
        (),
        (paid(amount=ARRIVES - 1),),
        (paid(THIEF),),
        (paid(token=TOKEN),),
        (paid(token=THIEF),),
        ((THIEF, ((UNWRAPPED, address_word(FAR_POOL)), uint_word(ARRIVES))),),
        ((OUTPUT, ((UNWRAPPED, address_word(FAR_POOL)), uint_word(ARRIVES - 1))),),
    ],
)
async def test_a_fill_that_pays_nothing_of_the_token_is_none(logs: tuple[tuple[bytes, Record], ...]) -> None:
    """The log may be of a contract that somebody made for it; a balance of native tokens is no proof."""
    told = await delivered((FAR_POOL, filled(RELAY)), *logs, grows=ARRIVES)
    assert told.fault.endswith(f"does not pay the receiver {ARRIVES} raw units")


@pytest.mark.parametrize(
    "unwrapped",
    [(OUTPUT, ((UNWRAPPED, address_word(FAR_POOL)), uint_word(ARRIVES))), paid(bytes(20))],
    ids=["WETH9", "burned, as on Arbitrum"],
)
async def test_wrapped_native_tokens_may_arrive_unwrapped(unwrapped: tuple[bytes, Record]) -> None:
    fill = FAR_POOL, filled(RELAY)
    assert await delivered(fill, unwrapped, grows=ARRIVES) == ProvenAmount(ARRIVES)
    assert "its balance moved by 989" in (await delivered(fill, unwrapped, grows=ARRIVES - 1)).fault


async def test_one_payment_is_not_two_deliveries() -> None:
    fill = FAR_POOL, filled(RELAY)
    told = await delivered(fill, paid(), count=2)
    assert told.fault.endswith(f"does not pay the receiver {2 * ARRIVES} raw units")


@pytest.mark.parametrize(
    "deposit",
    [
        replace(RELAY, deposit_id=8),
        replace(RELAY, depositor=address_word(THIEF)),
        replace(RELAY, recipient=address_word(THIEF)),
        replace(RELAY, input_amount=AMOUNT - 1),
        replace(RELAY, output_amount=ARRIVES - 1),
        replace(RELAY, input_token=address_word(THIEF)),
        replace(RELAY, output_token=address_word(THIEF)),
    ],
)
async def test_a_settlement_that_deposits_something_else_has_no_delivery(deposit: RelayData) -> None:
    proof, chain = a_proof(), ScriptedChain()
    one = await handed(proof, (POOL, deposited(deposit, THERE)))
    receipt = await mined(chain, (FAR_POOL, filled(deposit)), (FAR_POOL, filled(RELAY)), paid())
    told = await proof.deliveries(chain, [(one, to_hex(receipt.tx_hash))])
    assert "delivers 0 raw units" in told.fault


async def test_logs_of_a_reverted_transaction_prove_nothing() -> None:
    class Reverting(ScriptedChain):
        async def receipt(self, tx_hash: bytes) -> Receipt | None:
            found = await super().receipt(tx_hash)
            return None if found is None else replace(found, succeeded=False)

    proof, chain = a_proof(), Reverting()
    receipt = await mined(chain, (FAR_POOL, filled(RELAY)), paid())
    told = await proof.deliveries(chain, [(await handed(proof), to_hex(receipt.tx_hash))])
    assert "delivers 0 raw units" in told.fault


# --- CCTP ---------------------------------------------------------------------------------------------


def attested(message: CctpMessage = MESSAGE, fee: int = 0, **changed: Any) -> tuple[bytes, Record]:
    burn = replace(BURN, fee_executed=fee, expiration_block=9, **changed)
    return TRANSMITTER, message_received(replace(message, nonce=HASH, body=pack_burn(burn)))


def a_mint(amount: int = AMOUNT, to: bytes = RECEIVER, token: bytes = OUTPUT) -> tuple[bytes, Record]:
    return MESSENGER, minted(to, token, amount)


async def test_a_message_that_is_minted_is_a_delivery() -> None:
    for fee in (0, 10):
        left = AMOUNT - fee
        told = await delivered(attested(fee=fee), a_mint(left), paid(amount=left), kind=BridgeKind.CCTP)
        assert told == ProvenAmount(left)


@pytest.mark.parametrize(
    "logs",
    [
        (attested(), paid(amount=AMOUNT)),
        (a_mint(), paid(amount=AMOUNT)),
        (attested(replace(MESSAGE, source_domain=1)), a_mint(), paid(amount=AMOUNT)),
        (attested(replace(MESSAGE, sender=address_word(THIEF))), a_mint(), paid(amount=AMOUNT)),
        (attested(burn_token=address_word(THIEF)), a_mint(), paid(amount=AMOUNT)),
        (attested(mint_recipient=address_word(THIEF)), a_mint(), paid(amount=AMOUNT)),
        (attested(message_sender=address_word(THIEF)), a_mint(), paid(amount=AMOUNT)),
        (attested(amount=AMOUNT - 1), a_mint(AMOUNT - 1), paid(amount=AMOUNT)),
        (attested(), a_mint(AMOUNT - 1), paid(amount=AMOUNT)),
        (attested(), a_mint(to=THIEF), paid(amount=AMOUNT)),
        (attested(), a_mint(token=THIEF), paid(amount=AMOUNT)),
        ((TRANSMITTER, message_received(replace(MESSAGE, body=b"short"))), a_mint(), paid(amount=AMOUNT)),
    ],
)
async def test_another_message_or_mint_is_none(logs: tuple[tuple[bytes, Record], ...]) -> None:
    told = await delivered(*logs, kind=BridgeKind.CCTP)
    assert "delivers 0 raw units" in told.fault


async def test_a_mint_below_the_promise_or_without_a_payment_is_none() -> None:
    dear = await delivered(attested(fee=11), a_mint(989), paid(amount=989), kind=BridgeKind.CCTP)
    assert f"delivers 989 raw units, the bridge promised {ARRIVES}" in dear.fault
    unpaid = await delivered(attested(), a_mint(), kind=BridgeKind.CCTP)
    assert unpaid.fault.endswith(f"does not pay the receiver {AMOUNT} raw units")


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": AMOUNT - 1},
        {"mint_recipient": address_word(THIEF)},
        {"burn_token": address_word(THIEF)},
    ],
)
async def test_a_settlement_that_burns_something_else_has_no_delivery(changed: dict[str, Any]) -> None:
    proof, chain = a_proof(BridgeKind.CCTP), ScriptedChain()
    other = pack_burn(replace(BURN, **changed))
    one = await handed(proof, (TRANSMITTER, message_sent(replace(MESSAGE, body=other))))
    amount = changed.get("amount", AMOUNT)
    receipt = await mined(chain, attested(**changed), a_mint(amount), paid(amount=amount))
    told = await proof.deliveries(chain, [(one, to_hex(receipt.tx_hash))])
    assert "delivers 0 raw units" in told.fault


async def test_the_message_is_found_among_others() -> None:
    proof, chain = a_proof(BridgeKind.CCTP), ScriptedChain()
    others = [b"short", pack_burn(replace(BURN, amount=5))]
    sent = [(TRANSMITTER, message_sent(replace(MESSAGE, body=body))) for body in (*others, MESSAGE.body)]
    one = await handed(proof, *sent)
    receipt = await mined(chain, attested(amount=5), a_mint(5), attested(), a_mint(), paid(amount=AMOUNT))
    assert await proof.deliveries(chain, [(one, to_hex(receipt.tx_hash))]) == ProvenAmount(AMOUNT)


# --- Refunds ------------------------------------------------------------------------------------------


async def returned(*logs: tuple[bytes, Record], kind: BridgeKind = BridgeKind.ACROSS) -> ProvenAmount:
    """Proof of a transaction with these logs, named as the refund of a transfer."""
    proof, chain = a_proof(kind), ScriptedChain()
    receipt = await mined(chain, *logs)
    told = Refund(to_hex(receipt.tx_hash), HERE, to_checksum(TOKEN), str(AMOUNT))
    return await proof.refunds(chain, [await handed(proof)], [told])


async def test_a_leaf_that_pays_the_owner_is_a_refund() -> None:
    leaf = POOL, refunded(TOKEN, [(THIEF, 5), (OWNER, AMOUNT)])
    assert await returned(leaf, paid(OWNER, AMOUNT, TOKEN)) == ProvenAmount(AMOUNT)
    more = POOL, refunded(TOKEN, [(OWNER, AMOUNT + 5)])
    assert await returned(more, paid(OWNER, AMOUNT + 5, TOKEN)) == ProvenAmount(AMOUNT)


@pytest.mark.parametrize(
    "logs",
    [
        (paid(OWNER, AMOUNT, TOKEN),),
        ((POOL, refunded(TOKEN, [(OWNER, AMOUNT)])),),
        ((POOL, refunded(TOKEN, [(OWNER, AMOUNT)])), paid(RECEIVER, AMOUNT, TOKEN)),
        ((POOL, refunded(TOKEN, [(OWNER, AMOUNT)])), paid(OWNER, AMOUNT, OUTPUT)),
        ((POOL, refunded(TOKEN, [(OWNER, AMOUNT)])), paid(OWNER, AMOUNT - 1, TOKEN)),
        ((THIEF, refunded(TOKEN, [(OWNER, AMOUNT)])), paid(OWNER, AMOUNT, TOKEN)),
        ((POOL, refunded(OUTPUT, [(OWNER, AMOUNT)])), paid(OWNER, AMOUNT, TOKEN)),
        ((POOL, refunded(TOKEN, [(THIEF, AMOUNT)])), paid(OWNER, AMOUNT, TOKEN)),
        ((POOL, refunded(TOKEN, [(OWNER, AMOUNT - 1)])), paid(OWNER, AMOUNT, TOKEN)),
    ],
)
async def test_another_leaf_or_payment_is_none(logs: tuple[tuple[bytes, Record], ...]) -> None:
    assert (await returned(*logs)).fault.endswith(f"does not refund {AMOUNT} raw units to the owner")


async def test_cctp_refunds_nothing() -> None:
    logs = (POOL, refunded(TOKEN, [(OWNER, AMOUNT)])), paid(OWNER, AMOUNT, TOKEN)
    told = await returned(*logs, kind=BridgeKind.CCTP)
    assert told.fault.endswith(f"does not refund {AMOUNT} raw units to the owner")


# --- The end of an order ------------------------------------------------------------------------------


class StateChain(ScriptedChain):
    """An origin on which the order is closed."""

    async def call(self, call: EthCall, at: At = None) -> bytes:
        assert call.to == DELTA
        return HASH[:-1] + b"\x98" + uint_word(1) + uint_word(0)


def settled(order_hash: bytes, amount: int = AMOUNT) -> tuple[bytes, Record]:
    event = OrderSettled(order_hash, OWNER, 1, b"\x70" * 20, TOKEN, 5, amount, 5, is_closed=True)
    return DELTA, record(event)


def bridged(order_hash: bytes, amount: int = AMOUNT, destination: int = THERE) -> tuple[bytes, Record]:
    selector4 = SELECTORS[BridgeKind.ACROSS]
    return DELTA, record(OrderBridged(order_hash, selector4, destination, OUTPUT, amount, ARRIVES, 7))


async def ended(*logs: tuple[bytes, Record], rows: int = 1) -> SettledOnChain:
    """The result of an order whose settlement has these logs, as the venue names it and its delivery."""
    proof, chain, there = a_proof(), StateChain(), ScriptedChain()
    there.grow([tx(b"before")])
    origin = await mined(chain, *logs, (POOL, deposited(RELAY, THERE)))
    delivery = await mined(there, (FAR_POOL, filled(RELAY)), paid())
    row = OrderTransaction(to_hex(origin.tx_hash), to_hex(delivery.tx_hash), Decimal(100), "5", str(ARRIVES))
    told = OrderRecord(
        id="1",
        status=OrderStatus.COMPLETED,
        side=Side.SELL,
        type=OrderType.MARKET,
        on_chain_order_type=OnChainOrderType.ORDER,
        input=OrderInput(chain_id=HERE, token="0x"),
        output=OrderOutput(chain_id=THERE, token="0x", executed_amount=str(ARRIVES)),
        owner="0x",
        beneficiary="0x",
        order_hash=to_hex(HASH),
        partner="",
        order=Raw(),
        transactions=(row,) * rows,
        refunds=(),
        created_at="",
        updated_at="",
        expires_at="",
    )
    return await proven(chain, Subject(DELTA, CheckedOrder(proof.order, HASH), there), told)


async def test_an_order_that_left_by_its_bridge_is_proven_among_others() -> None:
    mine, theirs = (bridged(HASH), settled(HASH)), (bridged(b"\x77" * 32, 5), settled(b"\x77" * 32, 5))
    wanted = SettledOnChain(spent=5, received=ARRIVES, bridged=AMOUNT, is_closed=True)
    assert await ended(*mine) == wanted
    assert await ended(*theirs, *mine) == wanted


async def test_a_settlement_that_the_bridge_was_not_handed_is_told() -> None:
    said = "hands no such amount to its bridge"
    assert (await ended(settled(HASH))).fault.endswith(said)
    assert (await ended(bridged(HASH, AMOUNT - 1), settled(HASH))).fault.endswith(said)
    assert (await ended(bridged(HASH, destination=1), settled(HASH))).fault.endswith(said)
    assert (await ended(bridged(b"\x77" * 32), settled(HASH))).fault.endswith(said)
    assert (await ended(bridged(HASH), settled(HASH), rows=2)).fault.endswith(said)


def test_a_transfer_elsewhere_is_not_the_signed_one() -> None:
    proof = a_proof()
    event = OrderBridged(HASH, SELECTORS[BridgeKind.ACROSS], THERE, OUTPUT, AMOUNT, ARRIVES, 7)
    assert proof.is_signed(event)
    for changed in (
        {"protocol_selector": SELECTORS[BridgeKind.CCTP]},
        {"destination_chain_id": 1},
        {"output_token": THIEF},
    ):
        assert not proof.is_signed(replace(event, **changed))
