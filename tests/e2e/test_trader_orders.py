"""A trader's Delta orders: the trader signs the agreed terms, and the chain proves the end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.messages.vocabulary import OrderStatus, OrderType, Side
from cambist.config.errors import ChainError, VenueError
from cambist.crypto.addresses import to_checksum
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.transact import StepFailedError
from cambist.engine.trader.client.allowing import Allowing
from cambist.engine.trader.client.order.order_following import OrderFollower, SettledOnChain
from cambist.engine.trader.client.order.order_placing import take_back
from support.chain.world import MOST, NATIVE, ONE, USDC, World, person
from support.client.order_trader import ETH, PAUSES, OrderTrader, an_order_trader
from support.client.scripted_orders import OrderLies
from support.client.sent import given_up_once_sent
from support.patience import PATIENCE_S

THIEF = b"\x66" * 20
THIEF_TEXT = f"0x{THIEF.hex()}"
LIMIT = 2_500 * USDC * 9_950 // 10_000


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OrderTrader]:
    for pause in PAUSES:
        monkeypatch.setattr(pause, 0.01)
    async with an_order_trader(world) as trading:
        yield trading


# --- Orders -------------------------------------------------------------------------------------------


async def test_a_sale_costs_an_approval_and_brings_what_the_chain_says(
    trader: OrderTrader,
) -> None:
    world = trader.world
    record, settled = await trader.settled()
    assert record.status is OrderStatus.COMPLETED
    assert settled == SettledOnChain(spent=ONE, received=2_500 * USDC, is_closed=True)
    assert await trader.has(world.usdc) == 12_500 * USDC
    assert await trader.has(world.weth) == 9 * ONE
    assert await trader.venue.allowed(world.weth, world.user.address) == 0
    sent = [line for line in trader.told if line.startswith("sending")]
    assert len(sent) == 1
    assert sent[0].startswith("sending the approval 0x")
    order = trader.venue.only_order
    assert (order.dest_amount, order.expected_amount, order.owner) == (
        LIMIT,
        2_500 * USDC,
        world.user.address,
    )
    assert order.nonce == int.from_bytes(keccak256(b"\1"), "big")
    (body,) = trader.venue.submissions
    assert (trader.venue.only.type, body["partner"]) == ("MARKET", "anon")
    assert len(body["signature"]) == 2 + 2 * 64
    assert trader.told[-3].endswith("is PENDING: it waits for a bid")
    assert trader.told[-2].startswith("settled by 0x")
    assert trader.told[-1].endswith("is COMPLETED: settled")


async def test_a_purchase_spends_what_the_chain_says(trader: OrderTrader) -> None:
    wish = trader.wish(side=Side.BUY, amount=1_000 * USDC, slippage_bps=100)
    _, settled = await trader.settled(wish)
    assert (settled.spent, settled.received, settled.fault) == (4 * ONE // 10, 1_000 * USDC, "")
    assert trader.venue.only_order.src_amount == 404 * ONE // 1_000
    assert await trader.has(trader.world.weth) == 96 * ONE // 10


async def test_a_permit_takes_the_place_of_an_approval(trader: OrderTrader) -> None:
    wish = trader.wish(src=trader.usdc, dest=trader.weth, amount=2_500 * USDC)
    before = await trader.world.chain.nonce(trader.world.user.address)
    _, settled = await trader.settled(wish, Allowing.PERMIT)
    assert settled.received == ONE
    assert len(trader.venue.only_order.permit) == 224
    assert await trader.world.chain.nonce(trader.world.user.address) == before


async def test_any_amount_is_approved_only_when_asked_for_and_then_once(trader: OrderTrader) -> None:
    await trader.settled(allowing=Allowing.MOST)
    assert await trader.venue.allowed(trader.world.weth, trader.world.user.address) >= MOST - ONE
    offer, _ = await trader.place()
    assert not offer.missing
    assert len([line for line in trader.told if "approval" in line]) == 1


async def test_native_tokens_are_deposited_for_the_order_that_was_checked(trader: OrderTrader) -> None:
    offer, placed = await trader.place(trader.wish(src=ETH))
    assert offer.must_deposit
    assert not offer.missing
    assert await trader.deposited() == ONE
    assert placed.record is not None
    follower = OrderFollower(trader.client, placed.record.id, trader.told.append)
    await follower.follow(PATIENCE_S)
    assert follower.record is not None
    settled = await trader.proven(offer, placed, follower.record)
    assert (settled.received, settled.fault, settled.remarks) == (2_500 * USDC, "", ())
    assert await trader.deposited() == 0


async def test_native_tokens_are_bought_for_another(trader: OrderTrader) -> None:
    receiver = person(8).address
    wish = trader.wish(src=trader.usdc, dest=ETH, amount=5_000 * USDC, beneficiary=receiver)
    _, settled = await trader.settled(wish)
    assert settled == SettledOnChain(spent=5_000 * USDC, received=2 * ONE, is_closed=True)
    assert await trader.has(NATIVE, receiver) == 2 * ONE


async def test_a_limit_order_carries_its_limit_and_its_type(trader: OrderTrader) -> None:
    wish = trader.wish(type=OrderType.LIMIT, limit_amount=2_400 * USDC)
    _, settled = await trader.settled(wish)
    assert settled.received >= 2_400 * USDC
    order = trader.venue.only_order
    assert (order.dest_amount, order.expected_amount) == (2_400 * USDC, 2_400 * USDC)
    assert trader.venue.submissions[0]["type"] == "LIMIT"


async def test_the_partner_is_named_and_its_fee_is_in_the_bound(trader: OrderTrader) -> None:
    trader.venue.fee_bps = 50
    offer, placed = await trader.place(trader.wish(partner="wallet"))
    net = 2_500 * USDC * 9_950 // 10_000
    assert offer.terms.limit == net * 9_950 // 10_000
    assert placed.record is not None
    assert trader.venue.submissions[0]["partner"] == "wallet"


async def test_a_rehearsal_has_the_order_checked_and_signs_nothing(trader: OrderTrader) -> None:
    placer = trader.placer(Allowing.PERMIT)
    before = await trader.world.chain.nonce(trader.world.user.address)
    checked = await placer.rehearse(await placer.offer(trader.wish()))
    assert checked.order_hash == trader.world.delta_hash(checked.order)
    assert trader.venue.submissions == []
    assert await trader.world.chain.nonce(trader.world.user.address) == before


# --- What goes wrong ----------------------------------------------------------------------------------


async def test_too_little_to_sell_is_said_before_anything_is_sent(trader: OrderTrader) -> None:
    with pytest.raises(ChainError, match="has 10 WETH, and 11 WETH is needed"):
        await trader.place(trader.wish(amount=11 * ONE))
    assert trader.venue.builds == []


async def test_without_a_delta_block_there_is_no_offer(trader: OrderTrader) -> None:
    trader.venue.order_lies = OrderLies(quote=lambda _: {"market": {"srcAmount": "1"}})
    with pytest.raises(VenueError, match="no Delta price in the answer"):
        await trader.place()
    trader.venue.order_lies = OrderLies(quote=lambda _: {})
    with pytest.raises(VenueError, match="no Delta price in the answer"):
        await trader.place()


async def test_a_submission_that_is_not_answered_is_looked_for_by_its_hash(trader: OrderTrader) -> None:
    trader.venue.drops = 1
    _, placed = await trader.place()
    assert placed.record is not None
    assert len(trader.venue.submissions) == 1
    assert trader.venue.requests[-1] == f"GET /v2/delta/orders/hash/0x{placed.order_hash.hex()}"


async def test_what_became_of_a_submission_is_not_known_where_the_venue_does_not_show_it(
    trader: OrderTrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trader.client.following.TRADER_FOUND_S", 0.2)
    placer = trader.placer()
    offer = await placer.offer(trader.wish())
    await trader.world.approve(trader.world.user, trader.world.weth, trader.world.at.delta, ONE)
    trader.venue.drops = 1
    submit = trader.venue._submit

    def lost(body: dict[str, Any]) -> bytes:
        answer = submit(body)
        trader.venue.placed.clear()
        return answer

    monkeypatch.setattr(trader.venue, "_submit", lost)
    placed = await placer.place(offer)
    assert placed.record is None
    assert placed.fault == "the venue did not say whether it took the order"


async def test_a_refused_submission_leaves_a_deposit_that_comes_back(
    trader: OrderTrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = trader.world
    hashes: list[bytes] = []
    refusal = {"errorType": "InsufficientBalance", "details": "InsufficientBalance", "requestId": "r-7"}

    def about_to(order_hash: bytes) -> None:
        hashes.append(order_hash)
        trader.venue.refusals.append((400, {}, refusal))

    placer = trader.placer()
    offer = await placer.offer(trader.wish(src=ETH))
    with pytest.raises(
        VenueError, match=r"InsufficientBalance \(request r-7\)\. The deposit remains"
    ) as caught:
        await placer.place(offer, about_to)
    assert len(hashes) == 1
    assert "`cambist order withdraw` takes it back" in caught.value.detail
    assert await trader.deposited() == ONE
    account = trader.account()
    receipt, amount = await take_back(account, offer.contract, None, world.user.address)
    assert (receipt.succeeded, amount) == (True, ONE)
    assert await trader.deposited() == 0
    with pytest.raises(ChainError, match="has deposited 0 wei"):
        await take_back(account, offer.contract, None, world.user.address)


@pytest.mark.one_chain
async def test_a_deposit_that_is_not_mined_leaves_nothing_signed(trader: OrderTrader) -> None:
    placer = trader.placer()
    offer = await placer.offer(trader.wish(src=ETH))
    await trader.world.chain.set_automine(on=False)
    in_vain = pytest.raises(StepFailedError, match="was not mined in time, and may still be")
    with given_up_once_sent(), in_vain as failed:
        await placer.place(offer)
    assert (failed.value.step, failed.value.receipt) == ("deposit", None)
    assert trader.venue.submissions == []


async def test_busy_venues_are_asked_again_and_orders_are_submitted_once(trader: OrderTrader) -> None:
    placer = trader.placer()
    offer = await placer.offer(trader.wish())
    busy = {"errorType": "ServiceUnavailable", "details": "busy"}
    trader.venue.refusals = [(503, {"retry-after": "0"}, busy), (429, {"retry-after": "0"}, busy)]
    placed = await placer.place(offer)
    assert placed.record is not None
    assert len(trader.venue.builds) == len(trader.venue.submissions) == 1


async def test_a_follower_goes_on_through_trouble_and_ends_when_time_is_up(trader: OrderTrader) -> None:
    trader.venue.at_look = None
    _, placed = await trader.place()
    assert placed.record is not None
    follower = OrderFollower(trader.client, placed.record.id, trader.told.append)
    follower.see(placed.record)
    trader.venue.refusals = [(500, {}, {"errorType": "InternalError", "details": "Internal error"})]
    with trio.fail_after(PATIENCE_S):
        await follower.follow(2)
    assert follower.record is not None
    assert follower.record.status is OrderStatus.PENDING
    assert any(line.endswith("500 InternalError: Internal error: asking again") for line in trader.told)


async def test_an_order_that_is_not_there_is_no_reason_to_wait(trader: OrderTrader) -> None:
    follower = OrderFollower(trader.client, "nobody", trader.told.append)
    with pytest.raises(VenueError, match=r"404 OrderNotFound: Order not found \(request r-1\)"):
        await follower.follow(PATIENCE_S)


async def test_a_record_of_another_order_ends_the_following_at_once(trader: OrderTrader) -> None:
    trader.venue.at_look = None
    _, placed = await trader.place()
    assert placed.record is not None
    another = {"id": "another", "orderHash": f"0x{'11' * 32}"}
    trader.venue.order_lies = OrderLies(record=lambda record: record | another)
    follower = OrderFollower(trader.client, placed.record.id, trader.told.append)
    with pytest.raises(VenueError, match="the venue answers with another"):
        await follower.follow(PATIENCE_S)
    assert not any("asking again" in line for line in trader.told)


# --- What the chain says --------------------------------------------------------------------------------


def recorded(**changed: Any) -> OrderLies:
    """A record of an order that has ended is told otherwise."""
    return OrderLies(record=lambda record: record | changed if record["transactions"] else record)


async def test_a_venue_that_says_more_was_received_is_contradicted(trader: OrderTrader) -> None:
    more = {
        "chainId": trader.world.chain.chain_id,
        "token": to_checksum(trader.world.usdc),
        "executedAmount": "2600000000",
    }
    trader.venue.order_lies = recorded(output=more)
    record, settled = await trader.settled()
    assert record.status is OrderStatus.COMPLETED
    assert settled.fault == "the venue says 2600000000 raw units were executed, and the chain 2500000000"


async def test_a_transaction_that_settles_something_else_proves_nothing(trader: OrderTrader) -> None:
    world = trader.world
    other = await world.send(world.maker, world.usdc, calldata.approve(THIEF, 0))
    row = {
        "originTx": f"0x{other.tx_hash.hex()}",
        "destinationTx": None,
        "filledPercent": 100,
        "spentAmount": None,
        "receivedAmount": None,
    }
    trader.venue.order_lies = recorded(transactions=[row])
    _, settled = await trader.settled()
    assert settled.fault == f"the transaction {row['originTx']} settles nothing of this order"


async def test_a_transaction_that_is_named_twice_has_settled_once(trader: OrderTrader) -> None:
    def doubled(record: dict[str, Any]) -> dict[str, Any]:
        if not record["transactions"]:
            return record
        (row,) = record["transactions"]
        again = row | {"originTx": row["originTx"].upper().replace("0X", "0x")}
        output = record["output"] | {"executedAmount": str(2 * int(record["output"]["executedAmount"]))}
        return record | {"transactions": [row, again], "output": output}

    trader.venue.order_lies = OrderLies(record=doubled)
    _, settled = await trader.settled()
    assert settled.received == 2_500 * USDC
    assert settled.fault == "the venue says 5000000000 raw units were executed, and the chain 2500000000"


@pytest.mark.parametrize("status", ["EXPIRED", "CANCELLED"])
async def test_a_settlement_that_the_venue_hides_is_found(trader: OrderTrader, status: str) -> None:
    def hidden(record: dict[str, Any]) -> dict[str, Any]:
        output = record["output"] | {"executedAmount": None}
        return record | {"status": status, "transactions": [], "output": output}

    offer, placed = await trader.place()
    trader.venue.order_lies = OrderLies(record=hidden)
    trader.venue.at_look = None
    record = await trader.client.order(f"0x{placed.order_hash.hex()}")
    assert (await trader.proven(offer, placed, record)).fault == ""
    trader.venue.at_look = trader.venue.settle
    record = await trader.client.order(record.id)
    settled = await trader.proven(offer, placed, record)
    assert settled.fault == "the chain has settled more of it than the venue says"


async def test_a_name_that_would_draw_over_the_terminal_is_refused(trader: OrderTrader) -> None:
    row = {
        "originTx": "0x11\x1b[2J",
        "destinationTx": None,
        "filledPercent": 100,
        "spentAmount": None,
        "receivedAmount": None,
    }
    for lies, member in (
        (OrderLies(record=lambda record: record | {"id": "\x1b[2Jsettled"}), "id"),
        (recorded(transactions=[row]), r"transactions\[0\].originTx"),
    ):
        trader.venue.order_lies = OrderLies()
        _, placed = await trader.place()
        trader.venue.order_lies = lies
        with pytest.raises(VenueError, match=f"{member}: expected printable text") as caught:
            await trader.client.order(f"0x{placed.order_hash.hex()}")
        assert "\x1b" not in caught.value.detail


async def test_completed_without_a_transaction_is_not_believed(trader: OrderTrader) -> None:
    trader.venue.order_lies = OrderLies(
        record=lambda record: record | {"status": "COMPLETED", "transactions": []}
    )
    _, placed = await trader.place()
    offer = await trader.placer().offer(trader.wish())
    assert placed.record is not None
    settled = await trader.proven(offer, placed, placed.record)
    assert "on chain it is still open" in settled.fault


async def test_a_transaction_that_no_node_knows_is_told(
    trader: OrderTrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trader.client.following.TRADER_RECEIPT_S", 0.2)
    row = {
        "originTx": "0x" + "11" * 32,
        "destinationTx": None,
        "filledPercent": 100,
        "spentAmount": None,
        "receivedAmount": None,
    }
    trader.venue.order_lies = recorded(transactions=[row])
    _, settled = await trader.settled()
    assert settled.fault == f"the chain does not know the transaction {row['originTx']}"
