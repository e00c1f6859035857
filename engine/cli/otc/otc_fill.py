"""`cambist otc fill`: fills an OTC order on chain, whole or in part."""

from contextlib import suppress

import click

from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.resource_messages import TokenList
from ....codecs.messages.vocabulary import OtcState
from ....config.error_text import one_line
from ....config.errors import VenueError
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...client.client import VenueClient
from ...client.otc.otc_filling import OtcFiller
from ...client.otc.otc_safety import OtcOnChain
from ...client.otc.otc_terms import OtcPart, SignedOtc, part_given, part_received, rest_of
from ...client.otc.otc_view import fill_json, fill_lines, fill_table
from ...client.terms import TradedToken
from ...client.tokens import find_token
from ...client.trusted_contract import RFQ
from ..parameters import amount_option, raw_units
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
from .otc_options import SOURCE, STDIN, Named, check_contract_named, find_order, named_order

_AMOUNT, _RECEIVE = "--amount", "--receive"


class _FillOptions(SigningOptions, frozen=True, kw_only=True):
    """Options of `cambist otc fill`.

    Attributes:
        given: most whole tokens to give, as typed; receive: whole tokens to receive, as typed. At most one of
            the two is set; with neither, the order's whole unfilled amount is filled.
    """

    given: str | None
    receive: str | None

    def part(self, signed: SignedOtc, standing: OtcOnChain, gives: TradedToken, gets: TradedToken) -> OtcPart:
        """Compute the amounts of the fill from the options and the order's unfilled amount.

        Raises:
            ConfigError: an amount is malformed.
            ChainError: the amounts exceed the unfilled amount of the order.
        """
        order, left = signed.order, standing.left(signed.order)
        if self.given is not None:
            return part_given(order, left, raw_units(self.given, gives, _AMOUNT), gives, _AMOUNT)
        if self.receive is not None:
            return part_received(order, left, raw_units(self.receive, gets, _RECEIVE), gets, _RECEIVE)
        return rest_of(order, left)


@click.command("fill")
@click.argument("source", metavar=SOURCE)
@gathered(
    _FillOptions,
    "asked",
    amount_option(_AMOUNT, "given", "Largest amount to give; the whole rest if absent."),
    amount_option(_RECEIVE, "receive", "In place of --amount: amount to receive."),
    *signing_list(RFQ),
    permit_option,
    approve_max_option,
    *consent_list("Show the given and received amounts, simulate, and stop."),
    *venue_list(is_needed=False),
)
def fill(asked: _FillOptions, source: str) -> None:
    """Fill an OTC order on chain, whole or in part; you pay the gas.

    Name the order by its hash, which the command looks up at the venue, or by a FILE from the maker; - reads
    standard input. A FILE needs no --venue if --rfq names the contract. The command checks the order on the
    chain, shows both amounts, and asks.
    """
    if asked.given is not None and asked.receive is not None:
        raise click.UsageError(f"{_AMOUNT} and {_RECEIVE} exclude each other")
    check_contract_named(asked, asked.pinned)
    if source == STDIN and not (asked.is_sure or asked.is_rehearsal):
        raise click.UsageError(f"{STDIN}: with --yes or --dry-run only: the command cannot prompt")
    named = named_order(source)
    if named.order_hash and not asked.url:
        raise click.UsageError("--venue: is needed to look an order up by its hash; a FILE needs none")
    asked.run(_fill, asked, named)


# --- Its work -----------------------------------------------------------------------------------------


async def _fill(session: TradeSession, asked: _FillOptions, named: Named) -> int:
    chain = session.trader.chain
    session.trader.tell("looking at the RFQ contract")
    contract = await session.contract(RFQ)
    signed, stored = await find_order(session, named, contract)
    filler = OtcFiller(session.trader, contract)
    standing = await filler.standing(signed, _closed(stored))
    order, by_address = signed.order, TokenList(())
    gives = await find_token(chain, by_address, to_checksum(order.taker_asset), "takerAsset")
    gets = await find_token(chain, by_address, to_checksum(order.maker_asset), "makerAsset")
    part = asked.part(signed, standing, gives, gets)
    offer = await filler.offer(signed, standing, part, gives, gets)
    session.console.print(fill_table(offer, asked.allowing, await _listed(session.client, asked.chain_id)))
    if asked.is_rehearsal:
        outcome = await filler.rehearse(offer)
    else:
        asked.agree("Fill it?")
        session.under_way.hint = (
            "a transaction that was sent may be mined all the same: look at "
            f"{to_hex(signed.order_hash)} before you fill it again"
        )
        outcome = await filler.fill(offer)
    asked.show(fill_json(outcome, offer), fill_lines(outcome, offer))
    return EXIT[outcome.verdict]


async def _listed(venue: VenueClient | None, chain_id: int) -> TokenList:
    """Fetch the list of tokens that the venue lists for a chain; an empty list without a venue or without its
    answer."""
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
