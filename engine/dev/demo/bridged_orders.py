"""Demo steps of Delta orders across chains: carried by Across, carried by CCTP, and refunded by Across.

The user sells WBTC on the first chain. The settlement hands the bought USDC to the bridge that the user
signed, and the bridge pays the user on the second chain. In the last step the relayer of Across is ordered
to be silent, and time passes until nobody may fill the transfer any more.

Names of accounts on the second chain end in `, there`.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
import trio
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.bridges.bridge_terms import fee_of, output_of
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus
from ....config.sections.nodes import NodeSettings
from ....crypto.hexadecimal import parse_hex
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Receipt
from ...trader.client.allowing import Allowing
from ...trader.client.client import VenueClient
from ...trader.client.order.order_following import OrderFollower, SettledOnChain
from ...trader.client.order.order_placing import OrderOffer
from ...trader.client.order.order_terms import BridgeWish, CheckedBridge
from ...trader.client.order.order_view import order_table
from ...trader.client.schedule import duration_text
from ...trader.client.terms import TradedToken, amount_text
from ..devnet.bridge_places import bridge_keys
from .balances import Balances, balances, moved, moves_table
from .order_scene import (
    NATIVE,
    USER,
    OrderScene,
    Tell,
    completed,
    explained,
    placed_order,
    proven_order,
    record_of,
    timed,
)
from .place_settings import BRIDGED, BRIDGES, FILL_WITHIN_S, TOKENS
from .settlement import CHAIN_ID, FAR_CHAIN_ID, WAIT_S, DemoChain, answer_of
from .venue import LOOK_S, MarketPlace

_SOLD, _AMOUNT, _MAKER = "WBTC", "0.1", "beta"
_FEE_BPS_MAX = 100
_THERE = ", there"


class _Ways(OrderScene, frozen=True):
    """Parties and connections of the steps across chains.

    Attributes:
        there: the user's JSON-RPC client of the second chain.
    """

    there: RpcChain

    def token_there(self) -> TradedToken:
        """Return the bridged token on the second chain."""
        return TradedToken(self.stage.far.at(BRIDGED), BRIDGED, TOKENS[BRIDGED])

    async def order_relayer(self, *, is_silent: bool) -> None:
        """Order the relayer of Across to fill transfers, or to fill none."""
        await answer_of(self.stage.bridge_url, "bridge_orderRelayer", {"is_silent": is_silent})

    async def of_both(self) -> Balances:
        """Read the balances of all accounts that a step may change, on both chains."""
        stage = self.stage
        owner, carrier = stage.keys[0].address, bridge_keys(stage.keys[0]).relayer.address
        here = {"carrier": carrier, "pool": stage.at("spoke_pool")}
        payers = {"user": self.user.address, "relayer": self.place.relayer}
        far = {"user": self.user.address, "carrier": carrier, "CCTP": owner}
        far |= {"pool": stage.far.at("spoke_pool")}
        bridged = {BRIDGED: stage.far.at(BRIDGED)}
        found = await self.balances() | await balances(stage.chain, {BRIDGED: stage.at(BRIDGED)}, here)
        there = await balances(stage.far.chain, bridged, far)
        there |= await balances(stage.far.chain, NATIVE, payers)
        return found | {(f"{who}{_THERE}", symbol): amount for (who, symbol), amount in there.items()}

    async def nonces(self) -> tuple[int, int]:
        """Count the transactions that the user has sent on each chain."""
        return await self.chain.nonce(self.user.address), await self.there.nonce(self.user.address)


async def run_bridged_orders(console: Console, stage: DemoChain, place: MarketPlace) -> None:
    """Run the demo's steps across chains (17 to 19) and print each on `console`; raise if a step fails."""
    await place.live()
    async with _opened(console, stage, place) as ways:
        console.rule("17. An order across chains: a relayer of Across pays on the other")
        await _show_delivery(ways, "across", _carried_by_across)
        console.rule("18. Another one by CCTP: burned here, attested, minted there")
        await _show_delivery(ways, "cctp", _carried_by_cctp, "cctp")
        console.rule("19. The relayer is silent: what entered the bridge comes back")
        await _show_refund(ways)


@asynccontextmanager
async def _opened(console: Console, stage: DemoChain, place: MarketPlace) -> AsyncIterator[_Ways]:
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        RpcChain.open(FAR_CHAIN_ID, NodeSettings(urls=(stage.far.running.url,)), known_errors()) as there,
        VenueClient.open(place.url) as venue,
    ):
        yield _Ways(
            console=console,
            stage=stage,
            place=place,
            chain=chain,
            venue=venue,
            user=stage.keys[USER],
            there=there,
        )


# --- Deliveries ---------------------------------------------------------------------------------------


