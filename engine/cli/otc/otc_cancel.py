"""`cambist otc cancel`: cancels a maker's orders on chain, all in one transaction."""

import time
from collections.abc import Iterable, Iterator, Mapping

import click

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import OtcState
from ....config import limits
from ....crypto.hexadecimal import to_hex
from ...chain.transact import StepFailedError
from ...trader.client.otc.otc_cancelling import Cancelled, Ending, cancel_otc, cancel_until
from ...trader.client.otc.otc_following import disproofs
from ...trader.client.otc.otc_terms import SignedOtc
from ...trader.client.outcome import failed_verdict
from ...trader.client.trusted_contract import RFQ
from ..parameters import Duration
from ..trading import (
    ENDED,
    EXIT,
    SigningOptions,
    TradeSession,
    VenueOptions,
    gathered,
    signing_list,
    venue_list,
)
from .otc_options import SOURCE, Named, check_contract_named, find_order, named_order

_MAY_BE_MINED = "a cancellation that was sent may be mined all the same: ask again"


@click.command("cancel")
@click.argument("sources", metavar=f"[{SOURCE}...]", nargs=-1)
@click.option(
    "--all-within",
    "life_s",
    type=Duration(),
    help="Cancel all orders that expire within this time, such as 30m or 90d, and all without expiry.",
)
@gathered(SigningOptions, "options", *signing_list(RFQ), *venue_list(is_needed=False))
def cancel(options: SigningOptions, sources: tuple[str, ...], life_s: int | None) -> None:
    """Cancel your orders on chain, in one transaction; you pay the gas.

    Name the orders by their hashes, or by FILEs that hold them. With --rfq in place of --venue, the command
    cancels hashes without reading the orders. Closed and expired orders are reported and left out.

    With --all-within, name no orders. The cancellation is final: orders that you sign afterwards need a later
    expiry.
    """
    if bool(sources) == (life_s is not None):
        raise click.UsageError(f"{SOURCE}... or --all-within: exactly one of them names the orders")
    if len(sources) > limits.CANCEL_IDS_MAX:
        raise click.UsageError(f"{SOURCE}: at most {limits.CANCEL_IDS_MAX} at once, got {len(sources)}")
    check_contract_named(options, options.pinned)
    if life_s is not None:
        options.run(_cancel_all, options, life_s)
    options.run(_cancel, options, [named_order(source) for source in dict.fromkeys(sources)])


async def _cancel(session: TradeSession, options: SigningOptions, named: list[Named]) -> int:
    tell = session.trader.tell
    contract = await session.contract(RFQ)
    orders: dict[bytes, RfqOrder | None] = {}
    found: dict[bytes, tuple[SignedOtc, StoredOrder]] = {}
    for each in named:
        if session.client is None and each.order_hash:
            # A FILE of the same order says more than its hash: its entry stays.
            orders.setdefault(each.order_hash, None)
            continue
        signed, stored = await find_order(session, each, contract)
        orders[signed.order_hash] = signed.order
        if stored is not None:
            found[signed.order_hash] = signed, stored
    if None in orders.values():
        tell(f"what only its hash is known of is closed for {session.trader.account} and nobody else")
    session.under_way.hint = _MAY_BE_MINED
    try:
        cancelled = await cancel_otc(session.trader, contract, orders)
    except StepFailedError as failed:
        return _report_failed(options, failed, orders)
    if cancelled.receipt is not None:
        session.under_way.hint = f"the cancellation {to_hex(cancelled.receipt.tx_hash)} is mined"
    states = {order_hash: stored.state for order_hash, (_, stored) in found.items()}
    closed = [each for each in found if cancelled.endings.get(each) is Ending.CLOSED]
    faults = await disproofs(
        session.trader.chain, contract, [found[each] for each in closed], int(time.time())
    )
    for order_hash, fault in zip(closed, faults, strict=True):
        if fault:
            # The state is the venue's word alone: the chain contradicts it, or could not be read.
            tell(f"order {to_hex(order_hash)}: {fault}")
            del states[order_hash]
    return _report(options, cancelled, states)


async def _cancel_all(session: TradeSession, options: SigningOptions, life_s: int) -> int:
    contract = await session.contract(RFQ)
    session.under_way.hint = _MAY_BE_MINED
    try:
        expiry, receipt = await cancel_until(session.trader, contract, life_s)
    except StepFailedError as failed:
        return _report_failed(options, failed, ())
    tx_hash = to_hex(receipt.tx_hash)
    said = f"all orders that expire until {expiry} are cancelled: {tx_hash}"
    options.show({"txHash": tx_hash, "until": expiry}, [said])
    return 0


def _report_failed(place: VenueOptions, failed: StepFailedError, orders: Iterable[bytes]) -> int:
    """Print that the cancelling transaction reverted or may still be mined; return the exit status."""
    verdict = failed_verdict(failed)
    entries = [{"orderHash": to_hex(each), "outcome": verdict.value, "stateBefore": None} for each in orders]
    place.show({"txHash": to_hex(failed.tx_hash), "orders": entries}, ())
    click.echo(f"Error: {failed}", err=True)
    return EXIT[verdict]


def _report(place: VenueOptions, cancelled: Cancelled, states: Mapping[bytes, OtcState]) -> int:
    """Print the outcome of each order of a cancellation; return the exit status.

    Args:
        states: the orders' states before the cancellation, by the venue; a closed order's state only if the
            chain confirms it.
    """
    tx_hash = None if cancelled.receipt is None else to_hex(cancelled.receipt.tx_hash)
    closed = [order_hash for order_hash, ending in cancelled.endings.items() if ending is Ending.CLOSED]
    orders = [
        {"orderHash": to_hex(order_hash), "outcome": ending.value, "stateBefore": states.get(order_hash)}
        for order_hash, ending in cancelled.endings.items()
    ]
    place.show({"txHash": tx_hash, "orders": orders}, _lines(cancelled, states, tx_hash))
    return ENDED if any(states.get(each) is not OtcState.CANCELLED for each in closed) else 0


def _lines(cancelled: Cancelled, states: Mapping[bytes, OtcState], tx_hash: str | None) -> Iterator[str]:
    for order_hash, ending in cancelled.endings.items():
        state = states.get(order_hash) if ending is Ending.CLOSED else None
        said = f": {state.value}, as the venue says" if state is not None else ""
        yield f"order {to_hex(order_hash)} {ending.value}{said}"
    if tx_hash is not None:
        yield f"transaction {tx_hash}"
