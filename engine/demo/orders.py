"""The demo's Delta orders: signed once, auctioned among two agents, settled by the venue's relayer.

The user goes the way of `cambist order`: quote, build, checks of one's own, sign, submit, follow, and have
the chain prove it. Rapid trades with both makers and plain with the worse one, so that rapid wins; then its
maker takes its allowance back between the auction and the block.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ...codecs.agent_messages import Notice
from ...codecs.amounts import format_units, parse_units
from ...codecs.auction_messages import AuctionedOrder
from ...codecs.calldata import approve
from ...codecs.delta_messages import OrderRecord
from ...codecs.trading_token import NATIVE_TOKEN
from ...codecs.transactions import Transaction, sign_transaction
from ...codecs.vocabulary import OrderStatus, OrderType, Side
from ...config.nodes import NodeSettings
from ...config.timeouts import TRADER_ORDER_S
from ...crypto.hexadecimal import parse_hex, to_hex
from ...crypto.secp256k1 import SigningKey
from ...crypto.signatures import signer, to_compact64
from ..chain.artifacts import known_errors
from ..chain.port import Receipt
from ..chain.rpc import RpcChain
from ..trader.allowing import Allowing
from ..trader.client import VenueClient
from ..trader.order_cancelling import cancel, follow_all
from ..trader.order_following import Follower, Settled, Subject, proven
from ..trader.order_placing import OrderOffer, OrderPlacer
from ..trader.order_terms import OrderWish
from ..trader.order_view import order_table
from ..trader.terms import TradedToken
from .balances import Balances, balances, moved, moves_table
from .place_settings import AGENTS, TOKENS
from .settlement import CHAIN_ID, Stage, calldata_of, transactions_of
from .venue import MarketPlace

_USER = 6  # account of the devnet
_BETTER, _OTHER = AGENTS
_SLIPPAGE_BPS = 50
_HASH_BYTES = 32
_SIGNED_CHARS = 42
_WAIT_S = 20.0
_LOOK_S = 0.05
_NATIVE = {"ETH": NATIVE_TOKEN}
_TIP_WEI = 50 * 10**9  # goes before everybody else
_ALLOWING_GAS = 100_000

_Tell = Callable[[str], None]


class _Scene(Struct, frozen=True):
    """A user at a market place. The chain is read as a user reads it, by JSON-RPC."""

    console: Console
    stage: Stage
    place: MarketPlace
    chain: RpcChain
    venue: VenueClient
    user: SigningKey

    @property
    def people(self) -> Mapping[str, bytes]:
        makers = {name: key.address for name, key in self.place.keys.items()}
        at = self.stage.at
        fees = {"fee vault": at("fee_vault"), "relayer": self.place.relayer}
        return {"user": self.user.address, **makers, **fees, "Delta": at("delta"), "executor": at("executor")}

    async def balances(self) -> Balances:
        """Tokens of everybody, and native ones of those who could have to pay for a settlement."""
        payers = {"user": self.user.address, "relayer": self.place.relayer}
        tokens = {symbol: self.stage.at(symbol) for symbol in TOKENS}
        found = await balances(self.stage.chain, tokens, self.people)
        return found | await balances(self.stage.chain, _NATIVE, payers)

    def token(self, symbol: str) -> TradedToken:
        return TradedToken(self.stage.at(symbol), symbol, TOKENS[symbol])

    def wish(self, src: str, dest: str, whole: str, least: str = "") -> OrderWish:
        """Sell so many whole tokens, at the market's price or for no less than `least`."""
        return OrderWish(
            chain_id=CHAIN_ID,
            src=self.token(src),
            dest=self.token(dest),
            side=Side.SELL,
            amount=parse_units(whole, TOKENS[src]),
            slippage_bps=_SLIPPAGE_BPS,
            limit_amount=parse_units(least, TOKENS[dest]) if least else None,
            type=OrderType.LIMIT if least else OrderType.MARKET,
            owner=self.user.address,
            beneficiary=self.user.address,
            partner="",
            life_s=TRADER_ORDER_S,
        )

    def placer(self, tell: _Tell, allowing: Allowing) -> OrderPlacer:
        return OrderPlacer(
            self.chain,
            self.venue,
            self.user,
            wall_s=lambda: int(time.time()),
            random32=partial(secrets.token_bytes, _HASH_BYTES),
            tell=tell,
            allowing=allowing,
        )

    def notices(self) -> dict[str, Counter[str]]:
        """What each agent was told so far."""
        return {name: Counter(app.solver.statistics().notices) for name, app in self.place.agents.items()}

    def show(self, line: str) -> None:
        self.console.print(f"  {line}", highlight=False)