async def _show_delivery(
    ways: _Ways, bridge: str, carried: Callable[[CheckedBridge, SettledOnChain], Balances], *only: str
) -> None:
    """Show an order that goes to the second chain until it is delivered there.

    Args:
        carried: returns the expected moves of the transfer.
        bridge, only: the arguments of `_placed`.
    """
    tell = timed(ways.console)
    nonces, before = await ways.nonces(), await ways.of_both()
    offer, follower = await _placed(ways, tell, bridge, *only)
    record = await completed(follower)
    settled, (receipt,) = await proven_order(ways, offer.contract, record, ways.there)
    delivery = await _receipt_there(ways, record)
    after = await ways.of_both()
    ways.console.print(moves_table(before, after, TOKENS))
    found = moved(before, after)
    paid = _paid(found, {"relayer": receipt, f"relayer{_THERE}": delivery if bridge == "cctp" else None})
    expected = _sold(settled) | carried(_bridge_of(offer), settled)
    _check_moves(found, expected | paid)
    _check_signed(offer, settled)
    if await ways.nonces() != nonces:
        raise AssertionError("the user has sent a transaction")
    arrived = amount_text(settled.received, ways.token_there())
    ways.show(
        f"Both chains prove it: {arrived} of {amount_text(settled.bridged, ways.token(BRIDGED))} arrived. "
        "The user has signed, and sent no transaction on either chain."
    )


async def _placed(ways: _Ways, tell: Tell, bridge: str, *only: str) -> tuple[OrderOffer, OrderFollower]:
    """Sign and submit an order that goes to the second chain, after its quote is shown.

    Args:
        bridge: the venue's name of the bridge that the quote has to recommend.
        only: names of the bridges that the quote may use; without names the quote may use all bridges.
    """
    placer = ways.placer(tell, Allowing.PERMIT)
    bridging = BridgeWish(
        chain_id=FAR_CHAIN_ID, fee_bps_max=_FEE_BPS_MAX, via=ways.token(BRIDGED), bridges=only
    )
    wish = ways.wish(_SOLD, BRIDGED, _AMOUNT)
    offer = await placer.offer(replace(wish, dest=ways.token_there(), bridging=bridging))
    _show_routes(ways, offer, [bridge, *(() if only else BRIDGES.keys() - {bridge})])
    ways.console.print(order_table(offer, Allowing.PERMIT))
    return offer, await placed_order(ways, placer, offer, tell)


