"""`cambist order cancel`: signs the cancellation of orders, and follows the orders to their ends."""

from collections.abc import Sequence

import click

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus
from ....config import limits
from ....config.errors import VenueError
from ...trader.client.order.order_cancelling import cancel, follow_all
from ...trader.client.order.order_following import MEANS, TERMINAL
from ...trader.client.trusted_contract import DELTA
from ..trading import (
    ENDED,
    UNKNOWN,
    SigningOptions,
    TradeSession,
    VenueOptions,
    gathered,
    signing_list,
    venue_list,
)
from .order_options import is_native, order_name


@click.command("cancel")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@gathered(SigningOptions, "options", *signing_list(DELTA), *venue_list(follows=True))
def cancel_orders(options: SigningOptions, names: tuple[str, ...]) -> None:
    """Cancel Delta orders, by their ids or hashes: the venue cancels all of them or none. A cancellation
    costs no gas.

    A settlement under way may still win: the command follows each order and reports its outcome.
    """
    if len(names) > limits.CANCEL_IDS_MAX:
        raise click.UsageError(f"ID: at most {limits.CANCEL_IDS_MAX} at once, got {len(names)}")
    checked = tuple(dict.fromkeys(order_name(name, "ID") for name in names))
    options.run(_cancel, options, checked)


async def _cancel(session: TradeSession, options: SigningOptions, names: tuple[str, ...]) -> int:
    contract = await session.contract(DELTA)
    session.under_way.hint = f"`cambist order watch ID --venue {options.url}` says whether it is cancelled"
    followers = await cancel(session.trader, session.venue, contract, names)
    try:
        await follow_all(followers, options.timeout_s)
    except VenueError as fault:
        click.echo(f"Error: {fault.detail}", err=True)
    return _report_cancelled(options, [each.record for each in followers if each.record is not None])


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
