"""`cambist otc purge`: ends OTC orders that a venue's book should not hold; for operators."""

import click
from msgspec.structs import replace

from ....codecs.messages.otc_messages import OtcPurgeBody
from ....codecs.messages.vocabulary import OtcState
from ....crypto.addresses import to_checksum
from ..parameters import ADDRESS
from ..trading import UnderWay, VenueOptions, run, venue_options

_STATES = (OtcState.DRAFT, OtcState.SUSPENDED, OtcState.PENDING)


@click.command("purge")
@click.option("--chain", "chain_id", type=click.IntRange(1), help="The chain id; all chains if absent.")
@click.option("--maker", type=ADDRESS, help="Orders of this maker.")
@click.option("--token", type=ADDRESS, help="Orders that sell or buy this token.")
@click.option("--unlisted", is_flag=True, help="Orders with a token that the venue's settings do not list.")
@click.option(
    "--state", type=click.Choice(_STATES, case_sensitive=False), help="Orders in this state; any if absent."
)
@click.option("--dry-run", is_flag=True, help="Count the orders, and end none.")
@venue_options
def purge(
    venue: VenueOptions,
    chain_id: int | None,
    maker: bytes | None,
    token: bytes | None,
    state: OtcState | None,
    *,
    unlisted: bool,
    dry_run: bool,
) -> None:
    """For operators: end orders that the venue's book should not hold.

    All orders that match every given option end. The API key has to be an operator's. Ended orders are
    EXPIRED and leave memory at once. What their makers have signed can still be filled on chain by
    whoever has it.
    """
    if maker is None and token is None and state is None and not unlisted:
        raise click.UsageError("expected --maker, --token, --state or --unlisted")
    body = OtcPurgeBody(
        chain_id=chain_id,
        maker=None if maker is None else to_checksum(maker),
        token=None if token is None else to_checksum(token),
        state=state,
        unlisted=unlisted,
        dry_run=dry_run,
    )
    run(_purge, venue, body)


async def _purge(under_way: UnderWay, place: VenueOptions, body: OtcPurgeBody) -> int:
    under_way.hint = "some orders are ended; repeat the command for the others"
    count = 0
    async with place.open() as venue:
        while True:
            page = await venue.purge_otc(body)
            count += page.orders
            if not page.after or page.after == body.after:  # a venue that does not advance is at fault
                break
            body = replace(body, after=page.after)
    what = "would be ended" if body.dry_run else "ended"
    place.show({"orders": count}, [f"{count} order{'' if count == 1 else 's'} {what}"])
    return 0
