"""Demo steps of an OTC order: signed by its maker for a single taker, filled in part, cancelled on chain.

Maker and taker take the steps of `cambist otc`. The taker trusts only the chain: the demo compares the
venue's records and pushed events with the chain.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from random import SystemRandom

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units, parse_units
from ....codecs.contracts.calldata import partial_fill_order
from ....codecs.messages.event_messages import OpenMessage, OrderEventMessage, OrderStreamMessage
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import OtcState, OtcType
from ....config.errors import ChainError, Reverted
from ....config.sections.nodes import NodeSettings
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import EthCall
from ...trader.client.allowing import Allowing
from ...trader.client.client import VenueClient
from ...trader.client.events import OrderEvents, OtcEventsWanted
from ...trader.client.listing import event_line
from ...trader.client.otc.otc_cancelling import Ending, cancel_otc
from ...trader.client.otc.otc_filling import OtcFiller
from ...trader.client.otc.otc_following import disproof
from ...trader.client.otc.otc_listing import OtcWanted, otc_pages
from ...trader.client.otc.otc_posting import OtcPoster
from ...trader.client.otc.otc_reading import standing_of
from ...trader.client.otc.otc_safety import check_asked
from ...trader.client.otc.otc_terms import OTC_MEANS, OtcPart, OtcWish, SignedOtc, part_given
from ...trader.client.otc.otc_view import fill_lines, fill_table, post_table
from ...trader.client.outcome import TradeVerdict
from ...trader.client.terms import TradedToken
from ...trader.client.trader import Trader
from ...trader.client.trusted_contract import SigningContract
from .balances import Balances, balances, moved, moves_table
from .order_scene import NATIVE, Tell, timed
from .place_settings import TOKENS
from .settlement import CHAIN_ID, WAIT_S, DemoChain
from .venue import MarketPlace

_MAKER, _TAKER, _STRANGER = 7, 5, 4  # accounts of the devnet
_GIVES, _WANTS = "WETH", "USDC"
_GIVEN, _WANTED = "10", "26000"
_PART = "10400"  # the part of _WANTED that the taker pays
_LIFE_S = 12 * 3_600
_HASH_BYTES = 32


class _Bilateral(Struct, frozen=True):
    """Parties and connections of the demo's OTC steps: chain, venue, and the order's maker and taker.

    Attributes:
        pushed: channel of the events that the venue pushes about orders for the taker.
    """

    console: Console
    stage: DemoChain
    place: MarketPlace
    chain: RpcChain
    venue: VenueClient
    pushed: trio.MemoryReceiveChannel[OrderStreamMessage]

    @property
    def maker(self) -> SigningKey:
        return self.stage.keys[_MAKER]

    @property
    def taker(self) -> SigningKey:
        return self.stage.keys[_TAKER]

    @property
    def people(self) -> Mapping[str, bytes]:
        """Return the accounts whose balances the demo compares (maker, taker, RFQ contract): name -> address.

        The RFQ contract must keep no tokens.
        """
        return {"maker": self.maker.address, "taker": self.taker.address, "RFQ": self.stage.at("rfq")}

    async def balances(self) -> Balances:
        """Read the token and native balances of maker, taker and RFQ contract, in raw units."""
        tokens = {symbol: self.stage.at(symbol) for symbol in TOKENS}
        return await balances(self.stage.chain, tokens | NATIVE, self.people)

    def token(self, symbol: str) -> TradedToken:
        """Return the demo's token with a symbol (WETH, USDC or WBTC), with its address and decimals."""
        return TradedToken(self.stage.at(symbol), symbol, TOKENS[symbol])

    def wish(self) -> OtcWish:
        """Build the terms of the OTC order that the maker wishes to post, for 10 WETH against 26,000 USDC."""
        return OtcWish(
            chain_id=CHAIN_ID,
            src=self.token(_GIVES),
            dest=self.token(_WANTS),
            src_amount=parse_units(_GIVEN, TOKENS[_GIVES]),
            dest_amount=parse_units(_WANTED, TOKENS[_WANTS]),
            maker=self.maker.address,
            taker=self.taker.address,
            life_s=_LIFE_S,
        )

    def poster(self, tell: Tell) -> OtcPoster:
        """Create the client that signs the maker's OTC orders and posts them to the venue."""
        return OtcPoster(self.trader(self.maker, tell), self.venue)

    def filler(self, key: SigningKey, contract: SigningContract, tell: Tell) -> OtcFiller:
        """Create the client that fills OTC orders on the chain with a taker's key."""
        return OtcFiller(self.trader(key, tell), contract)

    def trader(self, key: SigningKey, tell: Tell) -> Trader:
        """Create the object that signs and sends an account's transactions with its key."""
        return Trader(chain=self.chain, key=key, wall_s=self.now_s, tell=tell)

    def now_s(self) -> int:
        """Return the time of the clock that all applications of the demo share, Unix seconds."""
        return self.place.clock.now_ms() // 1_000

    def show(self, line: str) -> None:
        """Print a line on the console, indented by two spaces."""
        self.console.print(f"  {line}", highlight=False, soft_wrap=True)


