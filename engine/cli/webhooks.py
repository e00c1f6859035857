"""`cambist webhooks`: lists the waiting and dead deliveries of a venue's webhooks, and replays dead ones.

    list        the webhooks that the key manages, and their state
    deliveries  the waiting or dead deliveries of a webhook
    replay      have dead deliveries delivered anew

Exit status: 0 done, 1 refused or not answered, 2 wrong usage, 3 some named deliveries are not delivered anew.
"""

import re
from collections.abc import AsyncIterator

import click

from ...codecs.messages.vocabulary import DeliveryState
from ...codecs.messages.webhook_messages import DeliveryEntry, WebhookEntry
from ...codecs.messages.wire import encode
from ...config.error_text import one_line
from ...config.limits import WEBHOOK_PAGE_MAX
from ..trader.client.client import VenueClient
from . import CommandGroup
from .listings import Listing
from .trading import UnderWay, VenueOptions, run, venue_options

NOT_ALL = 3
_TOKEN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HOOKS = ("NAME", "URL", "SURFACES", "PARTNER", "CHAINS", "STATUSES", "WAITING", "DEAD", "FAILURES", "REASON")
_DELIVERIES = ("TOKEN", "STATUS", "TRIES", "CREATED", "DUE", "REASON")


@click.group(cls=CommandGroup)
def webhooks() -> None:
    """Show deliveries that a venue's webhooks have not accepted, and repeat them.

    A webhook is managed by the API key that the venue's settings name.

    Exit status: 0 done, 1 refused or not answered, 2 wrong usage, 3 some deliveries were not repeated.
    """


@webhooks.command("list")
@venue_options
def list_webhooks(venue: VenueOptions) -> None:
    """List the webhooks that the API key manages, with their state."""
    run(_list, _with_key(venue))


@webhooks.command("deliveries")
@click.argument("name", metavar="NAME")
@click.option(
    "--status",
    type=click.Choice(DeliveryState, case_sensitive=False),
    default=DeliveryState.DEAD,
    show_default=True,
    help="Dead deliveries, or deliveries that are still tried.",
)
@venue_options
def list_deliveries(venue: VenueOptions, name: str, status: DeliveryState) -> None:
    """List deliveries that the webhook NAME has not accepted, the oldest events first.

    The output is a table, or with --json a delivery per line, with its body.
    """
    run(_deliveries, _with_key(venue), _checked(name), status)


@webhooks.command("replay")
@click.argument("name", metavar="NAME")
@click.argument("tokens", metavar="[TOKEN]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All dead deliveries.")
@venue_options
def replay(venue: VenueOptions, name: str, tokens: tuple[str, ...], *, is_all: bool) -> None:
    """Deliver anew dead deliveries of the webhook NAME: those that TOKENs name, or --all.

    Dead deliveries are deliveries that the venue has given up.
    """
    if bool(tokens) == is_all:
        raise click.UsageError("expected either TOKENs or --all")
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            raise click.UsageError(f"TOKEN: expected 32 hexadecimal digits in lower case, got {token!r}")
    run(_replay, _with_key(venue), _checked(name), tuple(dict.fromkeys(tokens)))


# --- Their work ---------------------------------------------------------------------------------------


async def _list(_: UnderWay, place: VenueOptions) -> int:
    listing = Listing(_HOOKS, is_json=place.is_json)
    async with place.open() as venue:
        found = (await venue.webhooks()).webhooks
    listing.show(found, map(_hook_row, found))
    return listing.end("webhook", "webhooks")


async def _deliveries(under_way: UnderWay, place: VenueOptions, name: str, status: DeliveryState) -> int:
    under_way.hint = "there are more deliveries"
    listing = Listing(_DELIVERIES, is_json=place.is_json)
    async with place.open() as venue:
        async for page in _pages(venue, name, status):
            listing.show(page, map(_delivery_row, page))
    return listing.end(f"delivery {status.value}", f"deliveries {status.value}")


async def _replay(under_way: UnderWay, place: VenueOptions, name: str, tokens: tuple[str, ...]) -> int:
    under_way.hint = "some are delivered anew"
    anew: dict[str, None] = {}
    async with place.open() as venue:
        if tokens:
            for at in range(0, len(tokens), WEBHOOK_PAGE_MAX):
                answer = await venue.replay_deliveries(name, tokens[at : at + WEBHOOK_PAGE_MAX])
                anew |= dict.fromkeys(answer.replayed)
        else:
            async for replayed in _all_anew(venue, name):
                anew |= dict.fromkeys(replayed)
    left = [token for token in tokens if token not in anew]
    if place.is_json:
        click.echo(encode({"replayed": list(anew), "notDead": left}))
    else:
        click.echo(f"{len(anew)} deliver{'y' if len(anew) == 1 else 'ies'} anew")
        for token in left:
            click.echo(f"not dead: {token}", err=True)
    return NOT_ALL if left else 0


async def _pages(
    venue: VenueClient, name: str, status: DeliveryState
) -> AsyncIterator[tuple[DeliveryEntry, ...]]:
    """Yield a webhook's deliveries in the given state, page by page; stop at a page that does not advance, so
    that a faulty venue causes no endless loop."""
    after = ""
    while True:
        page = await venue.deliveries(name, status, after)
        yield page.deliveries
        last = page.deliveries[-1].token if page.deliveries else ""
        if not page.has_more or last <= after:
            return
        after = last


async def _all_anew(venue: VenueClient, name: str) -> AsyncIterator[tuple[str, ...]]:
    """Have the venue repeat all dead deliveries of a webhook: the deliveries that the venue has given up.

    Yield the tokens of the repeated deliveries, page by page. The venue may give up a delivery again
    meanwhile: the function stops at a page that has only deliveries of earlier pages.
    """
    seen: set[str] = set()
    while True:
        answer = await venue.replay_deliveries(name, ())
        yield answer.replayed
        if not answer.more or seen.issuperset(answer.replayed):
            return
        seen.update(answer.replayed)


def _with_key(place: VenueOptions) -> VenueOptions:
    if place.api_key is None:
        raise click.UsageError("--api-key: expected the key that manages the webhooks")
    return place


def _checked(name: str) -> str:
    if name in ("", ".", ".."):
        raise click.UsageError("NAME: expected the name of a webhook")
    return name


def _hook_row(entry: WebhookEntry) -> tuple[str, ...]:
    cells = (
        entry.name,
        entry.url,
        ",".join(entry.surfaces),
        entry.partner or "-",
        ",".join(map(str, entry.chains)) or "-",
        ",".join(entry.statuses) or "-",
        str(entry.waiting),
        str(entry.dead),
        str(entry.failures),
        entry.reason or "-",
    )
    return tuple(map(one_line, cells))


def _delivery_row(entry: DeliveryEntry) -> tuple[str, ...]:
    cells = (
        entry.token,
        entry.status.value,
        str(entry.tries),
        entry.created_at,
        entry.due_at,
        entry.reason or "-",
    )
    return tuple(map(one_line, cells))