async def run_orders(console: Console, stage: Stage, place: MarketPlace) -> None:
    """Show each step on `console`; raises if any of them does not hold. In the end alpha has no allowance."""
    place.makers["alpha"].switch.resume("all")
    await place.live()
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        VenueClient.open(place.url) as venue,
    ):
        scene = _Scene(console, stage, place, chain, venue, stage.keys[_USER])
        console.rule("10. A Delta order: signed once, won by the better of two agents")
        await _show_auction(scene)
        console.rule("11. A limit order rests, and its owner cancels it")
        await _show_cancellation(scene)
        console.rule("12. A settlement fails: it costs the user nothing, the runner-up settles")
        await _show_failure(scene)


# --- The better of two agents -------------------------------------------------------------------------


async def _show_auction(scene: _Scene) -> None:
    tell = _timed(scene.console)
    placer = scene.placer(tell, Allowing.PERMIT)
    nonce, before = await scene.chain.nonce(scene.user.address), await scene.balances()
    offer = await placer.offer(scene.wish("USDC", "WETH", "10004"))
    scene.console.print(order_table(offer, Allowing.PERMIT))
    follower = await _placed(scene, placer, offer, tell)
    signature = _show_signed(scene, _record(follower))
    record = await _completed(follower)
    auctioned = await _show_round(scene, record)
    promised = [int(bid.promised_amount or 0) for bid in auctioned.bids]
    if len(promised) != len(AGENTS) or promised[0] <= promised[1]:
        raise AssertionError(f"the bids promise {promised}")
    settled, receipt = await _proven(scene, offer, record)
    if signature not in await calldata_of(scene.stage, receipt.tx_hash):
        raise AssertionError("the settlement does not show the user's signature")
    after = await scene.balances()
    _show_moves(scene, before, after, offer, settled, {"alpha"}, receipt)
    if await scene.chain.nonce(scene.user.address) != nonce:
        raise AssertionError("the user has sent a transaction")
    more = format_units(settled.received - offer.terms.dest_quoted, TOKENS["WETH"])
    scene.show(f"The user has sent no transaction, not even to approve, and got {more} WETH above the quote.")


def _show_signed(scene: _Scene, record: OrderRecord) -> bytes:
    """What was signed; returns the signature, 64 bytes."""
    table = Table("signed", box=None)
    table.add_column(overflow="fold")
    for member, value in msgspec.json.decode(record.order).items():
        table.add_row(member, _signed_text(value))
    order_hash = parse_hex(record.order_hash, "orderHash")
    signature = to_compact64(*scene.user.sign(order_hash))
    if signer(order_hash, signature) != scene.user.address:
        raise AssertionError("the order is not the user's")
    table.add_row("order hash", record.order_hash)
    table.add_row("signature", to_hex(signature))
    scene.console.print(table)
    return signature


def _signed_text(value: object) -> str:
    """A member of an order: long bytes are cut, and of a bridge it is said whether there is one."""
    if isinstance(value, dict):
        goes_anywhere = any(str(each).strip("0x") for each in value.values())
        return str(value) if goes_anywhere else "none: it is settled on this chain"
    text = str(value)
    size = len(text) // 2 - 1
    return f"{text[:_SIGNED_CHARS]}... ({size} bytes)" if text[:2] == "0x" and size > _HASH_BYTES else text