class _Posted(Struct, frozen=True):
    """Signed OTC order that the venue has accepted, and the RFQ contract of the order's EIP-712 domain."""

    contract: SigningContract
    signed: SignedOtc


async def run_otc_orders(console: Console, stage: DemoChain, place: MarketPlace) -> None:
    """Run the demo's OTC steps (15 and 16) and print each on `console`; raise if a step fails."""
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        VenueClient.open(place.url) as venue,
        _pushed_to(venue, stage.keys[_TAKER].address) as pushed,
    ):
        scene = _Bilateral(console, stage, place, chain, venue, pushed)
        console.rule("15. An OTC order for one taker: posted without gas, refused to a stranger")
        posted = await _show_posting(scene)
        await _show_refusals(scene, posted)
        console.rule("16. Its taker fills a part on chain, and its maker cancels the rest")
        left = await _show_fill(scene, posted)
        await _show_cancellation(scene, posted, left)


@asynccontextmanager
async def _pushed_to(
    venue: VenueClient, taker: bytes
) -> AsyncGenerator[trio.MemoryReceiveChannel[OrderStreamMessage]]:
    """Context manager: subscribe to the venue's events of a taker's OTC orders; yield the event channel."""
    heard, pushed = trio.open_memory_channel[OrderStreamMessage](100)
    wanted = OtcEventsWanted(taker=to_checksum(taker), chain_ids=(CHAIN_ID,))
    events = OrderEvents(venue, wanted, heard.send_nowait, tell=_unheard, random=SystemRandom())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(events.run)
        with trio.fail_after(WAIT_S):
            while not isinstance(await pushed.receive(), OpenMessage):
                pass
        yield pushed
        nursery.cancel_scope.cancel()


# --- Posted, and whom it is not for -------------------------------------------------------------------


async def _show_posting(scene: _Bilateral) -> _Posted:
    tell = timed(scene.console)
    poster, before = scene.poster(tell), await scene.balances()
    offer = await poster.offer(scene.wish())
    scene.console.print(post_table(offer, Allowing.EXACT))
    signed, placed = await poster.post(offer)
    if placed.record is None:
        raise AssertionError(f"it is not known whether the order was taken: {placed.fault}")
    message = await _heard(scene, tell, signed)
    if message.version != 1 or message.taker != to_checksum(scene.taker.address):
        raise AssertionError(f"the order is new and the taker's, and the venue pushes {message}")
    wanted = OtcWanted(chain_id=CHAIN_ID, role="taker", account=scene.taker.address, type=OtcType.P2P)
    listed = [stored.order_hash async for page in otc_pages(scene.venue, wanted) for stored in page]
    if to_hex(signed.order_hash) not in listed:
        raise AssertionError(f"the taker does not find the order: {listed}")
    await _show_record(scene, posted_as := _Posted(offer.contract, signed), OtcState.PENDING, message)
    if any(who != "maker" or symbol != "ETH" for who, symbol in moved(before, await scene.balances())):
        raise AssertionError("posting has moved tokens")
    scene.show("The maker has paid for its approval and for nothing else; the taker was told at once.")
    return posted_as


