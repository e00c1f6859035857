"""Cancellation of Delta orders: read, checked, signed, submitted, and followed until each order has ended.

A settlement under way may still win: each order's last record shows whether it did.

Orders named by hash are cancelled by the ids of the venue's records; a repeated id counts once.

Source: spec 1.18, 1.11.7 to 1.11.16; interop.md 3; choices.md#delta-orders.
"""

from collections.abc import Sequence

import trio

from .....codecs.messages.delta_messages import OrderRecord
from .....config.errors import VenueError
from .....config.timeouts import TRADER_ORDER_LOOK_S
from .....crypto.hexadecimal import to_hex
from .....crypto.signatures import to_compact64
from ..client import VenueClient
from ..following import was_refused
from ..safety import one_spelling
from ..trader import Trader
from ..trusted_contract import SigningContract
from .order_following import TERMINAL, OrderFollower
from .order_safety import check_cancellation


async def cancel(
    trader: Trader, venue: VenueClient, contract: SigningContract, names: Sequence[str]
) -> list[OrderFollower]:
    """Sign and request the cancellation of Delta orders: the venue cancels all of them or none.

    Args:
        names: ids or hashes of the orders.

    Returns:
        A follower of each order, which reports whether the order ended as cancelled.

    Raises:
        VenueError: an order is not the trader's or has ended, the built cancellation is not the requested
            one, or the venue refuses. No order was cancelled.
    """
    followers: dict[str, OrderFollower] = {}
    for name in names:
        follower = OrderFollower(venue, name, trader.tell)
        record = await follower.look()
        _check_own(record, trader, contract)
        followers[record.id] = follower
    ids = list(followers)
    checked = check_cancellation(await venue.build_cancellation(ids), ids, contract)
    trader.tell(f"signing the cancellation of {len(ids)} order{'s' if len(ids) > 1 else ''}")
    try:
        answer = await venue.cancel_orders(ids, to_hex(to_compact64(*trader.key.sign(checked))))
    except VenueError as fault:
        if was_refused(fault):
            raise
        # No error: the venue may have cancelled before its answer was lost, as the followers find out.
        trader.tell(f"{fault.detail}: looking at what became of it")
        return list(followers.values())
    if not answer.success or sorted(answer.cancelled) != sorted(ids):
        said = ", ".join(answer.cancelled) or "none"
        raise VenueError(f"POST /v2/delta/orders/cancel: asked for {', '.join(ids)}, the venue took {said}")
    return list(followers.values())


async def follow_all(followers: Sequence[OrderFollower], timeout_s: float) -> None:
    """Follow orders one after the other until all have ended; when time is up, ask once for each remaining
    order.

    Raises:
        VenueError: the venue refuses for good, or its record is of another order.
    """
    until = trio.current_time() + timeout_s
    for follower in followers:
        left_s = until - trio.current_time()
        if left_s > 0:
            await follower.follow(left_s)
        else:
            with trio.move_on_after(TRADER_ORDER_LOOK_S):
                await follower.try_look()


def _check_own(record: OrderRecord, trader: Trader, contract: SigningContract) -> None:
    if one_spelling(record.owner) != trader.account:
        raise VenueError(f"order {record.id} is {record.owner}'s, the key is of {trader.account}")
    if record.input.chain_id != contract.chain_id:
        raise VenueError(f"order {record.id} is on chain {record.input.chain_id}, not on {contract.chain_id}")
    if record.status in TERMINAL:
        raise VenueError(f"order {record.id} is {record.status.value} already: nothing was cancelled")
