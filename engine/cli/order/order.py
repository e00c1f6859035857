"""`cambist order`: places, follows, lists and cancels a trader's Delta orders.

    swap      at the market's price: quote, sign, submit, follow
    limit     at a price: rests until the price can be had
    twap      in slices, on a schedule
    list      list the orders at a venue
    watch     follow a submitted order, or the changes of many orders
    cancel    sign the cancellation of orders, follow them
    withdraw  take back the rest of a deposit of native tokens

Exit status: 0 settled (or placed, cancelled or shown, as asked for), 1 refused or failed before the order was
submitted, 2 wrong usage, 3 another end: not settled, not cancelled, or an earlier transaction was reverted,
4 the end is not known.
"""

from collections.abc import Sequence

import click

from ....codecs.amounts import parse_units
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus
from ....config import limits
from ....config.errors import VenueError
from ....crypto.addresses import checked_address
from ....crypto.hexadecimal import to_hex
from ...chain.transact import StepFailedError
from ...trader.client.order.order_cancelling import cancel, follow_all
from ...trader.client.order.order_following import MEANS, TERMINAL
from ...trader.client.order.order_placing import take_back
from ...trader.client.outcome import failed_verdict
from ...trader.client.tokens import NATIVE_DECIMALS
from ...trader.client.trusted_contract import DELTA
from .. import CommandGroup
from ..parameters import parsed
from ..trading import (
    ENDED,
    EXIT,
    UNKNOWN,
    SigningOptions,
    TradeSession,
    VenueOptions,
    gathered,
    signing_list,
    venue_list,
)
from .order_limit import limit
from .order_list import list_orders
from .order_options import is_native, order_name
from .order_swap import swap
from .order_twap import twap
from .order_watch import watch

_wei = parsed(lambda text, field: parse_units(text, NATIVE_DECIMALS, field))


@click.group(cls=CommandGroup)
def order() -> None:
    """Delta orders: signed once, auctioned among agents, settled without gas of yours.

    Exit status: 0 settled (or as requested), 1 refused or failed before the submission, 2 wrong usage, 3
    ended in another way, 4 outcome unknown.
    """


@order.command("cancel")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@gathered(SigningOptions, "asked", *signing_list(DELTA), *venue_list(follows=True))
def cancel_orders(asked: SigningOptions, names: tuple[str, ...]) -> None:
    """Cancel Delta orders, by their ids or hashes: the venue cancels all of them or none. A cancellation
    costs no gas.

    A settlement under way may still win: the command follows each order and reports its outcome.
    """
    if len(names) > limits.CANCEL_IDS_MAX:
        raise click.UsageError(f"ID: at most {limits.CANCEL_IDS_MAX} at once, got {len(names)}")
    checked = tuple(dict.fromkeys(order_name(name, "ID") for name in names))
    asked.run(_cancel, asked, checked)


@order.command("withdraw")
@click.option(
    "--amount", "wei", callback=_wei, help="Amount in whole native tokens; the whole deposit if absent."
)
@click.option(
    "--to", "receiver", callback=parsed(checked_address), help="Receiver, in place of the key's account."
)
@gathered(SigningOptions, "asked", *signing_list(DELTA), *venue_list())
def withdraw(asked: SigningOptions, wei: int | None, receiver: bytes | None) -> None:
    """Take back native tokens that are deposited with the Delta contract.

    A live order that gives native tokens cannot be settled without its deposit.
    """
    asked.run(_withdraw, asked, wei, receiver)


# --- Their work ---------------------------------------------------------------------------------------


async def _cancel(session: TradeSession, asked: SigningOptions, names: tuple[str, ...]) -> int:
    contract = await session.contract(DELTA)
    session.under_way.hint = f"`cambist order watch ID --venue {asked.url}` says whether it is cancelled"
    followers = await cancel(session.trader, session.venue, contract, names)
    try:
        await follow_all(followers, asked.timeout_s)
    except VenueError as fault:
        click.echo(f"Error: {fault.detail}", err=True)
    return _report_cancelled(asked, [each.record for each in followers if each.record is not None])


async def _withdraw(session: TradeSession, asked: SigningOptions, wei: int | None, to: bytes | None) -> int:
    contract = await session.contract(DELTA)
    session.under_way.hint = (
        "a withdrawal that was sent may be mined all the same; ask again for what is left"
    )
    trader = session.trader
    try:
        receipt, amount = await take_back(trader, contract, wei, to or trader.key.address)
    except StepFailedError as failed:
        click.echo(f"Error: {failed}", err=True)
        return EXIT[failed_verdict(failed)]
    told = {"txHash": to_hex(receipt.tx_hash), "amountWei": str(amount)}
    asked.show(told, [f"{amount} wei came back: {told['txHash']}"])
    return 0


def _report_cancelled(place: VenueOptions, records: Sequence[OrderRecord]) -> int:
    """Print the state of each order after its cancellation was requested; return the exit status."""
    place.show(
        {"orders": [{"id": record.id, "status": record.status.value} for record in records]},
        [f"order {record.id} {record.status.value}: {MEANS[record.status]}" for record in records],
    )
    if any(is_native(record) and record.status is OrderStatus.CANCELLED for record in records):
        click.echo("`cambist order withdraw` takes back what was deposited", err=True)
    going_on = [record.id for record in records if record.status not in TERMINAL]
    if going_on:
        click.echo(f"not ended: {place.hint(going_on[0])}", err=True)
        return UNKNOWN
    return 0 if all(record.status is OrderStatus.CANCELLED for record in records) else ENDED


for command in (swap, limit, twap, list_orders, watch):
    order.add_command(command)
