"""`cambist order swap`: a Delta order, from the price to the settlement."""

import secrets
import time
from collections.abc import Callable
from functools import partial

import click
from msgspec import Struct

from ...codecs.vocabulary import OrderType, Side
from ...config import limits
from ...config.errors import ChainError, ConfigError, VenueError
from ...config.nodes import NodeSettings
from ...config.timeouts import TRADER_LIMIT_ORDER_S, TRADER_ORDER_S
from ...crypto.hexadecimal import to_hex
from ...crypto.secp256k1 import SigningKey
from ..chain.artifacts import known_errors
from ..chain.rpc import RpcChain
from ..trader.allowing import Allowing
from ..trader.client import VenueClient
from ..trader.order_following import Follower, Subject
from ..trader.order_placing import OrderOffer, OrderPlacer
from ..trader.order_terms import OrderWish
from ..trader.order_view import (
    OrderOutcome,
    Tokens,
    Verdict,
    order_table,
)
from ..trader.sending import StepFailedError
from ..trader.terms import TradedToken
from ..trader.tokens import find_token
from .order_options import (
    HASH_BYTES,
    HELP,
    Place,
    UnderWay,
    ended,
    new_console,
    report,
    run,
    signing_options,
    timed,
    timeout,
    until_interrupted,
    venue_options,
)
from .parameters import (
    Address,
    check_partner,
    checked_node,
    raw_units,
)
from .sources import read_key


class _Asked(Struct, frozen=True, kw_only=True):
    """`order swap`, read."""

    sell: str
    buy: str
    amount: str
    limit_amount: str | None
    side: Side
    type: OrderType
    venue: Place
    chain_id: int
    node: NodeSettings
    key: SigningKey
    slippage_bps: int
    receiver: bytes | None
    partner: str
    life_s: int
    delta: bytes | None
    allowing: Allowing
    is_sure: bool
    is_rehearsal: bool
    follows: bool


