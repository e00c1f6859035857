"""Shared parts of the demo's Delta order steps: the user's actions, the output, and the proofs.

The user takes the steps of `cambist order`: quote, build, check, sign, submit, follow, and verify the
settlement on the chain.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import parse_units
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus, OrderType, Side
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.timeouts import TRADER_ORDER_S
from ....crypto.hexadecimal import parse_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Receipt
from ...client.allowing import Allowing
from ...client.client import VenueClient
from ...client.order.order_following import OrderFollower, SettledOnChain, Subject, proven
from ...client.order.order_placing import OrderOffer, OrderPlacer
from ...client.order.order_safety import signed_order
from ...client.order.order_terms import OrderWish
from ...client.schedule import Schedule
from ...client.terms import TradedToken
from ...client.trader import Trader
from .balances import Balances, balances, moved, moves_table
from .place_settings import TOKENS
from .settlement import CHAIN_ID, DemoChain
from .venue import MarketPlace

USER = 6
"""Number of the user's account on the devnet."""
_SLIPPAGE_BPS = 50
WAIT_S = 20.0
"""Longest wait for an event of the demo, seconds."""
LOOK_S = 0.05
NATIVE = {"ETH": NATIVE_TOKEN}

Tell = Callable[[str], None]


class OrderScene(Struct, frozen=True):
    """A user at a market place, who reads the chain by JSON-RPC."""

    console: Console
    stage: DemoChain
    place: MarketPlace
    chain: RpcChain
    venue: VenueClient
    user: SigningKey

    @property
    def people(self) -> Mapping[str, bytes]:
        """Return the accounts whose balances a settlement may change, by name."""
        makers = {name: key.address for name, key in self.place.keys.items()}
        at = self.stage.at
        fees = {"fee vault": at("fee_vault"), "relayer": self.place.relayer}
        return {"user": self.user.address, **makers, **fees, "Delta": at("delta"), "executor": at("executor")}

    async def balances(self) -> Balances:
        """Read the token balances of all `people`, and the native balances of user and relayer."""
        payers = {"user": self.user.address, "relayer": self.place.relayer}
        tokens = {symbol: self.stage.at(symbol) for symbol in TOKENS}
        found = await balances(self.stage.chain, tokens, self.people)
        return found | await balances(self.stage.chain, NATIVE, payers)

    def token(self, symbol: str) -> TradedToken:
        """Return the token of TOKENS with this symbol."""
        return TradedToken(self.stage.at(symbol), symbol, TOKENS[symbol])

    def wish(
        self, src: str, dest: str, whole: str, least: str = "", schedule: Schedule | None = None
    ) -> OrderWish:
        """Build a wish to sell whole tokens: at market price or for at least `least`, at once or in
        slices.
        """
        return OrderWish(
            chain_id=CHAIN_ID,
            src=self.token(src),
            dest=self.token(dest),
            side=Side.SELL,
            amount=parse_units(whole, TOKENS[src]),
            slippage_bps=_SLIPPAGE_BPS,
            limit_amount=parse_units(least, TOKENS[dest]) if least else None,
            type=OrderType.LIMIT if least and schedule is None else OrderType.MARKET,
            owner=self.user.address,
            beneficiary=self.user.address,
            partner="",
            life_s=TRADER_ORDER_S,
            schedule=schedule,
        )

    def placer(self, tell: Tell, allowing: Allowing) -> OrderPlacer:
        """Create an object that places the user's orders."""
        return OrderPlacer(self.trader(tell, allowing), self.venue)

    def trader(self, tell: Tell, allowing: Allowing = Allowing.EXACT) -> Trader:
        """Create the trader that acts with the user's key."""
        return Trader(
            chain=self.chain,
            key=self.user,
            wall_s=lambda: self.place.clock.now_ms() // 1_000,
            tell=tell,
            allowing=allowing,
        )

    def notices(self) -> dict[str, Counter[str]]:
        """Count the notices that each agent has received so far, by kind."""
        return {name: Counter(app.solver.statistics().notices) for name, app in self.place.agents.items()}

    def show(self, line: str) -> None:
        """Print an indented line."""
        self.console.print(f"  {line}", highlight=False)


