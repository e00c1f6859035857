"""A trader's orders across chains: the trader signs the agreed bridge, and both chains prove the end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import BridgeTerms, fee_of, input_of, output_of
from cambist.codecs.messages.vocabulary import OrderStatus, OrderType, Side
from cambist.config.errors import UnsafeTransaction
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trader.client.order.order_following import SettledOnChain
from cambist.engine.trader.client.order_terms import OrderWish
from cambist.engine.trader.client.schedule import Schedule
from cambist.engine.trader.client.terms import TradedToken
from support.chain.world import ONE, USDC, World, person
from support.client.order_trader import PAUSES
from support.client.scripted_bridges import ACROSS, CCTP, FEE, BridgeTrader, Lane, a_bridge_trader
from support.client.scripted_orders import OrderLies, Placed
from support.client.sent import STRANGE, strange_is_unknown_soon

QUOTED = 2_500 * USDC
ARRIVING = output_of(FEE, 0, QUOTED)
LEAST = ARRIVING * 9_950 // 10_000
BOTH = pytest.mark.parametrize("terms", [ACROSS, CCTP], ids=["across", "cctp"])


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BridgeTrader]:
    for pause in PAUSES:
        monkeypatch.setattr(pause, 0.01)
    async with a_bridge_trader(world) as trading:
        yield trading


# --- Orders -------------------------------------------------------------------------------------------


@BOTH
async def test_a_sale_arrives_on_the_other_chain_and_both_chains_prove_it(
    trader: BridgeTrader, terms: BridgeTerms
) -> None:
    trader.venue.terms = terms
    user, far = trader.world.user.address, trader.venue.far
    record, settled = await trader.settled(trader.bridging())
    arrived = ARRIVING if terms is ACROSS else QUOTED
    assert record.status is OrderStatus.COMPLETED
    assert settled == SettledOnChain(spent=ONE, received=arrived, bridged=QUOTED, is_closed=True)
    assert await far.balance(far.usdc, user) == arrived
    order = trader.venue.only_order
    assert (order.dest_token, order.dest_amount, order.expected_amount) == (
        trader.world.usdc,
        LEAST,
        ARRIVING,
    )
    assert order.bridge == trader.venue.way
    (query,) = trader.venue.queries
    assert (query["destChainId"], query["allowBridgeAndSwap"]) == ("31338", "false")
    (body,) = trader.venue.submissions
    assert body["order"]["bridge"]["destinationChainId"] == 31_338


@BOTH
async def test_a_purchase_pays_for_what_has_to_enter_the_bridge(
    trader: BridgeTrader, terms: BridgeTerms
) -> None:
    trader.venue.terms = terms
    wanted = 1_000 * USDC
    _, settled = await trader.settled(trader.bridging(side=Side.BUY, amount=wanted))
    entering = input_of(FEE, 0, wanted)
    arrived = wanted if terms is ACROSS else entering
    spent = -(-entering * ONE // QUOTED)
    assert settled == SettledOnChain(spent=spent, received=arrived, bridged=entering, is_closed=True)
    assert trader.venue.only_order.dest_amount == wanted


async def test_slices_arrive_one_by_one_at_another_receiver(trader: BridgeTrader) -> None:
    async def at_look(placed: Placed) -> None:
        if placed.status == "COMPLETED":
            return
        while placed.status != "BRIDGING":
            if placed.filled:
                await trader.world.pass_time(60)
            await trader.venue.settle(placed)
        await trader.venue.settle_and_deliver(placed)

    trader.venue.at_look = at_look
    receiver = person(8).address
    schedule, half = Schedule(2, 60), output_of(FEE, 0, QUOTED // 2)
    record, settled = await trader.settled(trader.bridging(schedule=schedule, beneficiary=receiver))
    assert [each.received_amount for each in record.transactions] == [str(half), str(half)]
    assert settled == SettledOnChain(spent=ONE, received=2 * half, bridged=QUOTED, is_closed=True)
    far = trader.venue.far
    assert await far.balance(far.usdc, receiver) == 2 * half


async def test_a_limit_is_of_what_arrives(trader: BridgeTrader) -> None:
    wish = trader.bridging(type=OrderType.LIMIT, limit_amount=2_400 * USDC)
    _, settled = await trader.settled(wish)
    assert settled.fault == ""
    assert trader.venue.only_order.dest_amount == 2_400 * USDC


async def test_wrapped_native_tokens_of_another_scale_arrive_unwrapped(trader: BridgeTrader) -> None:
    world, far = trader.world, trader.venue.far
    await far.chain.set_balance(far.maker.address, 10_000 * ONE)
    await far.give(far.maker, far.weth, 5_000 * ONE, far.spoke_pool)
    trader.venue.lane = Lane(world.usdc, far.weth, 12)
    weth = TradedToken(far.weth, "WETH", 18)
    before = await far.chain.balance(world.user.address)
    record, settled = await trader.settled(trader.bridging(dest=weth))
    arrived = ARRIVING * 10**12
    assert settled == SettledOnChain(spent=ONE, received=arrived, bridged=QUOTED, is_closed=True)
    assert await far.chain.balance(world.user.address) == before + arrived
    assert await far.balance(far.weth, world.user) == 0
    assert record.output.min_amount == str(arrived * 9_950 // 10_000)


async def test_without_a_node_of_the_destination_what_arrived_is_the_venues_word(
    trader: BridgeTrader,
) -> None:
    offer, record = await ended(trader)
    settled = await trader.proven_by(None, offer, record)
    assert settled == SettledOnChain(spent=ONE, bridged=QUOTED, unproven=ARRIVING, is_closed=True)


async def test_what_happens_is_told_with_amounts(trader: BridgeTrader) -> None:
    _, record = await ended(trader)
    (transaction,) = record.transactions
    assert trader.told[-4:] == [
        f"settled by {transaction.origin_tx}, 100.0 %",
        f"order {record.id} is BRIDGING: on its way to chain 31338, {LEAST} raw units at least",
        f"delivered by {transaction.destination_tx} on chain 31338: {ARRIVING} raw units",
        f"order {record.id} is COMPLETED: settled",
    ]


# --- Refunds ------------------------------------------------------------------------------------------


async def test_a_refund_comes_back_on_the_origin_and_is_proven_there(trader: BridgeTrader) -> None:
    trader.venue.at_look = trader.venue.settle_and_refund
    before = await trader.has(trader.world.usdc)
    offer, record = await ended(trader)
    assert record.status is OrderStatus.REFUNDED
    for there in (trader.venue.far.chain, None):
        settled = await trader.proven_by(there, offer, record)
        assert settled == SettledOnChain(spent=ONE, bridged=QUOTED, refunded=QUOTED, is_closed=True)
    assert await trader.has(trader.world.usdc) == before + QUOTED
    (refund,) = record.refunds
    assert trader.told[-3:] == [
        f"order {record.id} is REFUNDING: the bridge failed, and what entered it is on its way back",
        f"refunded by {refund.tx} on chain 31337: {QUOTED} raw units",
        f"order {record.id} is REFUNDED: the bridge failed, and what entered it came back",
    ]


async def test_a_refund_that_did_not_come_is_not_believed(trader: BridgeTrader) -> None:
    trader.venue.at_look = trader.venue.settle_and_refund
    offer, record = await ended(trader)
    (refund,) = record.refunds
    settlement = record.transactions[0].origin_tx
    for lie, said in (
        ((), f"0 raw units came back, and {QUOTED} entered the bridge"),
        ((refund, refund), f"does not refund {2 * QUOTED} raw units"),
        ((replace(refund, amount="1"),), f"1 raw units came back, and {QUOTED} entered the bridge"),
        ((replace(refund, amount=str(QUOTED + 1)),), f"does not refund {QUOTED + 1} raw units"),
        ((replace(refund, amount="many"),), "got 'many'"),
        ((replace(refund, tx=settlement),), f"{settlement} does not refund {QUOTED} raw units"),
        ((replace(refund, tx=to_hex(STRANGE)),), f"does not refund {QUOTED} raw units"),
        ((replace(refund, tx="0x1"),), "refunds.tx"),
        ((replace(refund, chain_id=31_338),), "on chain 31338 is not the order's"),
        ((replace(refund, token=to_hex(trader.world.weth)),), "on chain 31337 is not the order's"),
    ):
        with strange_is_unknown_soon():
            settled = await trader.proven_by(None, offer, replace(record, refunds=lie))
        assert said in settled.fault, (lie, settled)


async def test_a_payment_that_no_pool_made_is_no_refund(trader: BridgeTrader) -> None:
    """The venue sends the tokens itself: nothing says that the deposit cannot be filled any more."""
    trader.venue.at_look = trader.venue.settle_and_refund
    offer, record = await ended(trader)
    world = trader.world
    paid = await world.send(
        world.owner,
        world.usdc,
        bytes.fromhex("40c10f19") + world.user.address.rjust(32, b"\0") + QUOTED.to_bytes(32, "big"),
    )
    lie = replace(record.refunds[0], tx=to_hex(paid.tx_hash))
    settled = await trader.proven_by(None, offer, replace(record, refunds=(lie,)))
    assert settled.fault.endswith(f"does not refund {QUOTED} raw units to the owner")


# --- Lies about deliveries ----------------------------------------------------------------------------


@BOTH
async def test_a_delivery_that_did_not_happen_is_not_believed(
    trader: BridgeTrader, terms: BridgeTerms
) -> None:
    trader.venue.terms = terms
    offer, record = await ended(trader)
    _, other = await ended(trader, trader.bridging(amount=2 * ONE))
    (mine,), (theirs,) = record.transactions, other.transactions
    arrived = int(mine.received_amount or 0)
    there = trader.venue.far.chain
    for changed, said in (
        ({"destination_tx": None}, "names no delivery of a part"),
        ({"destination_tx": to_hex(STRANGE)}, "chain 31338 does not know the transaction 0x1111"),
        ({"destination_tx": "0x1"}, "destinationTx"),
        ({"destination_tx": theirs.destination_tx}, "delivers 0 raw units, the bridge promised"),
        ({"origin_tx": theirs.origin_tx}, "settles nothing of this order"),
    ):
        lie = replace(record, transactions=(replace(mine, **changed),))
        with strange_is_unknown_soon():
            assert said in (await trader.proven_by(there, offer, lie)).fault, changed
    output = replace(record.output, executed_amount=str(arrived + 1))
    settled = await trader.proven_by(there, offer, replace(record, output=output))
    assert settled.fault == f"the venue says {arrived + 1} raw units were executed, and the chain {arrived}"
    lie = replace(record, transactions=())
    assert "executed, and the chain 0" in (await trader.proven_by(there, offer, lie)).fault


async def test_a_delivery_of_the_same_amount_to_another_is_not_mine(trader: BridgeTrader) -> None:
    offer, record = await ended(trader)
    receiver = person(8).address
    _, other = await ended(trader, trader.bridging(beneficiary=receiver))
    lie = replace(record.transactions[0], destination_tx=other.transactions[0].destination_tx)
    settled = await trader.proven_by(trader.venue.far.chain, offer, replace(record, transactions=(lie,)))
    assert "delivers 0 raw units" in settled.fault


async def test_a_purchase_that_the_venue_says_cost_less_is_told(trader: BridgeTrader) -> None:
    offer, record = await ended(trader, trader.bridging(side=Side.BUY, amount=1_000 * USDC))
    lie = replace(record, input=replace(record.input, executed_amount="1"))
    settled = await trader.proven_by(None, offer, lie)
    assert settled.fault.startswith("the venue says 1 raw units were executed, and the chain 4")


async def test_a_price_of_a_token_that_is_none_is_not_signed(trader: BridgeTrader) -> None:
    def lies(block: dict[str, Any]) -> dict[str, Any]:
        route = block["route"]
        output = route["origin"]["output"]
        nothing = output | {"token": output["token"] | {"address": to_hex(b"\x66" * 20)}}
        return block | {"route": route | {"origin": route["origin"] | {"output": nothing}}}

    trader.venue.order_lies = OrderLies(price=lies)
    wish = trader.bridging()
    assert wish.bridging is not None
    with pytest.raises(UnsafeTransaction, match=r"address of route\.origin\.output"):
        await trader.place(wish)
    with pytest.raises(UnsafeTransaction, match="expected a token on the origin chain"):
        await trader.place(replace(wish, bridging=replace(wish.bridging, via=None)))
    assert trader.venue.submissions == []


async def test_the_fee_that_is_shown_is_the_bridges_own(trader: BridgeTrader) -> None:
    offer = await trader.placer().offer(trader.bridging())
    bridge = offer.terms.bridge
    assert bridge is not None
    assert (bridge.fee, bridge.token.decimals, bridge.token.symbol) == (fee_of(FEE, QUOTED), 6, "USDC")


async def ended(trader: BridgeTrader, wish: OrderWish | None = None) -> tuple[Any, Any]:
    """Place an order and follow it to its end: the offer, and the last record."""
    offer, placed = await trader.place(wish or trader.bridging())
    assert placed.record is not None, placed.fault
    return offer, await trader.followed(placed.record)
