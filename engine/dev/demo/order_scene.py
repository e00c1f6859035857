"""Shared parts of the demo's Delta order steps: the user's actions, the output, checks against the chain.

The user takes the steps of `cambist order`: quote, build, check, sign, submit, follow, and verify the
settlement on the chain.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import parse_units
from ....codecs.messages.auction_messages import Explanation
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus, OrderType, Side
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.timeouts import TRADER_ORDER_S
from ....crypto.hexadecimal import parse_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Chain, Receipt
from ...trader.client.allowing import Allowing
from ...trader.client.client import VenueClient
from ...trader.client.order.order_following import OfferTokens, OrderFollower, SettledOnChain, Subject, proven
from ...trader.client.order.order_placing import OrderOffer, OrderPlacer
from ...trader.client.order.order_safety import signed_order
from ...trader.client.order.order_terms import OrderWish
from ...trader.client.schedule import Schedule
from ...trader.client.terms import TradedToken
from ...trader.client.trader import Trader
from ...trader.client.trusted_contract import SigningContract
from .balances import Balances, balances, moved, moves_table
from .place_settings import TOKENS
from .settlement import CHAIN_ID, WAIT_S, DemoChain
from .venue import LOOK_S, MarketPlace

USER = 6
"""Index of the user's account among the devnet's funded accounts, from 0."""
_SLIPPAGE_BPS = 50
NATIVE = {"ETH": NATIVE_TOKEN}

Tell = Callable[[str], None]


class OrderScene(Struct, frozen=True):
    """Parties and connections of the demo's Delta order steps: chain, venue with makers and agents, user.

    Attributes:
        stage: chain with its contracts and accounts.
        place: the running venue, makers and agents.
        chain: the user's JSON-RPC client of the chain.
        venue: the user's HTTP client of the venue.
        user: key of the user's account.
    """

    console: Console
    stage: DemoChain
    place: MarketPlace
    chain: RpcChain
    venue: VenueClient
    user: SigningKey

    @property
    def people(self) -> Mapping[str, bytes]:
        """Return the accounts whose balances a settlement may change: name -> address."""
        makers = {name: key.address for name, key in self.place.keys.items()}
        at = self.stage.at
        fees = {"fee vault": at("fee_vault"), "relayer": self.place.relayer}
        return {"user": self.user.address, **makers, **fees, "Delta": at("delta"), "executor": at("executor")}

    async def balances(self) -> Balances:
        """Read token balances of all `people`, and native balances of user and relayer, in raw units."""
        payers = {"user": self.user.address, "relayer": self.place.relayer}
        tokens = {symbol: self.stage.at(symbol) for symbol in TOKENS}
        found = await balances(self.stage.chain, tokens, self.people)
        return found | await balances(self.stage.chain, NATIVE, payers)

    def token(self, symbol: str) -> TradedToken:
        """Return the demo's token with a symbol (WETH, USDC or WBTC), with its address and decimals."""
        return TradedToken(self.stage.at(symbol), symbol, TOKENS[symbol])

    def wish(
        self, src: str, dest: str, whole: str, least: str = "", schedule: Schedule | None = None
    ) -> OrderWish:
        """Build the terms on which the user wishes to sell tokens by a Delta order.

        Args:
            src, dest: symbols of the sold and the bought token.
            whole: amount of `src` to sell, in whole tokens, as decimal text.
            least: least amount of `dest` to receive, in whole tokens, as decimal text; empty for an order at
                the market price.
            schedule: division of a TWAP into slices; None for an order without slices.
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
        """Create the client that signs the user's Delta orders and submits them to the venue.

        Args:
            tell: receives lines of progress.
            allowing: kind of approval or permit by which the user grants the Delta contract an allowance of
                the sold token, if the present allowance is too small.
        """
        return OrderPlacer(self.trader(tell, allowing), self.venue)

    def trader(self, tell: Tell, allowing: Allowing = Allowing.EXACT) -> Trader:
        """Create the object that signs and sends the user's transactions and permits.

        Args:
            tell: receives lines of progress.
            allowing: kind of approval or permit by which the user grants a contract an allowance of the sold
                token, if the present allowance is too small.
        """
        return Trader(
            chain=self.chain,
            key=self.user,
            wall_s=lambda: self.place.clock.now_ms() // 1_000,
            tell=tell,
            allowing=allowing,
        )

    def notices(self) -> dict[str, Counter[str]]:
        """Return the number of notices of each kind that each agent has received from the venue so far."""
        return {name: Counter(app.solver.statistics().notices) for name, app in self.place.agents.items()}

    def show(self, line: str) -> None:
        """Print a line on the console, indented by two spaces."""
        self.console.print(f"  {line}", highlight=False)


def timed(console: Console) -> Tell:
    """Create a function that prints a line, preceded by the seconds since the function was created."""
    began = time.monotonic()

    def tell(line: str) -> None:
        text = f"{time.monotonic() - began:6.2f} s  {line}"
        console.print(text, style="dim", highlight=False, soft_wrap=True)

    return tell


async def placed_order(
    scene: OrderScene, placer: OrderPlacer, offer: OrderOffer, tell: Tell
) -> OrderFollower:
    """Sign a Delta order and submit it to the venue; return an object that follows the order's state.

    Args:
        offer: terms of the order, with the venue's quote.
        tell: receives a line for each change of the order's state.
    """
    placed = await placer.place(offer)
    if placed.record is None:
        raise AssertionError(f"it is not known whether the order was taken: {placed.fault}")
    wish, bridge = offer.terms.wish, offer.terms.bridge
    tokens = OfferTokens(wish.src, wish.dest, bridge.token if bridge else None)
    follower = OrderFollower(scene.venue, placed.record.id, tell, tokens)
    follower.see(placed.record)
    return follower


def record_of(follower: OrderFollower) -> OrderRecord:
    """Return the venue's record of an order, in the latest version that `follower` has received."""
    if follower.record is None:
        raise AssertionError("the venue has told nothing")
    return follower.record


