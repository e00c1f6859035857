"""Demo steps of Market swaps: a swap over two makers and two hops, refused repeats, a maker that stops.

The trader takes the steps of `cambist swap`: quote, approve, build, check, sign, send, follow. The demo reads
the signed orders back from the transaction on the chain, and compares the balances with the orders, to the
unit.
"""

import time
from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units, parse_units
from ....codecs.contracts.calldata import approve
from ....codecs.contracts.router_calldata import PAYS_DIRECTLY, RouterSwap
from ....codecs.contracts.router_decoding import decode_swap
from ....codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from ....codecs.messages.vocabulary import Side
from ....config.errors import Reverted, VenueError
from ....config.sections.nodes import NodeSettings
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import EthCall
from ...chain.proceeds import of_sale
from ...chain.transact import transact
from ...trader.client.allowing import Allowing
from ...trader.client.client import VenueClient
from ...trader.client.outcome import SentOutcome, TradeVerdict
from ...trader.client.safety import fee_bps_of
from ...trader.client.swap.swap_view import offer_table
from ...trader.client.swap.swapping import Offer, Swapper
from ...trader.client.terms import Terms, TradedToken, Wish, transaction_body
from ...trader.client.trader import Trader
from .balances import Balances, balances, moved, moves_table
from .place_settings import TOKENS
from .settlement import CHAIN_ID, DemoChain, calldata_of
from .venue import MarketPlace

_TRADER = 5  # account of the devnet
_SLIPPAGE_BPS = 50


class _Scene(Struct, frozen=True):
    """Parties and connections of the demo's swap steps: chain, venue with makers and agents, trader."""

    console: Console
    stage: DemoChain
    place: MarketPlace
    venue: VenueClient
    swapper: Swapper
    trader: SigningKey

    @property
    def people(self) -> Mapping[str, SigningKey]:
        return {"trader": self.trader, **self.place.keys}

    def wish(self, src: str, dest: str, whole: str) -> Wish:
        """Build the terms on which the trader wishes to sell tokens by a swap.

        Args:
            src, dest: symbols of the sold and the bought token.
            whole: amount of `src` to sell, in whole tokens, as decimal text.
        """
        return Wish(
            chain_id=CHAIN_ID,
            src=TradedToken(self.stage.at(src), src, TOKENS[src]),
            dest=TradedToken(self.stage.at(dest), dest, TOKENS[dest]),
            side=Side.SELL,
            amount=parse_units(whole, TOKENS[src]),
            slippage_bps=_SLIPPAGE_BPS,
            user=self.trader.address,
            receiver=self.trader.address,
        )

    def show_offer(self, offer: Offer) -> None:
        symbols = {to_hex(self.stage.at(symbol)): symbol for symbol in TOKENS}
        self.console.print(offer_table(offer, symbols, Allowing.EXACT))


async def run_swaps(console: Console, stage: DemoChain, place: MarketPlace) -> None:
    """Run the demo's swap steps (7 to 9) and print each on `console`; raise if a step fails.

    Afterwards the maker `alpha` gives no prices or quotes, since its kill switch is still on.
    """
    trader = stage.keys[_TRADER]
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        VenueClient.open(place.url) as venue,
    ):

        def tell(line: str) -> None:
            console.print(f"  {line}", style="dim", highlight=False, soft_wrap=True)

        account = Trader(chain=chain, key=trader, wall_s=lambda: int(time.time()), tell=tell)
        swapper = Swapper(account, venue)
        scene = _Scene(console, stage, place, venue, swapper, trader)
        console.rule(f"7. A venue on {place.url}: a swap through two makers, over two hops")
        offer, data = await _show_swap(scene)
        console.rule("8. What does not work")
        await _show_refusals(scene, offer, data)
        console.rule("9. One maker stops after its price was agreed to: the other serves")
        await _show_stand_in(scene)


async def _show_swap(scene: _Scene) -> tuple[Offer, bytes]:
    """Swap WETH for WBTC by a route through both makers; return the accepted offer and the calldata sent."""
    offer = await scene.swapper.offer(scene.wish("WETH", "WBTC", "4"))
    scene.show_offer(offer)
    hops = [swap for part in offer.route.best_route for swap in part.swaps]
    makers = {each.exchange for hop in hops for each in hop.swap_exchanges}
    if len(hops) != 2 or makers != set(scene.place.makers):
        raise AssertionError(f"the route has {len(hops)} hops by {makers}")
    outcome, data = await _perform(scene, offer)
    scene.console.print(
        f"  swapped in block {outcome.block_number} for {outcome.gas} gas, balances to the unit as signed",
        highlight=False,
    )
    return offer, data