@click.command("swap", context_settings=HELP)
@click.argument("sell", metavar="SELL_TOKEN")
@click.argument("buy", metavar="BUY_TOKEN")
@click.argument("amount")
@signing_options
@click.option(
    "--side",
    type=click.Choice([side.value for side in Side], case_sensitive=False),
    default=Side.SELL.value,
    show_default=True,
    help="Which amount AMOUNT is: what is sold, or what is bought.",
)
@click.option(
    "--slippage",
    "slippage_bps",
    metavar="BPS",
    type=click.IntRange(limits.SLIPPAGE_BPS_MIN, limits.SLIPPAGE_BPS_MAX),
    help="How much worse than quoted it may become, in basis points.  [default: 50]",
)
@click.option(
    "--type",
    "type_name",
    type=click.Choice([kind.value for kind in OrderType], case_sensitive=False),
    default=OrderType.MARKET.value,
    show_default=True,
    help="LIMIT rests until its price can be had.",
)
@click.option(
    "--limit-amount", help="Of a LIMIT order: the least that is received, or with --side BUY the most spent."
)
@click.option("--receiver", type=Address(), help="Who gets what is bought; the key's account if absent.")
@click.option("--partner", default="", help="The partner's key.")
@click.option(
    "--deadline",
    "life_s",
    metavar="SECONDS",
    type=click.IntRange(1),
    help=f"How long it may be settled.  [default: {TRADER_ORDER_S}, LIMIT {TRADER_LIMIT_ORDER_S}]",
)
@click.option("--permit", is_flag=True, help="Sign an EIP-2612 permit in place of an approval.")
@click.option("--approve-max", is_flag=True, help="Approve any amount, not just this one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--no-wait", is_flag=True, help="Stop once it is submitted.")
@click.option("--dry-run", is_flag=True, help="Show the price, have the order built and checked, and stop.")
@timeout
@venue_options
def swap(
    venue: Place,
    sell: str,
    buy: str,
    amount: str,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    delta: bytes | None,
    side: str,
    slippage_bps: int | None,
    type_name: str,
    limit_amount: str | None,
    receiver: bytes | None,
    partner: str,
    life_s: int | None,
    timeout_s: float,
    *,
    permit: bool,
    approve_max: bool,
    yes: bool,
    no_wait: bool,
    dry_run: bool,
) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN by a Delta order.

    Tokens are addresses, or symbols of the venue's list; amounts are in whole tokens, such as 1.5. Shows the
    price and asks. What the venue wants to be signed is checked against that first. Native tokens are
    deposited for the order, everything else costs no gas but for an approval.
    """
    order_type = OrderType(type_name)
    is_limit = order_type is OrderType.LIMIT
    if permit and approve_max:
        raise click.UsageError("--permit and --approve-max exclude each other")
    if is_limit != (limit_amount is not None):
        raise click.UsageError("--type LIMIT and --limit-amount go together")
    if is_limit and permit:
        raise click.UsageError("--permit: a limit order needs an approval")
    if is_limit and slippage_bps is not None:
        raise click.UsageError("--slippage: a limit order has its limit")
    check_partner(partner)
    amounts = {"AMOUNT": amount} | ({"--limit-amount": limit_amount} if limit_amount is not None else {})
    asked = _Asked(
        sell=sell,
        buy=buy,
        amount=amount,
        limit_amount=limit_amount,
        side=Side(side.upper()),
        type=order_type,
        venue=timed(venue, timeout_s),
        chain_id=chain_id,
        node=checked_node(rpc, **amounts),
        key=read_key(key, password),
        slippage_bps=50 if slippage_bps is None else slippage_bps,
        receiver=receiver,
        partner=partner,
        life_s=life_s or (TRADER_LIMIT_ORDER_S if is_limit else TRADER_ORDER_S),
        delta=delta,
        allowing=Allowing.PERMIT if permit else Allowing.MOST if approve_max else Allowing.EXACT,
        is_sure=yes,
        is_rehearsal=dry_run,
        follows=not no_wait,
    )
    run(_swap, asked)


async def _swap(under_way: UnderWay, asked: _Asked) -> int:
    console = new_console()
    tell = partial(console.print, style="dim")
    async with (
        RpcChain.open(asked.chain_id, asked.node, known_errors()) as chain,
        asked.venue.open() as venue,
    ):
        tell("asking the venue for its tokens")
        listed = await venue.tokens(asked.chain_id)
        src = await find_token(chain, listed, asked.sell, "SELL_TOKEN")
        dest = await find_token(chain, listed, asked.buy, "BUY_TOKEN")
        placer = OrderPlacer(
            chain,
            venue,
            asked.key,
            wall_s=lambda: int(time.time()),
            random32=partial(secrets.token_bytes, HASH_BYTES),
            tell=tell,
            allowing=asked.allowing,
        )
        offer = await placer.offer(_wish(asked, src, dest), asked.delta)
        console.print(order_table(offer, asked.allowing))
        if asked.is_rehearsal:
            checked = await placer.rehearse(offer)
            outcome = OrderOutcome(verdict=Verdict.REHEARSED, order_hash=checked.order_hash)
        else:
            if not asked.is_sure:
                click.confirm("Swap?", abort=True, err=True)
            outcome = await _placed(under_way, asked, placer, offer, chain, venue, tell)
    return report(asked.venue, outcome, Tokens(src, dest), offer)


async def _placed(
    under_way: UnderWay,
    asked: _Asked,
    placer: OrderPlacer,
    offer: OrderOffer,
    chain: RpcChain,
    venue: VenueClient,
    tell: Callable[[str], None],
) -> OrderOutcome:
    """Placed, and followed to its end where that is wanted."""

    def about_to(order_hash: bytes) -> None:
        under_way.hint = f"the order {to_hex(order_hash)} may be live: {asked.venue.hint(to_hex(order_hash))}"

    try:
        placed = await placer.place(offer, about_to)
    except StepFailedError as failed:
        verdict = Verdict.REVERTED if failed.receipt else Verdict.UNKNOWN
        return OrderOutcome(verdict=verdict, step=failed.step, tx_hash=failed.tx_hash, reason=failed.reason)
    order_hash, record = placed.order_hash, placed.record
    if record is None:
        return OrderOutcome(verdict=Verdict.UNKNOWN, order_hash=order_hash, reason=placed.fault)
    under_way.hint = f"the order goes on: {asked.venue.hint(record.id)}"
    if not asked.follows:
        return OrderOutcome(verdict=Verdict.PLACED, order_hash=order_hash, record=record)
    wish = offer.terms.wish
    subject = Subject(offer.contract.address, order_hash, wish.owner, wish.beneficiary, wish.dest.address)
    follower = Follower(venue, record.id, tell)
    try:
        follower.see(record)
        await until_interrupted(follower.follow, asked.venue.timeout_s)
        return await ended(follower.record or record, chain, subject)
    except (VenueError, ChainError) as fault:
        return OrderOutcome(
            verdict=Verdict.UNKNOWN, order_hash=order_hash, record=follower.record, reason=fault.detail
        )


def _wish(asked: _Asked, src: TradedToken, dest: TradedToken) -> OrderWish:
    if src.address == dest.address:
        raise ConfigError("BUY_TOKEN", "is the token that is sold")
    fixed, other = (src, dest) if asked.side is Side.SELL else (dest, src)
    limit = asked.limit_amount
    return OrderWish(
        chain_id=asked.chain_id,
        src=src,
        dest=dest,
        side=asked.side,
        amount=raw_units(asked.amount, fixed, "AMOUNT"),
        slippage_bps=asked.slippage_bps,
        limit_amount=None if limit is None else raw_units(limit, other, "--limit-amount"),
        type=asked.type,
        owner=asked.key.address,
        beneficiary=asked.receiver or asked.key.address,
        partner=asked.partner,
        life_s=asked.life_s,
    )