# --- A cancellation -----------------------------------------------------------------------------------


async def _show_cancellation(scene: _Scene) -> None:
    tell = _timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    offer = await placer.offer(scene.wish("WETH", "USDC", "4", least="10400"))
    scene.console.print(order_table(offer, Allowing.EXACT))
    record = _record(await _placed(scene, placer, offer, tell))
    before, nonce = await scene.balances(), await scene.chain.nonce(scene.user.address)
    with trio.fail_after(_WAIT_S):
        while True:
            told = await scene.venue.explanation(record.id)
            if [reason.code for reason in told.reasons] == ["noBids"]:
                break
            await trio.sleep(_LOOK_S)
    table = Table("GET /explain", "", box=None)
    table.add_row("status", told.status.value)
    for reason in told.reasons:
        table.add_row(reason.code, reason.text)
    scene.console.print(table)
    followers = await cancel(scene.venue, scene.user, offer.contract, [record.id], tell)
    await follow_all(followers, _WAIT_S)
    ended = [_record(follower).status for follower in followers]
    if ended != [OrderStatus.CANCELLED]:
        raise AssertionError(f"it has not ended as cancelled: {ended}")
    found = moved(before, await scene.balances())
    if found or await scene.chain.nonce(scene.user.address) != nonce:
        raise AssertionError(f"the cancellation moved {found}")
    scene.show("One signature has cancelled it, and nobody's balance has moved: no transaction, no gas.")


# --- A settlement that fails --------------------------------------------------------------------------


async def _show_failure(scene: _Scene) -> None:
    stage, tell = scene.stage, _timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    before, told_before = await scene.balances(), scene.notices()
    scene.show("4 WETH again, at the market's price; what was allowed for the limit order is allowed still.")
    offer = await placer.offer(scene.wish("WETH", "USDC", "4"))
    if offer.must_allow:
        raise AssertionError("the cancelled order's allowance is gone")
    relayer = scene.place.venue.delta.chains[CHAIN_ID].relayer
    handed = relayer.statistics().counts["handed"]
    await stage.chain.set_automine(on=False)
    follower = await _placed(scene, placer, offer, tell)
    await _until(lambda: relayer.statistics().counts["handed"] > handed)
    tell(f"{_BETTER} has won, and its settlement waits for a block")
    first = await _before_all(stage, scene.place.keys["alpha"], stage.at("USDC"), approve(stage.at("rfq"), 0))
    tell("alpha takes its allowance back, for more gas: its firm quote cannot be filled any more")
    await stage.chain.set_automine(on=True)
    await stage.chain.mine()
    record = await _completed(follower)
    failed = await _show_block(scene, first)
    await _show_round(scene, record)
    await _show_agents(scene, told_before)
    settled, receipt = await _proven(scene, offer, record)
    after = await scene.balances()
    _show_moves(scene, before, after, offer, settled, {"beta"}, receipt, failed)
    only_user = {"user": scene.user.address}
    tokens = _NATIVE | {symbol: stage.at(symbol) for symbol in TOKENS}
    at_failure = await balances(stage.chain, tokens, only_user, failed.block_number)
    if moved(before, at_failure):
        raise AssertionError(f"the settlement that failed has cost the user {moved(before, at_failure)}")
    scene.show(
        f"After block {failed.block_number} the user had what it had before, to the unit; "
        f"{_OTHER}'s bid of the same round settled the order in block {receipt.block_number}."
    )


