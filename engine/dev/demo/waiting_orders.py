"""Demo steps of Delta orders that wait: a limit order for its price, a TWAP for the times of its slices.

While the limit order waits for its price, the venue asks no agent for bids. Between two slices the demo moves
the time of the chain and of the applications forward.
"""

from itertools import pairwise

import trio

from ....codecs.amounts import format_units
from ....codecs.messages.delta_messages import OrderRecord
from ....crypto.hexadecimal import parse_hex
from ...trader.client.allowing import Allowing
from ...trader.client.events import EventsWanted, pushed
from ...trader.client.order.order_view import order_table
from ...trader.client.schedule import Schedule
from .order_scene import (
    OrderScene,
    Tell,
    completed,
    placed_order,
    proven_order,
    record_of,
    show_moves,
    timed,
    why_it_rests,
)
from .place_settings import GRIDS, TOKENS
from .settlement import CHAIN_ID, WAIT_S
from .venue import LOOK_S, until

_MAKER, _PAIR = "alpha", "WETH/USDC"
_AMOUNT, _LEAST = "4", "10400"  # 2,600 USDC for a WETH
_RAISED = "2606", "2607"
_SCHEDULE = Schedule(slices=3, interval_s=60)
_SLICED, _SLICED_LEAST = "3.0000000000000001", "7400"  # not divisible by 3: the last slice is larger


async def run_waiting_orders(scene: OrderScene) -> None:
    """Run the demo's steps of a limit order and a TWAP (11 and 12), and print each; raise if a step fails.

    Afterwards the maker alpha has its initial prices.
    """
    scene.console.rule("11. A limit order rests until a maker's price meets it")
    await _show_limit_order(scene)
    scene.console.rule("12. A TWAP: one signature, three slices, two minutes in a moment")
    await _show_twap(scene)


# --- A limit order ------------------------------------------------------------------------------------


async def _show_limit_order(scene: OrderScene) -> None:
    tell = timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    offer = await placer.offer(scene.wish("WETH", "USDC", _AMOUNT, _LEAST))
    scene.console.print(order_table(offer, Allowing.EXACT))
    follower = await placed_order(scene, placer, offer, tell)
    record = record_of(follower)
    before = await scene.balances()
    await why_it_rests(scene, record)
    tell(f"{_MAKER} raises its bid from {GRIDS[_MAKER][_PAIR]['bids'][0][0]} to {_RAISED[0]}")
    await scene.place.quote(_MAKER, _PAIR, *_RAISED)
    record = await completed(follower)
    settled, receipts = await proven_order(scene, offer.contract, record)
    show_moves(scene, before, await scene.balances(), offer, settled, {_MAKER}, *receipts)
    more = format_units(settled.received - offer.terms.limit, TOKENS["USDC"])
    scene.show(
        f"The price came to the order, and better by {more} USDC: what is above the limit is the user's."
    )
    grid = GRIDS[_MAKER][_PAIR]
    await scene.place.quote(_MAKER, _PAIR, grid["bids"][0][0], grid["asks"][0][0])


# --- A TWAP -------------------------------------------------------------------------------------------


async def _show_twap(scene: OrderScene) -> None:
    tell = timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    before = await scene.balances()
    offer = await placer.offer(scene.wish("WETH", "USDC", _SLICED, _SLICED_LEAST, _SCHEDULE))
    scene.console.print(order_table(offer, Allowing.EXACT))
    follower = await placed_order(scene, placer, offer, tell)
    async with pushed(scene.venue, EventsWanted(order=record_of(follower).id), tell) as push:
        for done in range(1, _SCHEDULE.slices):
            with trio.fail_after(WAIT_S):
                while len(record_of(follower).transactions) < done:
                    await push.wait(LOOK_S)
                    await follower.look()
            await _pass_interval(scene, record_of(follower), tell)
    record = await completed(follower)
    settled, receipts = await proven_order(scene, offer.contract, record)
    times = [await _time_s(scene, receipt.block_number) for receipt in receipts]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    show_moves(scene, before, await scene.balances(), offer, settled, {_MAKER}, *receipts)
    if len(receipts) != _SCHEDULE.slices or min(gaps) < _SCHEDULE.interval_s:
        raise AssertionError(f"{len(receipts)} slices, {gaps} s apart")
    spent = [int(each.spent_amount or 0) for each in record.transactions]
    if spent[-1] != _SCHEDULE.last_of(offer.terms.wish.amount) or spent[0] == spent[-1]:
        raise AssertionError(f"the slices took {spent}")
    scene.show(
        f"The slices were settled {' and '.join(map(str, gaps))} s apart on the chain, and the last took the "
        f"remainder: {format_units(spent[-1], TOKENS['WETH'])} WETH."
    )


async def _pass_interval(scene: OrderScene, record: OrderRecord, tell: Tell) -> None:
    """Move the demo's time to the start of the TWAP's next slice, once the venue has queued the slice."""
    receipt = await scene.chain.receipt(parse_hex(record.transactions[-1].origin_tx, "originTx"))
    if receipt is None:
        raise AssertionError("the chain does not know the settlement of a slice")
    due_s = await _time_s(scene, receipt.block_number) + _SCHEDULE.interval_s
    auctioneer = scene.place.venue.delta.chains[CHAIN_ID].auctioneer
    await until(lambda: auctioneer.statistics().waiting == 1)
    tell(f"{_SCHEDULE.interval_s} s pass, for the chain and for everybody")
    await scene.place.pass_time(due_s)


async def _time_s(scene: OrderScene, number: int) -> int:
    header = await scene.chain.block(number)
    if header is None:
        raise AssertionError(f"there is no block {number}")
    return header.time_s