async def _show_refusals(scene: _Bilateral, posted: _Posted) -> None:
    stranger = scene.stage.keys[_STRANGER]
    table = Table("a stranger", "is answered", box=None)
    table.add_column(overflow="fold")
    try:
        await scene.filler(stranger, posted.contract, _unheard).standing(posted.signed)
    except ChainError as refusal:
        if "the contract refuses any other taker" not in refusal.detail:
            raise
        table.add_row("with cambist otc fill", f"[red]{refusal.detail}[/red]")
    else:
        raise AssertionError("a stranger may fill the order")
    signed = posted.signed
    part = parse_units(_PART, TOKENS[_WANTS])
    data = partial_fill_order(signed.order, signed.signature, part)
    try:
        await scene.chain.call(EthCall(posted.contract.address, data, stranger.address))
    except Reverted as refusal:
        if refusal.reason != "Access denied":
            raise
        table.add_row("by the RFQ contract", f"[red]{refusal.reason}[/red]")
    else:
        raise AssertionError("the contract lets a stranger fill the order")
    scene.console.print(table)


# --- Filled in part, and cancelled --------------------------------------------------------------------


async def _show_fill(scene: _Bilateral, posted: _Posted) -> int:
    """Fill a part of the OTC order as its taker.

    Returns:
        The amount of the maker's token that is still unfilled, in raw units.
    """
    tell = timed(scene.console)
    before = await scene.balances()
    filler = scene.filler(scene.taker, posted.contract, tell)
    found = await scene.venue.otc_order(to_hex(posted.signed.order_hash))
    signed = check_asked(found, posted.signed.order_hash, posted.contract)
    standing = await filler.standing(signed)
    order = signed.order
    gives, given = scene.token(_WANTS), parse_units(_PART, TOKENS[_WANTS])
    part = part_given(order, standing.left(order), given, gives, "the part")
    offer = await filler.offer(signed, standing, part, gives, scene.token(_GIVES))
    scene.console.print(fill_table(offer, Allowing.EXACT, await scene.venue.tokens(posted.contract.chain_id)))
    outcome = await filler.fill(offer)
    if outcome.verdict is not TradeVerdict.FILLED or outcome.remarks:
        raise AssertionError(f"it is not filled as agreed: {outcome}")
    for line in fill_lines(outcome, offer):
        tell(line)
    left = order.maker_amount - part.maker_amount
    message = await _heard(scene, tell, signed)
    stored = await _show_record(scene, posted, OtcState.PENDING, message)
    if (int(stored.fillable_balance), stored.transaction_hash) != (left, to_hex(outcome.tx_hash)):
        raise AssertionError(f"{left} are left since {to_hex(outcome.tx_hash)}, the venue says {stored}")
    _show_moves(scene, before, await scene.balances(), part)
    return left


def _show_moves(scene: _Bilateral, before: Balances, after: Balances, part: OtcPart) -> None:
    """Print the balances before and after a fill, and check the changes of the balances.

    Args:
        part: agreed amounts of the maker's and the taker's token that the fill exchanges, raw units.

    Raises:
        AssertionError: a change differs from the agreed amounts, or the taker has paid no gas.
    """
    whole = {key: amount for key, amount in after.items() if key[1] in TOKENS}
    scene.console.print(moves_table(before, whole, TOKENS))
    found = moved(before, after)
    gas = found.pop(("taker", "ETH"), 0)
    agreed = {
        ("maker", _GIVES): -part.maker_amount,
        ("maker", _WANTS): part.taker_amount,
        ("taker", _GIVES): part.maker_amount,
        ("taker", _WANTS): -part.taker_amount,
    }
    if found != agreed or gas >= 0:
        raise AssertionError(f"the fill moved {found} and {gas} wei, {agreed} was agreed")
    scene.show("From account to account, to the unit as agreed; gas was the taker's, the venue had no part.")