async def _before_all(stage: Stage, key: SigningKey, to: bytes, data: bytes) -> bytes:
    """Hand in a transaction that is mined before all that waits; its hash."""
    fees = await stage.chain.fees()
    transaction = Transaction(
        chain_id=CHAIN_ID,
        nonce=await stage.chain.nonce(key.address),
        tip_wei=_TIP_WEI,
        fee_max_wei=2 * fees.base_fee_wei + _TIP_WEI,
        gas=_ALLOWING_GAS,
        to=to,
        value_wei=0,
        data=data,
    )
    return await stage.chain.send_raw(sign_transaction(transaction, key).raw)


async def _show_block(scene: _Scene, first: bytes) -> Receipt:
    """The block in which alpha was first; returns the receipt of the settlement behind it."""
    receipt = await scene.stage.chain.receipt(first)
    if receipt is None:
        raise AssertionError("alpha's transaction is not mined")
    receipts = [
        found
        for tx_hash in await transactions_of(scene.stage, receipt.block_number)
        if (found := await scene.stage.chain.receipt(tx_hash)) is not None
    ]
    table = Table(f"block {receipt.block_number}", "", "", box=None)
    whose = ("alpha allows nothing any more", f"the relayer settles {_BETTER}'s bid")
    for text, each in zip(whose, receipts, strict=True):
        became = "mined" if each.succeeded else "[red]reverted[/red]"
        table.add_row(to_hex(each.tx_hash)[:18] + "...", text, f"{became}, {each.gas_used} gas")
    scene.console.print(table)
    if [each.succeeded for each in receipts] != [True, False]:
        raise AssertionError("the block is another one")
    return receipts[-1]


async def _show_agents(scene: _Scene, before: Mapping[str, Counter[str]]) -> None:
    """What the agents were told of this order, and who rests."""
    wanted = {
        _BETTER: {Notice.WON, Notice.SETTLING, Notice.REVERTED, Notice.BANNED},
        _OTHER: {Notice.LOST, Notice.SETTLING, Notice.SETTLED},
    }

    def told(name: str) -> Counter[str]:
        return scene.notices()[name] - before[name]

    await _until(lambda: all(set(told(name)) >= notices for name, notices in wanted.items()))
    reports = scene.place.venue.delta.chains[CHAIN_ID].auctioneer.reports()
    table = Table("agent", "was told", "settlements", "faults", "", box=None)
    for name in AGENTS:
        report = reports[name]
        faults = ", ".join(f"{count} {kind}" for kind, count in report.faults.items()) or "none"
        rests = "[red]rests[/red]" if report.strikes else ""
        table.add_row(name, ", ".join(told(name)), str(report.delivered), faults, rests)
        if bool(report.strikes) != (name == _BETTER):
            raise AssertionError(f"{name} has {report.strikes} strikes")
    scene.console.print(table)


# --- Of every order -----------------------------------------------------------------------------------


def _timed(console: Console) -> _Tell:
    """Tells lines with the time since now."""
    began = time.monotonic()

    def tell(line: str) -> None:
        text = f"{time.monotonic() - began:6.2f} s  {line}"
        console.print(text, style="dim", highlight=False, soft_wrap=True)

    return tell


async def _placed(scene: _Scene, placer: OrderPlacer, offer: OrderOffer, tell: _Tell) -> Follower:
    """Signed and taken; what follows it tells each change."""
    placed = await placer.place(offer)
    if placed.record is None:
        raise AssertionError(f"it is not known whether the order was taken: {placed.fault}")
    follower = Follower(scene.venue, placed.record.id, tell)
    follower.see(placed.record)
    return follower


def _record(follower: Follower) -> OrderRecord:
    if follower.record is None:
        raise AssertionError("the venue has told nothing")
    return follower.record


async def _completed(follower: Follower) -> OrderRecord:
    """The record once the order is settled."""
    with trio.fail_after(_WAIT_S):
        while not follower.has_ended:
            await trio.sleep(_LOOK_S)
            await follower.look()
    record = _record(follower)
    if record.status is not OrderStatus.COMPLETED:
        raise AssertionError(f"it is not settled: {record}")
    return record


