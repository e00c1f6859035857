"""`cambist otc fill`: fills an OTC order on chain, whole or in part."""

from contextlib import suppress

import click

from ....codecs.messages.resource_messages import TokenList
from ....config.errors import TradeFailed, VenueError
from ....crypto.hexadecimal import to_hex
from ...trader.client.client import VenueClient
from ...trader.client.otc.otc_filling import FillOffer
from ...trader.client.otc.otc_view import fill_json, fill_lines, fill_table
from ...trader.client.public.offers import OfferedTrade
from ...trader.client.trusted_contract import RFQ
from ..parameters import amount_option
from ..trading import (
    EXIT,
    SigningOptions,
    TradeSession,
    approve_max_option,
    consent_list,
    gathered,
    permit_option,
    signing_list,
    venue_list,
)
from .otc_options import SOURCE, STDIN, Named, check_contract_named, named_order

_AMOUNT, _RECEIVE = "--amount", "--receive"


class _FillOptions(SigningOptions, frozen=True, kw_only=True):
    """Options of `cambist otc fill`.

    Attributes:
        given: most whole tokens to give, as typed; None if --amount is absent.
        receive: whole tokens to receive, as typed; None if --receive is absent. With neither option, the
            order's whole unfilled amount is filled.
    """

    given: str | None
    receive: str | None

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return {"amount": _AMOUNT, "receive": _RECEIVE, "order": SOURCE}


@click.command("fill")
@click.argument("source", metavar=SOURCE)
@gathered(
    _FillOptions,
    "options",
    amount_option(_AMOUNT, "given", "Largest amount to give; the whole rest if absent."),
    amount_option(_RECEIVE, "receive", "In place of --amount: amount to receive."),
    *signing_list(RFQ),
    permit_option,
    approve_max_option,
    *consent_list("Show the given and received amounts, simulate, and stop."),
    *venue_list(is_needed=False),
)
def fill(options: _FillOptions, source: str) -> None:
    """Fill an OTC order on chain, whole or in part; you pay the gas.

    Name the order by its hash, which the command looks up at the venue, or by a FILE from the maker; - reads
    standard input. A FILE needs no --venue if --rfq names the contract. The command checks the order on the
    chain, shows both amounts, and asks.
    """
    if options.given is not None and options.receive is not None:
        raise click.UsageError(f"{_AMOUNT} and {_RECEIVE} exclude each other")
    check_contract_named(options, options.pinned)
    if source == STDIN and not (options.is_sure or options.is_rehearsal):
        raise click.UsageError(f"{STDIN}: with --yes or --dry-run only: the command cannot prompt")
    named = named_order(source)
    if named.order_hash and not options.url:
        raise click.UsageError("--venue: is needed to look an order up by its hash; a FILE needs none")
    options.run(_fill, options, named)


# --- Its work -----------------------------------------------------------------------------------------


async def _fill(session: TradeSession, options: _FillOptions, named: Named) -> int:
    listed = await _listed(session.client, options.chain_id)

    def agree(offered: OfferedTrade[FillOffer]) -> bool:
        offer = offered.detail
        session.console.print(fill_table(offer, options.allowing, listed))
        if not options.is_rehearsal:
            options.agree("Fill it?")
            # Only now: until the consent nothing is sent, and an interrupt has nothing to explain.
            session.under_way.hint = (
                "a transaction that was sent may be mined all the same: look at "
                f"{to_hex(offer.signed.order_hash)} before you fill it again"
            )
        return True

    try:
        done = await session.program.fill(
            named.handed_over or named.text,
            key=session.trader.key,
            amount=options.given,
            receive=options.receive,
            allowing=options.allowing,
            agree=agree,
            rehearse=options.is_rehearsal,
            pinned=options.pinned,
        )
        outcome, offer = done.outcome, done.offer
    except TradeFailed as failed:
        outcome, offer = failed.outcome, failed.offer
    options.show(fill_json(outcome, offer), fill_lines(outcome, offer))
    return EXIT[outcome.verdict]


async def _listed(venue: VenueClient | None, chain_id: int) -> TokenList:
    """Fetch the list of tokens that the venue lists for a chain; an empty list without a venue or without its
    answer."""
    if venue is not None:
        with suppress(VenueError):
            return await venue.tokens(chain_id)
    return TokenList(())