async def until(condition: Callable[[], bool]) -> None:
    """Poll until a condition holds for which no event exists.

    Raises:
        trio.TooSlowError: the condition does not hold within WAIT_S.
    """
    with trio.fail_after(WAIT_S):
        while not condition():  # noqa: ASYNC110  counters of others have no event
            await trio.sleep(LOOK_S)


def timed(console: Console) -> Tell:
    """Create a function that prints lines with the time since this call."""
    began = time.monotonic()

    def tell(line: str) -> None:
        text = f"{time.monotonic() - began:6.2f} s  {line}"
        console.print(text, style="dim", highlight=False, soft_wrap=True)

    return tell


async def placed_order(
    scene: OrderScene, placer: OrderPlacer, offer: OrderOffer, tell: Tell
) -> OrderFollower:
    """Sign and submit an order; returns a follower that reports each change."""
    placed = await placer.place(offer)
    if placed.record is None:
        raise AssertionError(f"it is not known whether the order was taken: {placed.fault}")
    follower = OrderFollower(scene.venue, placed.record.id, tell)
    follower.see(placed.record)
    return follower


def record_of(follower: OrderFollower) -> OrderRecord:
    """Return the venue's last record of the order."""
    if follower.record is None:
        raise AssertionError("the venue has told nothing")
    return follower.record


async def completed(follower: OrderFollower) -> OrderRecord:
    """Follow an order until it is settled; returns its record."""
    await follower.follow(WAIT_S)
    record = record_of(follower)
    if record.status is not OrderStatus.COMPLETED:
        raise AssertionError(f"it is not settled: {record}")
    return record


async def why_it_rests(scene: OrderScene, record: OrderRecord) -> str:
    """Show the venue's explanation of an unsettled order; return the reason."""
    with trio.fail_after(WAIT_S):
        while True:
            told = await scene.venue.explanation(record.id)
            if [reason.code for reason in told.reasons] == ["resting"]:
                break
            await trio.sleep(LOOK_S)
    (reason,) = told.reasons
    table = Table("GET /explain", "", box=None)
    table.add_row("status", told.status.value)
    table.add_row(reason.code, reason.text)
    table.add_row("rounds", str(len(told.last_rounds)))
    scene.console.print(table)
    if told.last_rounds:
        raise AssertionError(f"agents were asked about an order that rests: {told.last_rounds}")
    return reason.text


async def proven_order(
    scene: OrderScene, offer: OrderOffer, record: OrderRecord
) -> tuple[SettledOnChain, list[Receipt]]:
    """Verify a settled order on the chain; returns the result and the settlements' receipts."""
    subject = Subject(offer.contract.address, signed_order(record, offer.contract))
    settled = await proven(scene.chain, subject, record)
    found = [await scene.chain.receipt(parse_hex(each.origin_tx, "originTx")) for each in record.transactions]
    receipts = [receipt for receipt in found if receipt is not None]
    if settled.fault or settled.remarks or len(receipts) != len(found):
        raise AssertionError(f"the chain does not bear the venue out: {settled}")
    return settled, receipts


def show_moves(
    scene: OrderScene,
    before: Balances,
    after: Balances,
    offer: OrderOffer,
    settled: SettledOnChain,
    makers: set[str],
    *receipts: Receipt,
) -> None:
    """Show the balances before and after a settlement, and compare them with the result on the chain.

    Args:
        makers: names of the makers that traded.
        receipts: of all transactions that the relayer sent.
    """
    wish = offer.terms.wish
    scene.console.print(moves_table(before, after, TOKENS, also=(("user", "ETH"),)))
    gas = sum(receipt.gas_used for receipt in receipts)
    scene.show(f"the relayer paid for {gas} gas, the user for {'its approval' if offer.missing else 'none'}")
    found = moved(before, after)
    if offer.missing:
        found.pop(("user", "ETH"), None)
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