def _show_routes(ways: _Ways, offer: OrderOffer, bridges: Sequence[str]) -> None:
    """Print the routes of a quote, the recommended one first.

    Args:
        bridges: expected names of the routes' bridges, in order.

    Raises:
        AssertionError: the quote has other routes.
    """
    block, decimals = offer.quoted.block, TOKENS[BRIDGED]
    table = Table("quote", f"{BRIDGED} in", "fee", f"{BRIDGED} out", "takes about", "", box=None)
    names = []
    for route in (block.route, *block.alternatives):
        if route.bridge is None:
            raise AssertionError("a route across chains has a bridge")
        names.append(route.bridge.protocol)
        (fee,) = route.fees.bridge
        amounts = (route.origin.output.amount, fee.amount, route.destination.output.amount)
        cells = (format_units(int(amount), decimals) for amount in amounts)
        takes = duration_text(-(-route.bridge.estimated_time_ms // 1_000))
        table.add_row(f"by {names[-1]}", *cells, takes, ", ".join(route.bridge.tags))
    ways.console.print(table)
    if names != list(bridges):
        raise AssertionError(f"the quote has routes by {names}")


async def _receipt_there(ways: _Ways, record: OrderRecord) -> Receipt:
    """Return the receipt, on the second chain, of the only delivery of an order."""
    (transaction,) = record.transactions
    receipt = await ways.there.receipt(parse_hex(transaction.destination_tx or "", "destinationTx"))
    if receipt is None:
        raise AssertionError("the second chain does not know the delivery")
    return receipt


# --- A refund -----------------------------------------------------------------------------------------


async def _show_refund(ways: _Ways) -> None:
    tell = timed(ways.console)
    await ways.order_relayer(is_silent=True)
    nonces, before = await ways.nonces(), await ways.of_both()
    offer, follower = await _placed(ways, tell, "across")
    await _reached(follower, OrderStatus.BRIDGING)
    record = record_of(follower)
    await explained(ways, record, ["bridging", "transferUnderWay"])
    await _pass_deadline(ways, record, tell)
    await follower.follow(WAIT_S)
    record = record_of(follower)
    if record.status is not OrderStatus.REFUNDED:
        raise AssertionError(f"it is not refunded: {record}")
    settled, (receipt,) = await proven_order(ways, offer.contract, record, ways.there)
    await _until_paid_out(ways)
    after = await ways.of_both()
    ways.console.print(moves_table(before, after, TOKENS))
    found = moved(before, after)
    expected = _sold(settled) | {("user", BRIDGED): settled.refunded} | _repaid(before)
    _check_moves(found, expected | _paid(found, {"relayer": receipt}))
    if settled.refunded != settled.bridged or settled.received:
        raise AssertionError(f"what entered the bridge has not come back whole: {settled}")
    if await ways.nonces() != nonces:
        raise AssertionError("the user has sent a transaction")
    ways.show(
        f"{amount_text(settled.refunded, ways.token(BRIDGED))} are back with the user, without a fee, on the "
        "chain on which the order was settled. The transfer of step 17 is repaid to its relayer now."
    )
    await ways.order_relayer(is_silent=False)


async def _reached(follower: OrderFollower, status: OrderStatus) -> None:
    """Follow an order until the venue reports a status."""
    with trio.fail_after(WAIT_S):
        while record_of(follower).status is not status:
            await trio.sleep(LOOK_S)
            await follower.look()


async def _pass_deadline(ways: _Ways, record: OrderRecord, tell: Tell) -> None:
    """Move the demo's time past the deadline until which Across takes a fill of an order's transfer."""
    (transaction,) = record.transactions
    receipt = await ways.chain.receipt(parse_hex(transaction.origin_tx, "originTx"))
    header = await ways.chain.block(receipt.block_number) if receipt else None
    if header is None:
        raise AssertionError("the chain does not know the settlement")
    tell(f"{FILL_WITHIN_S} s pass, for both chains and for everybody")
    await ways.place.pass_time(header.time_s + FILL_WITHIN_S + 1)


async def _until_paid_out(ways: _Ways) -> None:
    """Wait until Across has refunded or repaid all transfers whose time is over."""
    with trio.fail_after(WAIT_S):
        while True:
            told = msgspec.json.decode(await answer_of(ways.stage.bridge_url, "bridge_state"))
            if not told["openDeposits"]:
                return
            await trio.sleep(LOOK_S)


# --- Checks -------------------------------------------------------------------------------------------


def _bridge_of(offer: OrderOffer) -> CheckedBridge:
    if offer.terms.bridge is None:
        raise AssertionError("an order across chains has a bridge")
    return offer.terms.bridge


def _sold(settled: SettledOnChain) -> Balances:
    """Return the expected moves of the sold token in the swap on the first chain."""
    return {("user", _SOLD): -settled.spent, (_MAKER, _SOLD): settled.spent}


def _carried_by_across(bridge: CheckedBridge, settled: SettledOnChain) -> Balances:
    """Return the expected moves of a transfer by Across, whose relayer pays from its own funds."""
    arrives = output_of(bridge.terms.fee, bridge.signed.scaling_factor, settled.bridged)
    return {
        ("pool", BRIDGED): settled.bridged,
        (f"user{_THERE}", BRIDGED): arrives,
        (f"carrier{_THERE}", BRIDGED): -arrives,
    }


def _carried_by_cctp(bridge: CheckedBridge, settled: SettledOnChain) -> Balances:
    """Return the expected moves of a transfer by CCTP, which burns here and mints there."""
    fee = settled.bridged - settled.received
    if not 0 < fee <= fee_of(bridge.terms.fee, settled.bridged):
        raise AssertionError(f"CCTP kept {fee} of {settled.bridged}")
    return {(f"user{_THERE}", BRIDGED): settled.received, (f"CCTP{_THERE}", BRIDGED): fee}


def _repaid(before: Balances) -> Balances:
    """Return the expected moves when Across repays the relayer for all transfers that were filled before."""
    held = before["pool", BRIDGED]
    return {("pool", BRIDGED): -held, ("carrier", BRIDGED): held} if held else {}


def _paid(found: Balances, payers: Mapping[str, Receipt | None]) -> Balances:
    """Return the expected moves for gas, and the moves of the maker and of the fee vault.

    The maker gives the bought token to the fee vault and to the bridge. The moves of the maker and of the fee
    vault are copied from `found`; `_check_moves` checks only their sum with all other moves.

    Args:
        payers: account -> receipt of the transaction whose gas the account paid; None for no transaction.
    """
    gas = {
        (who, "ETH"): -receipt.gas_used * receipt.gas_price_wei
        for who, receipt in payers.items()
        if receipt is not None
    }
    return gas | {(who, BRIDGED): found.get((who, BRIDGED), 0) for who in (_MAKER, "fee vault")}


def _check_moves(found: Balances, expected: Balances) -> None:
    """Check that balances on both chains moved as expected, and that no unit was lost or made.

    Raises:
        AssertionError: a move differs, or the moves of a token on both chains do not add up to zero.
    """
    if found != expected:
        raise AssertionError(f"it moved {found}, expected was {expected}")
    if found["fee vault", BRIDGED] <= 0:
        raise AssertionError("the partner's fee was not taken")
    for symbol in TOKENS:
        if sum(amount for (_, of), amount in found.items() if of == symbol):
            raise AssertionError(f"not everybody's {symbol} are told: {found}")


def _check_signed(offer: OrderOffer, settled: SettledOnChain) -> None:
    wish = offer.terms.wish
    if settled.spent != wish.amount or settled.received < offer.terms.limit:
        raise AssertionError(f"{settled}, and {offer.terms.limit} for {wish.amount} were signed")
