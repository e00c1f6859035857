"""Funds, events and refusals for stories of the Rfq contract; a refusal changes nothing.

await funded(world)
order = world.an_rfq_order()
receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
assert rfq_events(world, receipt) == [filled(world, order)]
assert await refusal(world, world.taker, calldata.fill_order(order, b""), order) == ALREADY_FILLED
"""

from collections.abc import Sequence

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import (
    WORD_BYTES,
    Dynamic,
    address_word,
    bytes_tail,
    decode_uint,
    encode,
    selector,
    uint_word,
)
from cambist.codecs.contracts.calldata import OrderInfo, rfq_order_words
from cambist.codecs.contracts.contract_events import ContractEvent, OrderFilled, decode_event
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall, Receipt
from support.chain.world import MOST, ONE, USDC, World

FILLED_OR_CANCELLED = 1
ALREADY_FILLED = "Order already filled or expired"
TRANSFER_FAILED = "TRANSFER_FROM_FAILED"
UNFILLED = "Couldn't swap the requested fill amount"


async def funded(world: World) -> None:
    """The maker has 10,000 USDC and the taker 10 WETH, and the Rfq may take them."""
    await world.give(world.maker, world.usdc, 10_000 * USDC, world.at.rfq)
    await world.give(world.taker, world.weth, 10 * ONE, world.at.rfq)


def rfq_events(world: World, receipt: Receipt) -> list[ContractEvent | None]:
    """Events of the Rfq contract in a transaction, in order."""
    return [decode_event(log.topics, log.data) for log in receipt.logs if log.address == world.at.rfq]


def filled(
    world: World,
    order: RfqOrder,
    maker_amount: int | None = None,
    taker_amount: int | None = None,
    target: bytes | None = None,
) -> OrderFilled:
    """Event of a fill; by default the taker fills the whole order."""
    return OrderFilled(
        order_hash=world.rfq_hash(order),
        maker=order.maker,
        maker_asset=order.maker_asset,
        maker_amount=order.maker_amount if maker_amount is None else maker_amount,
        taker=world.taker.address if target is None else target,
        taker_asset=order.taker_asset,
        taker_amount=order.taker_amount if taker_amount is None else taker_amount,
    )


async def remaining(world: World, order: RfqOrder) -> int:
    """As the contract keeps it: 0 never seen, 1 closed, else what is left of makerAmount + 1."""
    return await world.ask(world.at.rfq, calldata.remaining(order.maker, world.rfq_hash(order)))


async def remaining_of(world: World, maker: bytes, order_hashes: Sequence[bytes]) -> list[int]:
    """`remaining` of many orders of a maker, in one call."""
    question = EthCall(world.at.rfq, calldata.remaining_balances(maker, order_hashes))
    answer = await world.chain.call(question)
    count = decode_uint(answer, 1)
    assert len(answer) == (2 + count) * WORD_BYTES
    return [decode_uint(answer, 2 + at) for at in range(count)]


async def refusal(world: World, key: SigningKey, data: bytes, *orders: RfqOrder, value_wei: int = 0) -> str:
    """Reason of a call that the Rfq refuses. No balance, allowance or order's remaining amount changes."""
    before = await _state(world, orders)
    reason = await world.refused(key, world.at.rfq, data, value_wei=value_wei)
    assert await _state(world, orders) == before
    return reason


async def _state(world: World, orders: Sequence[RfqOrder]) -> list[bytes | str]:
    people = (world.maker, world.user, world.taker, world.partner, world.stranger)
    owners = {person.address for person in people} | {order.maker for order in orders} | {world.at.rfq}
    assets = {asset for order in orders for asset in (order.maker_asset, order.taker_asset)}
    tokens = {world.weth, world.usdc, world.dai} | assets
    questions = [
        EthCall(token, question)
        for token in sorted(tokens)
        for owner in sorted(owners)
        for question in (calldata.balance_of(owner), calldata.allowance(owner, world.at.rfq))
    ] + [EthCall(world.at.rfq, calldata.remaining(order.maker, world.rfq_hash(order))) for order in orders]
    answers = await world.chain.call_many(questions)
    return [answer if isinstance(answer, bytes) else str(answer) for answer in answers]


async def the_returned(world: World, key: SigningKey, data: bytes) -> int:
    """Number that a call of the Rfq would return to an account."""
    return decode_uint(await world.chain.call(EthCall(world.at.rfq, data, key.address)))


# --- Contracts as makers ----------------------------------------------------------------------------------


async def a_wallet(world: World, key: SigningKey) -> bytes:
    """A smart wallet of that key, which signs as EIP-1271 has it; 10,000 USDC in it that the Rfq may take."""
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(key.address))
    await world.mint(world.usdc, wallet, 10_000 * USDC)
    await world.send(key, wallet, execute(world.usdc, calldata.approve(world.at.rfq, MOST)))
    return wallet


async def a_wallet_that_sells(world: World) -> bytes:
    """A smart wallet of the user's key, with 2 WETH that Delta may take."""
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(world.user.address))
    await world.send(world.user, world.weth, calldata.transfer(wallet, 2 * ONE))
    await world.send(world.user, wallet, execute(world.weth, calldata.approve(world.at.delta, MOST)))
    return wallet


def execute(target: bytes, data: bytes) -> bytes:
    """Calldata that makes a wallet call something."""
    return selector("execute(address,uint256,bytes)") + encode(
        address_word(target), uint_word(0), bytes_tail(data)
    )


def wallet_key(key: SigningKey) -> bytes:
    """Calldata that makes a wallet sign with another key, sent by its present one."""
    return selector("setKey(address)") + address_word(key.address)


# --- Calls that only tests make ---------------------------------------------------------------------------


def order_hash_question(order: RfqOrder) -> bytes:
    """Calldata of `getOrderHash`."""
    return _selector("getOrderHash") + rfq_order_words(order)


def try_fill(info: OrderInfo, taker: bytes, target: bytes, taker_most: int, maker_most: int) -> bytes:
    """Calldata of `tryFill`, which the contract keeps to itself."""
    array = calldata.order_infos_tail([info]).tail
    element = Dynamic(array[2 * WORD_BYTES :])  # without its length and the element's offset
    words = address_word(taker), address_word(target), uint_word(taker_most), uint_word(maker_most)
    return _selector("tryFill") + encode(element, *words)


def _selector(name: str) -> bytes:
    found = [
        found for signature, found in artifact("Rfq").selectors().items() if signature.startswith(f"{name}(")
    ]
    assert len(found) == 1
    return found[0]
