"""`cambist otc fill`: fills an OTC order on chain, whole or in part."""

from contextlib import suppress
from functools import partial

import click
from msgspec import Struct

from ....codecs.amounts import parse_decimal
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.resource_messages import TokenList
from ....codecs.messages.vocabulary import OtcState
from ....codecs.messages.wire import encode
from ....config.error_text import one_line
from ....config.errors import InvalidInput, VenueError
from ....config.sections.nodes import NodeSettings
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.allowing import Allowing
from ...client.client import VenueClient
from ...client.otc.otc_filling import FillOffer, OtcFiller
from ...client.otc.otc_safety import OtcOnChain
from ...client.otc.otc_terms import OtcPart, SignedOtc, part_given, part_received, rest_of
from ...client.otc.otc_view import fill_json, fill_lines, fill_table
from ...client.outcome import SentOutcome
from ...client.terms import TradedToken
from ...client.tokens import find_token
from ...client.trusted_contract import RFQ, signing_contract
from ..parameters import checked_node, raw_units
from ..sources import agree, read_key
from ..trading import (
    EXIT,
    HELP,
    UnderWay,
    VenueOptions,
    allowing_options,
    new_console,
    new_trader,
    run,
    venue_options_if_any,
)
from .otc_options import SOURCE, STDIN, Named, find_order, named_order, open_venue, rfq_options

_AMOUNT, _RECEIVE = "--amount", "--receive"


class _FillOptions(Struct, frozen=True, kw_only=True):
    """The parsed command line. At most one of `amount` and `receive` is given; neither means the whole
    remaining amount.
    """

    named: Named
    amount: str | None
    receive: str | None
    venue: VenueOptions
    chain_id: int
    node: NodeSettings
    key: SigningKey
    rfq: bytes | None
    allowing: Allowing
    is_sure: bool
    is_rehearsal: bool

    def part(self, signed: SignedOtc, standing: OtcOnChain, gives: TradedToken, gets: TradedToken) -> OtcPart:
        """Determine the part of the order to fill.

        Raises:
            ConfigError: an amount is malformed.
            ChainError: the part exceeds the remaining amount of the order.
        """
        order, left = signed.order, standing.left(signed.order)
        if self.amount is not None:
            return part_given(order, left, raw_units(self.amount, gives, _AMOUNT), gives, _AMOUNT)
        if self.receive is not None:
            return part_received(order, left, raw_units(self.receive, gets, _RECEIVE), gets, _RECEIVE)
        return rest_of(order, left)


@click.command("fill", context_settings=HELP)
@click.argument("source", metavar=SOURCE)
@click.option(_AMOUNT, metavar="AMOUNT", help="Largest amount to give; the whole rest if absent.")
@click.option(_RECEIVE, metavar="AMOUNT", help="In place of --amount: amount to receive.")
@rfq_options
@allowing_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the given and received amounts, simulate, and stop.")
@venue_options_if_any
def fill(
    venue: VenueOptions,
    source: str,
    amount: str | None,
    receive: str | None,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    rfq: bytes | None,
    allowing: Allowing,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Fill an OTC order on chain, whole or in part; you pay the gas.

    The venue gives the order of a hash; a FILE from the maker holds it, - is standard input. A FILE needs no
    --venue if --rfq names the contract. The command checks the order on the chain, shows both amounts, and
    asks.
    """
    if amount is not None and receive is not None:
        raise click.UsageError(f"{_AMOUNT} and {_RECEIVE} exclude each other")
    try:
        for text, field in ((amount, _AMOUNT), (receive, _RECEIVE)):
            if text is not None:
                parse_decimal(text, field)
    except InvalidInput as error:
        raise click.UsageError(error.detail) from None
    if not venue.url and rfq is None:
        raise click.UsageError("--venue or --rfq is needed: one of them names the RFQ contract")
    if source == STDIN and not (yes or dry_run):
        raise click.UsageError(f"{STDIN}: with --yes or --dry-run only: the command cannot prompt")
    named = named_order(source)
    if named.order_hash and not venue.url:
        raise click.UsageError("--venue: is needed to look an order up by its hash; a FILE needs none")
    asked = _FillOptions(
        named=named,
        amount=amount,
        receive=receive,
        venue=venue,
        chain_id=chain_id,
        node=checked_node(rpc),
        key=read_key(key, password),
        rfq=rfq,
        allowing=allowing,
        is_sure=yes,
        is_rehearsal=dry_run,
    )
    run(_fill, asked)


# --- Its work -----------------------------------------------------------------------------------------


async def _fill(under_way: UnderWay, asked: _FillOptions) -> int:
    console = new_console()
    tell = partial(console.print, style="dim")
    async with (
        RpcChain.open(asked.chain_id, asked.node, known_errors()) as chain,
        open_venue(asked.venue) as venue,
    ):
        tell("looking at the RFQ contract")
        contract = await signing_contract(chain, venue, RFQ, asked.rfq)
        signed, stored = await find_order(asked.named, venue, contract)
        filler = OtcFiller(new_trader(chain, asked.key, tell, asked.allowing), contract)
        standing = await filler.standing(signed, _closed(stored))
        order, by_address = signed.order, TokenList(())
        gives = await find_token(chain, by_address, to_checksum(order.taker_asset), "takerAsset")
        gets = await find_token(chain, by_address, to_checksum(order.maker_asset), "makerAsset")
        part = asked.part(signed, standing, gives, gets)
        offer = await filler.offer(signed, standing, part, gives, gets)
        console.print(fill_table(offer, asked.allowing, await _listed(venue, asked.chain_id)))
        if asked.is_rehearsal:
            return _report(asked.venue, await filler.rehearse(offer), offer)
        if not asked.is_sure:
            agree("Fill it?")
        under_way.hint = (
            "a transaction that was sent may be mined all the same: look at "
            f"{to_hex(signed.order_hash)} before you fill it again"
        )
        outcome = await filler.fill(offer)
    return _report(asked.venue, outcome, offer)


async def _listed(venue: VenueClient | None, chain_id: int) -> TokenList:
    """Fetch the venue's tokens; empty without a venue or its answer."""
    if venue is not None:
        with suppress(VenueError):
            return await venue.tokens(chain_id)
    return TokenList(())


def _closed(stored: StoredOrder | None) -> str:
    """Describe, by the venue's record, how an order that is closed on chain ended; empty without a record."""
    if stored is None or stored.state not in (OtcState.FULFILLED, OtcState.CANCELLED):
        return ""
    means = "filled" if stored.state is OtcState.FULFILLED else "cancelled"
    by = f" by {one_line(stored.transaction_hash)}" if stored.transaction_hash else ""
    return f"the venue says that it was {means}{by}"


def _report(place: VenueOptions, outcome: SentOutcome, offer: FillOffer) -> int:
    """Print the result on standard output; return the exit status."""
    if place.is_json:
        click.echo(encode(fill_json(outcome, offer)).decode())
    else:
        for line in fill_lines(outcome, offer):
            click.echo(line)
    return EXIT[outcome.verdict]