async def _proven(scene: _Scene, offer: OrderOffer, record: OrderRecord) -> tuple[Settled, Receipt]:
    """What the chain says of a settled order, and the receipt of its one settlement."""
    wish = offer.terms.wish
    order_hash = parse_hex(record.order_hash, "orderHash")
    subject = Subject(offer.contract.address, order_hash, wish.owner, wish.beneficiary, wish.dest.address)
    settled = await proven(scene.chain, subject, record)
    (transaction,) = record.transactions
    receipt = await scene.chain.receipt(parse_hex(transaction.origin_tx, "originTx"))
    if settled.fault or settled.remarks or receipt is None:
        raise AssertionError(f"the chain does not bear the venue out: {settled}")
    return settled, receipt


async def _show_round(scene: _Scene, record: OrderRecord) -> AuctionedOrder:
    """The round that decided: rapid has won it, plain is next."""
    told = await scene.venue.explanation(record.id)
    auction = await scene.venue.auction(told.last_rounds[0].auction_id)
    (auctioned,) = (each for each in auction.orders if each.order_hash == record.order_hash)
    decimals = {to_hex(scene.stage.at(symbol)): digits for symbol, digits in TOKENS.items()}
    digits = decimals[auctioned.dest_token.lower()]
    scene.show(f"GET /v2/delta/auctions/{auction.auction_id}: sealed until it was closed")
    table = Table("bid of", "promised", "simulated", "less gas", "came after", "", box=None)
    for bid in auctioned.bids:
        amounts = (bid.promised_amount, bid.simulated_amount, bid.net_amount)
        cells = (_to_eight_digits(int(amount or 0), digits) for amount in amounts)
        table.add_row(bid.agent, *cells, f"{bid.arrival_ms} ms", bid.notice.value)
    scene.console.print(table)
    if (auctioned.winner, auctioned.runners_up) != (_BETTER, (_OTHER,)):
        raise AssertionError(f"{auctioned.winner} has won, {auctioned.runners_up} are next")
    return auctioned


def _show_moves(
    scene: _Scene,
    before: Balances,
    after: Balances,
    offer: OrderOffer,
    settled: Settled,
    makers: set[str],
    *receipts: Receipt,
) -> None:
    """Balances before and after a settlement, held against what the chain says of it.

    Args:
        makers: who has traded.
        receipts: of what the relayer sent, the settlement first.
    """
    wish = offer.terms.wish
    scene.console.print(moves_table(before, after, TOKENS, also=(("user", "ETH"),)))
    gas = sum(receipt.gas_used for receipt in receipts)
    scene.show(f"the relayer paid for {gas} gas, the user for none")
    found = moved(before, after)
    users = {symbol: amount for (who, symbol), amount in found.items() if who == "user"}
    if users != {wish.src.symbol: -wish.amount, wish.dest.symbol: settled.received}:
        raise AssertionError(f"the user's {users} are not what the chain says: {settled}")
    if settled.received < offer.terms.limit:
        raise AssertionError(f"{settled.received} were received, {offer.terms.limit} were signed")
    spent_wei = sum(receipt.gas_used * receipt.gas_price_wei for receipt in receipts)
    traded = {who for who, _ in found} - {"user", "fee vault", "relayer"}
    if found["relayer", "ETH"] != -spent_wei or traded != makers:
        raise AssertionError(f"gas was {spent_wei} wei, {makers} have traded, and it moved {found}")
    for symbol in TOKENS:
        if sum(amount for (_, of), amount in found.items() if of == symbol):
            raise AssertionError(f"not everybody's {symbol} are told: {found}")


def _to_eight_digits(amount: int, decimals: int) -> str:
    """In whole tokens; what comes behind the eighth digit is cut."""
    digits = min(decimals, 8)
    return format_units(amount // 10 ** (decimals - digits), digits)


async def _until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(_WAIT_S):
        while not condition():  # noqa: ASYNC110  counters of others have no event
            await trio.sleep(_LOOK_S)
