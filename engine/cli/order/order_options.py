"""Code shared by the commands of `cambist order`: options, ids and hashes of orders, reports of outcomes."""

import click

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus
from ....config import limits
from ....crypto.hexadecimal import to_hex
from ...trader.client.order.order_following import TERMINAL, OfferTokens
from ...trader.client.order.order_placing import OrderOffer
from ...trader.client.order.order_view import (
    DeltaOutcome,
    order_json,
    order_lines,
)
from ...trader.client.outcome import TradeVerdict
from ..parameters import order_hash_of
from ..trading import EXIT, VenueOptions


def order_name(text: str, field: str) -> str:
    """Check the text that names an order, and return it: an id unchanged, or a hash in lower case.

    Raises:
        click.UsageError: the text is empty, or a malformed hash.
    """
    if not text:
        raise click.UsageError(f"{field}: expected the id or the hash of an order, got nothing")
    if not text.startswith(("0x", "0X")):
        return text
    return to_hex(order_hash_of(text, field, ", or an id"))


def report(
    place: VenueOptions, outcome: DeltaOutcome, tokens: OfferTokens, offer: OrderOffer | None = None
) -> int:
    """Print an order's outcome on standard output; return the exit status.

    Standard error shows a hint at the command to run next, if the order may still be live or a deposit
    remains.
    """
    place.show(order_json(outcome, offer), order_lines(outcome, tokens))
    record = outcome.record
    if record is not None and record.status not in TERMINAL:
        click.echo(f"the order goes on: {place.hint(record.id)}", err=True)
    elif outcome.tx_hash and outcome.verdict is TradeVerdict.UNKNOWN and outcome.order_hash:
        click.echo(f"no order was signed; {place.withdrawal()} if it is mined", err=True)
    elif record is None and outcome.verdict is TradeVerdict.UNKNOWN and outcome.order_hash:
        click.echo(place.hint(to_hex(outcome.order_hash)), err=True)
    elif record is not None and record.status is not OrderStatus.COMPLETED and is_native(record):
        click.echo("`cambist order withdraw` takes back what was deposited for it", err=True)
    return EXIT[outcome.verdict]


def is_native(record: OrderRecord) -> bool:
    """Whether an order sells native tokens, which are deposited with the Delta contract."""
    return record.input.token == limits.NATIVE_PLACEHOLDER