async def completed(follower: OrderFollower) -> OrderRecord:
    """Follow an order until the venue reports it as settled; return the venue's record of the order."""
    await follower.follow(WAIT_S)
    record = record_of(follower)
    if record.status is not OrderStatus.COMPLETED:
        raise AssertionError(f"it is not settled: {record}")
    return record


async def why_it_rests(scene: OrderScene, record: OrderRecord, before: str = "") -> str:
    """Print the venue's explanation why a limit order is not settled: the books do not reach its limit.

    Args:
        before: the reason that the venue gave before a price changed; empty for none.

    Returns:
        The venue's reason, as text.

    Raises:
        AssertionError: agents have been asked for bids on the order.
        trio.TooSlowError: the venue does not give this reason within WAIT_S seconds.
    """
    told = await explained(scene, record, ["resting"], before)
    if told.last_rounds:
        raise AssertionError(f"agents were asked about an order that rests: {told.last_rounds}")
    return told.reasons[0].text


async def explained(
    scene: OrderScene, record: OrderRecord, codes: Sequence[str], before: str = ""
) -> Explanation:
    """Print and return the venue's explanation why an order has not ended, once the reasons are as expected.

    Args:
        codes: codes of the expected reasons, in order.
        before: text that the first reason must not have any more; empty for any text.

    Raises:
        trio.TooSlowError: the venue does not give these reasons within WAIT_S seconds.
    """
    with trio.fail_after(WAIT_S):
        while True:
            told = await scene.venue.explanation(record.id)
            if [each.code for each in told.reasons] == list(codes) and told.reasons[0].text != before:
                break
            await trio.sleep(LOOK_S)
    table = Table("GET /explain", "", box=None)
    table.add_row("status", told.status.value)
    for reason in told.reasons:
        table.add_row(reason.code, reason.text)
    table.add_row("rounds", str(len(told.last_rounds)))
    scene.console.print(table)
    return told


async def proven_order(
    scene: OrderScene, contract: SigningContract, record: OrderRecord, there: Chain | None = None
) -> tuple[SettledOnChain, list[Receipt]]:
    """Verify the venue's record of a settled order against the chain, or the chains.

    Args:
        contract: contract of the EIP-712 domain under which the user signed.
        there: destination chain of an order across chains.

    Returns:
        The on-chain result, and the receipts of all settlements of the order.

    Raises:
        AssertionError: the chain contradicts the venue's record.
    """
    subject = Subject(contract.address, signed_order(record, contract), there)
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
    """Print the balances that an order's settlement has changed, and check the changes against the chain.

    Args:
        before, after: balances of all parties before and after the settlement, raw units.
        offer: terms of the order.
        settled: result of the settlement as read from the chain.
        makers: names of the makers that must have traded.
        receipts: receipts of all transactions that the relayer sent.

    Raises:
        AssertionError: a change differs from the order, the on-chain result or the gas paid.
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
