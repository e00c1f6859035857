"""Demo steps of Delta orders: signed once, auctioned between two agents, settled by the venue's relayer.

Agent rapid trades with both makers, and agent plain with the worse maker, so that rapid wins. In the last
step rapid's maker revokes its token allowance between auction and settlement, so that the settlement fails.
`waiting_orders` has the steps of a limit order and a TWAP.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import approve
from ....codecs.messages.agent_messages import Notice
from ....codecs.messages.auction_messages import AuctionedOrder
from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.vocabulary import OrderStatus
from ....codecs.transactions import Transaction, sign_transaction
from ....config.sections.nodes import NodeSettings
from ....crypto.hexadecimal import parse_hex, to_hex
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import signer, to_compact64
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Receipt
from ...trader.client.allowing import Allowing
from ...trader.client.client import VenueClient
from ...trader.client.order.order_cancelling import cancel, follow_all
from ...trader.client.order.order_view import order_table
from .balances import balances, moved
from .order_scene import (
    NATIVE,
    USER,
    OrderScene,
    completed,
    placed_order,
    proven_order,
    record_of,
    show_moves,
    timed,
    why_it_rests,
)
from .place_settings import AGENTS, TOKENS
from .settlement import CHAIN_ID, WAIT_S, DemoChain, calldata_of, transactions_of
from .venue import MarketPlace, until
from .waiting_orders import run_waiting_orders

_BETTER, _OTHER = AGENTS
_SIGNED_CHARS = 42
_HASH_BYTES = 32
_TIP_WEI = 50 * 10**9  # high enough to be first in the block
_ALLOWING_GAS = 100_000


async def run_orders(console: Console, stage: DemoChain, place: MarketPlace) -> None:
    """Run the demo's steps of Delta orders (10 to 14) and print each on `console`; raise if a step fails.

    Afterwards the RFQ contract has no allowance for the USDC of the maker `alpha`.
    """
    place.makers["alpha"].switch.resume("all")
    await place.live()
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        VenueClient.open(place.url) as venue,
    ):
        scene = OrderScene(console, stage, place, chain, venue, stage.keys[USER])
        console.rule("10. A Delta order: signed once, won by the better of two agents")
        await _show_auction(scene)
        await run_waiting_orders(scene)
        console.rule("13. Another limit order rests, and its owner cancels it")
        await _show_cancellation(scene)
        console.rule("14. A settlement fails: it costs the user nothing, the runner-up settles")
        await _show_failure(scene)


# --- The better of two agents -------------------------------------------------------------------------


async def _show_auction(scene: OrderScene) -> None:
    tell = timed(scene.console)
    placer = scene.placer(tell, Allowing.PERMIT)
    nonce, before = await scene.chain.nonce(scene.user.address), await scene.balances()
    offer = await placer.offer(scene.wish("USDC", "WETH", "10004"))
    scene.console.print(order_table(offer, Allowing.PERMIT))
    follower = await placed_order(scene, placer, offer, tell)
    signature = _show_signed(scene, record_of(follower))
    record = await completed(follower)
    auctioned = await _show_round(scene, record)
    promised = [int(bid.promised_amount or 0) for bid in auctioned.bids]
    if len(promised) != len(AGENTS) or promised[0] <= promised[1]:
        raise AssertionError(f"the bids promise {promised}")
    settled, (receipt,) = await proven_order(scene, offer.contract, record)
    if signature not in await calldata_of(scene.stage, receipt.tx_hash):
        raise AssertionError("the settlement does not show the user's signature")
    after = await scene.balances()
    show_moves(scene, before, after, offer, settled, {"alpha"}, receipt)
    if await scene.chain.nonce(scene.user.address) != nonce:
        raise AssertionError("the user has sent a transaction")
    more = format_units(settled.received - offer.terms.dest_quoted, TOKENS["WETH"])
    scene.show(f"The user has sent no transaction, not even to approve, and got {more} WETH above the quote.")


def _show_signed(scene: OrderScene, record: OrderRecord) -> bytes:
    """Print the order that the user has signed; return the user's compact signature, 64 bytes."""
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
    """Format a field of a signed Delta order for display.

    Long byte strings are shortened. The field `bridge` is shown as `none` and a remark if all its members are
    zero, which means that the order is settled on the chain of its signature.
    """
    if isinstance(value, dict):
        goes_anywhere = any(str(each).strip("0x") for each in value.values())
        return str(value) if goes_anywhere else "none: it is settled on this chain"
    text = str(value)
    size = len(text) // 2 - 1
    return f"{text[:_SIGNED_CHARS]}... ({size} bytes)" if text[:2] == "0x" and size > _HASH_BYTES else text


# --- A cancellation -----------------------------------------------------------------------------------


