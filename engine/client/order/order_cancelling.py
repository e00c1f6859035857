"""Orders that are cancelled: read, checked, signed, handed in, and followed until each has ended.

A settlement that was under way may still win; which it was is what each order's last record says.

Cancelled ids are those of the venue's records, also for orders named by hash; a repeated id counts once.

Source: spec 1.18, 1.11.7 to 1.11.16; interop.md 3; choices.md#delta-orders.
"""

from collections.abc import Callable, Sequence

import trio

from ....codecs.messages.delta_messages import OrderRecord
from ....config.errors import VenueError
from ....config.timeouts import TRADER_ORDER_LOOK_S
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_compact64
from ..client import VenueClient
from ..safety import one_spelling
from ..submitting import was_refused
from ..trusted_contract import SigningContract
from .order_following import TERMINAL, OrderFollower, may_pass
from .order_safety import check_cancellation


async def cancel(
    venue: VenueClient,
    key: SigningKey,
    contract: SigningContract,
    names: Sequence[str],
    tell: Callable[[str], None],
) -> list[OrderFollower]:
    """Ask for the cancellation of all of them or of none.

    Args:
        names: ids or hashes.

    Returns:
        What to follow each by.

    Raises:
        VenueError: one is not the key's or has ended, what is to be signed is not what was asked for, or the
            venue refuses. Nothing was cancelled.
    """
    followers: dict[str, OrderFollower] = {}
    for name in names:
        follower = OrderFollower(venue, name, tell)
        await follower.look()
        record = follower.record
        if record is not None:
            _check_own(record, key, contract)
            followers[record.id] = follower
    ids = list(followers)
    checked = check_cancellation(await venue.build_cancellation(ids), ids, contract)
    tell(f"signing the cancellation of {len(ids)} order{'s' if len(ids) > 1 else ''}")
    try:
        answer = await venue.cancel_orders(ids, to_hex(to_compact64(*key.sign(checked))))
    except VenueError as fault:
        if was_refused(fault):
            raise
        tell(f"{fault.detail}: looking at what became of it")
        return list(followers.values())
    if not answer.success or sorted(answer.cancelled) != sorted(ids):
        said = ", ".join(answer.cancelled) or "none"
        raise VenueError(f"POST /v2/delta/orders/cancel: asked for {', '.join(ids)}, the venue took {said}")
    return list(followers.values())


async def follow_all(followers: Sequence[OrderFollower], timeout_s: float) -> None:
    """One after the other, until all have ended or time is up; whoever it is up for is looked at once more.

    Raises:
        VenueError: as `OrderFollower.follow`.
    """
    until = trio.current_time() + timeout_s
    for follower in followers:
        left_s = until - trio.current_time()
        if left_s > 0:
            await follower.follow(left_s)
        else:
            await _look_once(follower)


async def _look_once(follower: OrderFollower) -> None:
    with trio.move_on_after(TRADER_ORDER_LOOK_S):
        try:
            await follower.look()
        except VenueError as fault:
            if not may_pass(fault):
                raise


def _check_own(record: OrderRecord, key: SigningKey, contract: SigningContract) -> None:
    owner = to_checksum(key.address)
    if one_spelling(record.owner) != owner:
        raise VenueError(f"order {record.id} is {record.owner}'s, the key is of {owner}")
    if record.input.chain_id != contract.chain_id:
        raise VenueError(f"order {record.id} is on chain {record.input.chain_id}, not on {contract.chain_id}")
    if record.status in TERMINAL:
        raise VenueError(f"order {record.id} is {record.status.value} already: nothing was cancelled")