async def _show_refusals(scene: _Scene, offer: Offer, data: bytes) -> None:
    table = Table("again", "answer", box=None)
    call = EthCall(offer.router, data, scene.trader.address)
    name = "the same calldata: the allowance was exact"
    table.add_row(name, await _reverted(scene, name, call, "TRANSFER_FROM_FAILED"))
    weth = scene.stage.at("WETH")
    await transact(scene.stage.chain, scene.trader, weth, approve(offer.router, offer.wish.amount))
    name = "and with an allowance: its firm quotes are filled"
    table.add_row(name, await _reverted(scene, name, call, "StepFailed"))
    route = msgspec.json.decode(offer.priced.raw)
    route["destAmount"] = str(int(route["destAmount"]) + 1)
    terms = Terms(
        wish=offer.wish,
        limit=offer.limit,
        fee_bps=fee_bps_of(offer.route),
        router=offer.router,
        deadline=int(time.time()) + 60,
    )
    try:
        await scene.venue.transaction(CHAIN_ID, transaction_body(terms, Raw(msgspec.json.encode(route))))
    except VenueError as error:
        if error.error_type != "InvalidPriceRoute":
            raise
        table.add_row("the route with one unit more", f"[red]{error.status}[/red] {error.details}")
    else:
        raise AssertionError("a route that was changed is built")
    scene.console.print(table)


async def _show_stand_in(scene: _Scene) -> None:
    offer = await scene.swapper.offer(scene.wish("WETH", "USDC", "2"))
    scene.show_offer(offer)
    (route,) = offer.route.best_route
    if [each.exchange for each in route.swaps[0].swap_exchanges] != ["alpha"]:
        raise AssertionError(f"not alpha is routed to, but {route.swaps}")
    await scene.place.stop("alpha")
    scene.console.print("  alpha stops: its kill switch is thrown", style="red")
    outcome, data = await _perform(scene, offer)
    makers = {info.order.maker for hop in decode_swap(data)[1].hops for info in hop.orders}
    if makers != {scene.place.keys["beta"].address}:
        raise AssertionError("the stand-in is not beta")
    quoted = int(offer.route.dest_amount)
    less, whole, least = (
        format_units(amount, TOKENS["USDC"]) for amount in (quoted - outcome.received, quoted, offer.limit)
    )
    scene.console.print(
        f"  beta signed in its place: {less} USDC less than the {whole} quoted, above the minimum of {least}",
        highlight=False,
    )


async def _perform(scene: _Scene, offer: Offer) -> tuple[SentOutcome, bytes]:
    """Perform a swap; return its outcome and the calldata sent.

    Raises:
        AssertionError: the swap fails, or a balance changes by another amount than the makers' signed orders
            imply.
    """
    before = await _balances(scene)
    outcome = await scene.swapper.perform(offer)
    if outcome.verdict is not TradeVerdict.SWAPPED:
        raise AssertionError(f"{outcome.step} {outcome.verdict.value}: {outcome.reason}")
    after = await _balances(scene)
    data = await calldata_of(scene.stage, outcome.tx_hash)
    scene.console.print(moves_table(before, after, TOKENS))
    found, signed = moved(before, after), _as_signed(scene, decode_swap(data)[1])
    if found != signed:
        raise AssertionError(f"the swap moved {found}, the orders say {signed}")
    received = found["trader", offer.wish.dest.symbol]
    if received != outcome.received or received < offer.limit:
        raise AssertionError(f"{received} was received, {offer.limit} was agreed to")
    return outcome, data


def _as_signed(scene: _Scene, swap: RouterSwap) -> Balances:
    """Compute the balance changes that the signed maker orders of a swap imply; each hop has one order."""
    symbols = {scene.stage.at(symbol): symbol for symbol in TOKENS}
    names = {key.address: who for who, key in scene.people.items()}
    moves = Counter({("trader", symbols[swap.src_token]): -swap.src_amount})
    amount = swap.src_amount
    for hop in swap.hops:
        (info,) = hop.orders
        order = info.order
        given = amount * order.maker_amount // order.taker_amount
        moves[names[order.maker], symbols[order.taker_asset]] += amount
        moves[names[order.maker], symbols[order.maker_asset]] -= given
        amount = given
    fee = unpack_partner_and_fee(swap.partner_and_fee & ~PAYS_DIRECTLY)
    cut = of_sale(amount, swap.expected_amount, swap.dest_amount, fee)
    moves["trader", symbols[swap.dest_token]] += amount - cut.total
    return moves


async def _balances(scene: _Scene) -> Balances:
    people = {who: key.address for who, key in scene.people.items()}
    return await balances(scene.stage.chain, {symbol: scene.stage.at(symbol) for symbol in TOKENS}, people)


async def _reverted(scene: _Scene, name: str, call: EthCall, word: str) -> str:
    """Execute a call that must revert, and return the revert reason for display.

    Args:
        name: description of the call, for error messages.
        word: text that the revert reason must contain.

    Raises:
        AssertionError: the call succeeds, or the reason lacks `word`.
    """
    try:
        await scene.stage.chain.call(call)
    except Reverted as error:
        if word not in error.reason:
            raise AssertionError(f"{name}: {error.reason}") from None
        return f"[red]{error.reason}[/red]"
    raise AssertionError(f"{name}: it goes through")