async def _show_cancellation(scene: OrderScene) -> None:
    tell = timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    offer = await placer.offer(scene.wish("WETH", "USDC", "4", least="10400"))
    scene.console.print(order_table(offer, Allowing.EXACT))
    record = record_of(await placed_order(scene, placer, offer, tell))
    before, nonce = await scene.balances(), await scene.chain.nonce(scene.user.address)
    await why_it_rests(scene, record)
    followers = await cancel(scene.trader(tell), scene.venue, offer.contract, [record.id])
    await follow_all(followers, WAIT_S)
    ended = [record_of(follower).status for follower in followers]
    if ended != [OrderStatus.CANCELLED]:
        raise AssertionError(f"it has not ended as cancelled: {ended}")
    found = moved(before, await scene.balances())
    if found or await scene.chain.nonce(scene.user.address) != nonce:
        raise AssertionError(f"the cancellation moved {found}")
    scene.show("One signature has cancelled it, and nobody's balance has moved: no transaction, no gas.")


# --- A settlement that fails --------------------------------------------------------------------------


async def _show_failure(scene: OrderScene) -> None:
    stage, tell = scene.stage, timed(scene.console)
    placer = scene.placer(tell, Allowing.EXACT)
    await until(lambda: all(_is_told_of_all(told) for told in scene.notices().values()))
    before, told_before = await scene.balances(), scene.notices()
    scene.show("4 WETH again, at the market's price; what was allowed for the limit order is allowed still.")
    offer = await placer.offer(scene.wish("WETH", "USDC", "4"))
    if offer.missing:
        raise AssertionError("the cancelled order's allowance is gone")
    relayer = scene.place.venue.delta.chains[CHAIN_ID].relayer
    handed = relayer.statistics().counts["handed"]
    await stage.chain.set_automine(on=False)
    follower = await placed_order(scene, placer, offer, tell)
    await until(lambda: relayer.statistics().counts["handed"] > handed)
    tell(f"{_BETTER} has won, and its settlement waits for a block")
    first = await _before_all(stage, scene.place.keys["alpha"], stage.at("USDC"), approve(stage.at("rfq"), 0))
    tell("alpha takes its allowance back, for more gas: its firm quote cannot be filled any more")
    await stage.chain.set_automine(on=True)
    await stage.chain.mine()
    record = await completed(follower)
    failed = await _show_block(scene, first)
    await _show_round(scene, record)
    await _show_agents(scene, told_before)
    settled, (receipt,) = await proven_order(scene, offer.contract, record)
    after = await scene.balances()
    show_moves(scene, before, after, offer, settled, {"beta"}, receipt, failed)
    only_user = {"user": scene.user.address}
    tokens = NATIVE | {symbol: stage.at(symbol) for symbol in TOKENS}
    at_failure = await balances(stage.chain, tokens, only_user, failed.block_number)
    if moved(before, at_failure):
        raise AssertionError(f"the settlement that failed has cost the user {moved(before, at_failure)}")
    scene.show(
        f"After block {failed.block_number} the user had what it had before, to the unit; "
        f"{_OTHER}'s bid of the same round settled the order in block {receipt.block_number}."
    )


def _is_told_of_all(told: Counter[str]) -> bool:
    """Whether an agent has received as many SETTLED as SETTLING notices.

    Args:
        told: number of notices that the agent has received, by kind.
    """
    return told[Notice.SETTLING] == told[Notice.SETTLED]


async def _before_all(stage: DemoChain, key: SigningKey, to: bytes, data: bytes) -> bytes:
    """Send a transaction whose high tip puts it before all waiting transactions in the next block.

    Returns:
        The hash of the transaction.
    """
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


async def _show_block(scene: OrderScene, first: bytes) -> Receipt:
    """Print the block in which the maker alpha revokes its allowance, so that a settlement fails.

    The result is the receipt of that settlement.

    Args:
        first: hash of the transaction by which the maker alpha revokes its allowance.
    """
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


async def _show_agents(scene: OrderScene, before: Mapping[str, Counter[str]]) -> None:
    """Print a table of all agents: notices received since `before`, settlements, faults, and any penalty.

    Args:
        before: name of an agent -> number of its notices of each kind before the order.

    Raises:
        AssertionError: the agent whose settlement failed is not the only penalised agent.
    """
    wanted = {
        _BETTER: {Notice.WON, Notice.SETTLING, Notice.REVERTED, Notice.BANNED},
        _OTHER: {Notice.LOST, Notice.SETTLING, Notice.SETTLED},
    }

    def told(name: str) -> Counter[str]:
        return scene.notices()[name] - before[name]

    await until(lambda: all(set(told(name)) >= notices for name, notices in wanted.items()))
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


async def _show_round(scene: OrderScene, record: OrderRecord) -> AuctionedOrder:
    """Print and return the bids of an order's latest auction round.

    Raises:
        AssertionError: the agent `rapid` is not the winner, or `plain` not the runner-up.
    """
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


def _to_eight_digits(amount: int, decimals: int) -> str:
    """Format an amount of raw units as whole tokens, truncated after the eighth decimal place."""
    digits = min(decimals, 8)
    return format_units(amount // 10 ** (decimals - digits), digits)
