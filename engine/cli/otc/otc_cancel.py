"""`cambist otc cancel`: cancels a maker's orders on chain, all in one transaction."""

import time
from collections.abc import Iterable, Mapping
from functools import partial

import click

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import OtcState
from ....codecs.messages.wire import encode
from ....config import limits
from ....config.sections.nodes import NodeSettings
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.otc.otc_cancelling import Cancelled, Ending, cancel_otc, cancel_until
from ...client.otc.otc_following import disproofs
from ...client.otc.otc_terms import SignedOtc
from ...client.outcome import failed_verdict
from ...client.sending import StepFailedError
from ...client.trusted_contract import RFQ, signing_contract
from ..parameters import Duration, checked_node
from ..sources import read_key
from ..trading import (
    ENDED,
    EXIT,
    HELP,
    UnderWay,
    VenueOptions,
    new_console,
    new_trader,
    run,
    venue_options_if_any,
)
from .otc_options import SOURCE, Named, find_order, named_order, open_venue, rfq_options


@click.command("cancel", context_settings=HELP)
@click.argument("sources", metavar=f"[{SOURCE}...]", nargs=-1)
@click.option(
    "--all-within",
    "life_s",
    type=Duration(),
    help="Cancel all orders that expire within this time, such as 30m or 90d, and all without expiry.",
)
@rfq_options
@venue_options_if_any
def cancel(
    venue: VenueOptions,
    sources: tuple[str, ...],
    life_s: int | None,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    rfq: bytes | None,
) -> None:
    """Cancel your orders on chain, in one transaction; you pay the gas.

    Name the orders by their hashes, or by FILEs that hold them. Without --venue, --rfq names the contract:
    the command then cancels a hash of your account without reading its order. Closed and expired orders are
    reported and left out.

    With --all-within no list is needed. The cancellation is final: orders that you sign afterwards need a
    later expiry.
    """
    if bool(sources) == (life_s is not None):
        raise click.UsageError(f"{SOURCE}... or --all-within: exactly one of them names the orders")
    if len(sources) > limits.CANCEL_IDS_MAX:
        raise click.UsageError(f"{SOURCE}: at most {limits.CANCEL_IDS_MAX} at once, got {len(sources)}")
    if not venue.url and rfq is None:
        raise click.UsageError("--venue or --rfq is needed: one of them names the RFQ contract")
    if life_s is not None:
        run(_cancel_all, venue, life_s, chain_id, checked_node(rpc), read_key(key, password), rfq)
    named = [named_order(source) for source in dict.fromkeys(sources)]
    run(_cancel, venue, named, chain_id, checked_node(rpc), read_key(key, password), rfq)


async def _cancel(
    under_way: UnderWay,
    place: VenueOptions,
    named: list[Named],
    chain_id: int,
    node: NodeSettings,
    key: SigningKey,
    rfq: bytes | None,
) -> int:
    tell = partial(new_console().print, style="dim")
    async with RpcChain.open(chain_id, node, known_errors()) as chain, open_venue(place) as venue:
        contract = await signing_contract(chain, venue, RFQ, rfq)
        orders: dict[bytes, RfqOrder | None] = {}
        told: dict[bytes, tuple[SignedOtc, StoredOrder]] = {}
        for each in named:
            if venue is None and each.order_hash:
                orders.setdefault(each.order_hash, None)
                continue
            signed, stored = await find_order(each, venue, contract)
            orders[signed.order_hash] = signed.order
            if stored is not None:
                told[signed.order_hash] = signed, stored
        if None in orders.values():
            tell(f"what only its hash is known of is closed for {to_checksum(key.address)} and nobody else")
        under_way.hint = "a cancellation that was sent may be mined all the same: ask again"
        try:
            cancelled = await cancel_otc(new_trader(chain, key, tell), contract, orders)
        except StepFailedError as failed:
            return _report_failed(place, failed, orders)
        if cancelled.receipt is not None:
            under_way.hint = f"the cancellation {to_hex(cancelled.receipt.tx_hash)} is mined"
        states = {order_hash: stored.state for order_hash, (_, stored) in told.items()}
        closed = [each for each in told if cancelled.endings.get(each) is Ending.CLOSED]
        faults = await disproofs(chain, contract, [told[each] for each in closed], int(time.time()))
        for order_hash, fault in zip(closed, faults, strict=True):
            if fault:
                tell(f"order {to_hex(order_hash)}: {fault}")
                del states[order_hash]
    return _report(place, cancelled, states)


async def _cancel_all(
    under_way: UnderWay,
    place: VenueOptions,
    life_s: int,
    chain_id: int,
    node: NodeSettings,
    key: SigningKey,
    rfq: bytes | None,
) -> int:
    tell = partial(new_console().print, style="dim")
    async with RpcChain.open(chain_id, node, known_errors()) as chain, open_venue(place) as venue:
        contract = await signing_contract(chain, venue, RFQ, rfq)
        under_way.hint = "a cancellation that was sent may be mined all the same: ask again"
        try:
            expiry, receipt = await cancel_until(new_trader(chain, key, tell), contract, life_s)
        except StepFailedError as failed:
            return _report_failed(place, failed, ())
    told = {"txHash": to_hex(receipt.tx_hash), "until": expiry}
    said = f"all orders that expire until {expiry} are cancelled: {told['txHash']}"
    click.echo(encode(told).decode() if place.is_json else said)
    return 0


def _report_failed(place: VenueOptions, failed: StepFailedError, orders: Iterable[bytes]) -> int:
    """Print that the transaction failed, or that its result is not known; return the exit status."""
    verdict = failed_verdict(failed)
    if place.is_json:
        told = [{"orderHash": to_hex(each), "outcome": verdict.value, "stateBefore": None} for each in orders]
        click.echo(encode({"txHash": to_hex(failed.tx_hash), "orders": told}).decode())
    click.echo(f"Error: {failed}", err=True)
    return EXIT[verdict]


def _report(place: VenueOptions, cancelled: Cancelled, states: Mapping[bytes, OtcState]) -> int:
    """Print the outcome of each order; return the exit status.

    Args:
        states: the orders' states by the venue; those of closed orders only if the chain confirms them.
    """
    tx_hash = None if cancelled.receipt is None else to_hex(cancelled.receipt.tx_hash)
    closed = [order_hash for order_hash, ending in cancelled.endings.items() if ending is Ending.CLOSED]
    if place.is_json:
        orders = [
            {"orderHash": to_hex(order_hash), "outcome": ending.value, "stateBefore": states.get(order_hash)}
            for order_hash, ending in cancelled.endings.items()
        ]
        click.echo(encode({"txHash": tx_hash, "orders": orders}).decode())
    else:
        for order_hash, ending in cancelled.endings.items():
            state = states.get(order_hash) if ending is Ending.CLOSED else None
            said = f": {state.value}, as the venue says" if state is not None else ""
            click.echo(f"order {to_hex(order_hash)} {ending.value}{said}")
        if tx_hash is not None:
            click.echo(f"transaction {tx_hash}")
    return ENDED if any(states.get(each) is not OtcState.CANCELLED for each in closed) else 0
