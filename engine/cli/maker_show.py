"""`cambist maker show`: prints the tokens, pairs and ladders of any market maker, as a venue reads them.

Exit status: 0 shown, 1 the maker does not answer, or refuses or breaks the interface, 2 wrong usage.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import click
import msgspec
import trio
from msgspec import Struct

from ...codecs.http1 import Http1Limits
from ...codecs.messages.maker_messages import (
    BlacklistBody,
    BodyDecoder,
    PairsBody,
    PriceGrid,
    PricesBody,
    TokensBody,
    decode_blacklist,
    decode_pairs,
    decode_prices,
    decode_tokens,
)
from ...config.error_text import one_line
from ...config.errors import InvalidInput, MakerError
from ...config.limits import MAKER_JSON_BYTES_MAX
from ...config.secret import SecretEncoding
from ...crypto.hmac_auth import RequestSigner
from ...feeds.transport.signed_client import SignedClient
from ..host.process.clock import WallClock
from ..trader.conformance.options import read_base_url
from .maker_check import credentials_of
from .parameters import usage_errors
from .sources import secret_encoding

B = TypeVar("B", TokensBody, PairsBody, PricesBody, BlacklistBody)
_HTTP = ("http", "https")
_SAID_CHARS_MAX = 300


class ShownMaker(Struct, frozen=True):
    """Resources of a maker, with their valid entries only.

    Attributes:
        refused: path of each refused entry, e.g. `prices.WETH/USDC` -> reason.
    """

    tokens: TokensBody
    pairs: PairsBody
    prices: PricesBody
    blacklist: BlacklistBody
    refused: dict[str, str]


@click.command("show")
@click.argument("url")
@click.option("--domain", help="X-AUTH-DOMAIN; with --access-key and --secret, requests are signed.")
@click.option("--access-key", help="X-AUTH-ACCESS-KEY.")
@click.option("--secret", help="The secret key: env:NAME or file:PATH; never the text itself.")
@secret_encoding
@click.option("--pair", "pair_id", help="This pair alone, e.g. WETH/USDC.")
@click.option(
    "--levels", type=click.IntRange(1, 1_000), default=5, show_default=True, help="Levels of each side."
)
@click.option(
    "--timeout", type=click.FloatRange(0.05, 60), default=5.0, show_default=True, help="Seconds per answer."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one line of JSON.")
def show(
    url: str,
    domain: str | None,
    access_key: str | None,
    secret: str | None,
    secret_encoding: SecretEncoding,
    pair_id: str | None,
    levels: int,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    """Print the tokens, pairs and ladders of the market maker at URL, the maker's base URL for one chain.

    Requests are signed as a venue signs them. Entries that a venue would refuse are named.
    """
    values = {"domain": domain, "access_key": access_key, "secret": secret}
    with usage_errors():
        base = read_base_url(url, "URL", _HTTP)
        credentials = credentials_of(values, secret_encoding)
    signer = credentials.signer() if credentials else None
    shown = trio.run(_fetch, base.url, signer, timeout)
    if pair_id is not None and pair_id not in shown.pairs.pairs:
        known = ", ".join(shown.pairs.pairs) or "none"
        raise click.BadParameter(f"the maker has no pair {pair_id!r}; it has {known}", param_hint="--pair")
    if as_json:
        click.echo(msgspec.json.encode(_json(shown, pair_id)))
    else:
        _print(shown, [pair_id] if pair_id else [*shown.pairs.pairs], levels)


async def _fetch(url: str, signer: RequestSigner | None, timeout_s: float) -> ShownMaker:
    """Get the four resources of a maker.

    Raises:
        MakerError: an answer is missing, is no success, or is malformed.
    """
    limits = Http1Limits(body_bytes_max=MAKER_JSON_BYTES_MAX)
    clock = WallClock()
    client = SignedClient(url, signer=signer, wall_ms=clock.now_ms, connections_max=1, limits=limits)
    refused: dict[str, str] = {}

    async def get(name: str, decode: BodyDecoder[B]) -> B:
        answer = await client.get(f"/{name}", timeout_s)
        if answer.status // 100 != 2:
            said = one_line(answer.body[:_SAID_CHARS_MAX].decode(errors="replace"))
            raise MakerError(f"GET /{name}: {answer.status} {said}")
        try:
            decoded = decode(answer.body)
        except InvalidInput as error:
            raise MakerError(f"GET /{name}: {error.detail}") from None
        refused.update(decoded.refused)
        return decoded.body

    async with client:
        return ShownMaker(
            await get("tokens", decode_tokens),
            await get("pairs", decode_pairs),
            await get("prices", decode_prices),
            await get("blacklist", decode_blacklist),
            refused,
        )


def _json(shown: ShownMaker, pair_id: str | None) -> dict[str, Any]:
    return {
        "tokens": shown.tokens.tokens,
        "pairs": {name: pair for name, pair in shown.pairs.pairs.items() if pair_id in (None, name)},
        "prices": {name: grid for name, grid in shown.prices.prices.items() if pair_id in (None, name)},
        "blacklist": shown.blacklist.blacklist,
        "refused": shown.refused,
    }


def _print(shown: ShownMaker, pair_ids: Sequence[str], levels: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    tokens = Table("token", "address", "decimals", box=None, pad_edge=False)
    for token_id, token in shown.tokens.tokens.items():
        tokens.add_row(token_id, token.address, str(token.decimals))
    console.print(tokens)
    for name in pair_ids:
        pair, grid = shown.pairs.pairs[name], shown.prices.prices.get(name)
        console.print(f"\n{name}  {pair.base} in {pair.quote}, {pair.liquidity_usd} USD", style="bold")
        if grid is None or not (grid.bids or grid.asks):
            console.print("disabled: no prices" if grid == PriceGrid() else "no prices")
            continue
        ladder = Table("bid", f"{pair.base} bid", "ask", f"{pair.base} asked", box=None, pad_edge=False)
        bids, asks = ([*(side or ())][:levels] for side in (grid.bids, grid.asks))
        for at in range(max(len(bids), len(asks))):
            ladder.add_row(*(bids[at] if at < len(bids) else ("", "")), *(asks[at : at + 1] or [("", "")])[0])
        console.print(ladder)
    if shown.blacklist.blacklist:
        console.print(f"\nblacklisted: {len(shown.blacklist.blacklist)} addresses")
    for path, reason in shown.refused.items():
        console.print(f"refused: {one_line(path)}: {one_line(reason)}", style="red")