async def _show_cancellation(scene: _Bilateral, posted: _Posted, left: int) -> None:
    tell = timed(scene.console)
    signed, before = posted.signed, await scene.balances()
    orders = {signed.order_hash: signed.order}
    cancelled = await cancel_otc(scene.trader(scene.maker, tell), posted.contract, orders)
    receipt = cancelled.receipt
    if receipt is None or cancelled.endings != {signed.order_hash: Ending.CANCELLED}:
        raise AssertionError(f"it is not cancelled: {cancelled}")
    message = await _heard(scene, tell, signed)
    stored = await _show_record(scene, posted, OtcState.CANCELLED, message)
    if (int(stored.fillable_balance), stored.transaction_hash) != (left, to_hex(receipt.tx_hash)):
        raise AssertionError(f"{to_hex(receipt.tx_hash)} has cancelled {left}, the venue says {stored}")
    found, gas_wei = moved(before, await scene.balances()), receipt.gas_used * receipt.gas_price_wei
    if found != {("maker", "ETH"): -gas_wei}:
        raise AssertionError(f"the cancellation cost {gas_wei} wei and moved {found}")
    try:
        await scene.filler(scene.taker, posted.contract, _unheard).standing(signed)
    except ChainError as refusal:
        whole = format_units(left, TOKENS[_GIVES])
        scene.show(f"The other {whole} {_GIVES} stay the maker's. Its taker is told now: {refusal.detail}.")
    else:
        raise AssertionError("a cancelled order may be filled")


# --- What the venue says ------------------------------------------------------------------------------


async def _heard(scene: _Bilateral, tell: Tell, signed: SignedOtc) -> OrderEventMessage:
    """Wait for the next event about an OTC order that the venue pushes to the taker; return the event."""
    with trio.fail_after(WAIT_S):
        while True:
            message = await scene.pushed.receive()
            if isinstance(message, OrderEventMessage) and message.order_hash == to_hex(signed.order_hash):
                tell(f"pushed to the taker: {event_line(OTC_MEANS, message)}")
                return message


async def _show_record(
    scene: _Bilateral, posted: _Posted, state: OtcState, message: OrderEventMessage
) -> StoredOrder:
    """Print and return the venue's record of an OTC order, after checks against an event and the chain.

    Args:
        state: state that the record must have.
        message: event that the venue has pushed to the taker, which the record must agree with.

    Raises:
        AssertionError: the record has another state, or contradicts the event or the chain.
    """
    stored = await scene.venue.otc_order(message.order_hash)
    table = Table("GET /ft/order", "", box=None)
    table.columns[1].overflow = "fold"
    table.add_row("state", f"{stored.state.value} ({stored.type.value})")
    digits = TOKENS[_GIVES]
    for name, amount in (
        ("makerAmount", stored.maker_amount),
        ("fillableBalance", stored.fillable_balance),
        ("makerBalance", stored.maker_balance),
        ("reservedBalance", stored.reserved_balance),
        ("swappableBalance", stored.swappable_balance),
    ):
        table.add_row(name, f"{format_units(int(amount), digits)} {_GIVES}")
    table.add_row("transactionHash", stored.transaction_hash or "none yet")
    scene.console.print(table)
    told = (stored.state.value, stored.fillable_balance, stored.swappable_balance)
    if told != (message.status, message.fillable_balance, message.swappable_balance):
        raise AssertionError(f"the venue has pushed {message}, and says {stored}")
    if stored.state is not state:
        raise AssertionError(f"the order is not {state.value}: {stored}")
    signed, contract = posted.signed, posted.contract
    fault = await disproof(scene.chain, contract, signed, stored, scene.now_s())
    standing = await standing_of(scene.chain, contract, signed)
    if fault or (not standing.is_closed and int(told[1]) != standing.left(signed.order)):
        raise AssertionError(f"the chain does not bear the venue out: {fault or standing}")
    return stored


def _unheard(line: str) -> None:
    """Discard a line of progress."""
