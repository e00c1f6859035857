"""Shared code of the commands of `cambist otc`: options, signed orders by hash or file, hints."""

import sys
from pathlib import Path

import click
from msgspec import UNSET, Struct, UnsetType

from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.wire import decoder
from ....config import limits
from ....config.errors import InvalidInput
from ....crypto.hexadecimal import to_hex
from ...trader.client.otc.otc_safety import check_asked, check_handed_over
from ...trader.client.otc.otc_terms import OtcHandOver, SignedOtc, decode_hand_over
from ...trader.client.trusted_contract import SigningContract
from ..parameters import order_hash_of
from ..sources import read_bounded
from ..trading import TradeSession, VenueOptions

SOURCE = "HASH|FILE"
STDIN = "-"


class _PostedJson(Struct, frozen=True, rename="camel"):
    """The output of `cambist otc post --json` as far as `otc fill` reads it: the signed order."""

    signed_order: OtcHandOver | UnsetType | None = UNSET


class Named(Struct, frozen=True):
    """An OTC order as the command line names it: by its hash, or by a file that holds the signed order.

    Attributes:
        order_hash: 32 bytes; empty for a file.
    """

    text: str
    order_hash: bytes = b""
    handed_over: OtcHandOver | None = None


_decode_posted = decoder(_PostedJson, bytes_max=limits.JSON_BYTES_MAX)


def named_order(text: str, field: str = SOURCE) -> Named:
    """Parse the argument that names an OTC order: 0x begins a hash, - is standard input, any other text is a
    file.

    Raises:
        click.UsageError: the hash is malformed; or the file cannot be read, or holds no signed order.
    """
    if text.startswith(("0x", "0X")):
        order_hash = order_hash_of(text, field)
        return Named(to_hex(order_hash), order_hash)
    try:
        if text == STDIN:
            raw = read_bounded(sys.stdin.buffer, limits.JSON_BYTES_MAX)
        else:
            with Path(text).open("rb") as file:
                raw = read_bounded(file, limits.JSON_BYTES_MAX)
        posted = _decode_posted(raw).signed_order
        return Named(text, handed_over=posted or decode_hand_over(raw))
    except OSError as error:
        raise click.UsageError(f"{field}: {text} cannot be read: {error.strerror}") from None
    except InvalidInput as error:
        raise click.UsageError(f"{field}: {text} holds no signed order: {error.detail}") from None


async def find_order(
    session: TradeSession, named: Named, contract: SigningContract
) -> tuple[SignedOtc, StoredOrder | None]:
    """Return the signed OTC order that the command line names by its hash or by a file.

    Returns:
        For a hash, the order from the venue and the venue's record; for a file, the file's order and None.

    Raises:
        VenueError: the venue does not have the order, or answers with another order.
        ChainError: the file's order is of another chain or contract.
        ConfigError: a hash is given without a venue.
    """
    if named.handed_over is not None:
        return check_handed_over(named.handed_over, contract, named.text), None
    stored = await session.venue.otc_order(named.text)
    return check_asked(stored, named.order_hash, contract), stored


def check_contract_named(venue: VenueOptions, pinned: bytes | None) -> None:
    """Refuse a command line with neither --venue nor --rfq, which leaves the RFQ contract unknown."""
    if not venue.url and pinned is None:
        raise click.UsageError("--venue or --rfq is needed: one of them names the RFQ contract")
