"""Scenes of Delta orders on one chain: an auction, orders that wait, a settlement that fails."""

from itertools import pairwise

import trio

from ....codecs.contracts.calldata import approve
from ....codecs.messages.vocabulary import OrderStatus
from ....codecs.transactions import Transaction, sign_transaction
from ....config.limits import UINT256_MAX
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.transact import transact
from ...trader.client.public.results import DeltaOrderState
from ..place.layout import CHAIN_ID
from .stage import LOOK_S, PRICES, WAIT_S, BalanceMoves, DemoStage, expect

_SLICES, _INTERVAL_S = 3, 60
_TIP_WEI = 50 * 10**9  # high enough to be first in the block
_ALLOWING_GAS = 100_000
_WITHOUT_BODIES = False


async def show_auction(stage: DemoStage) -> None:
    """Scene 3: two agents bid for an order; the better bid wins, and the user sends no transaction."""
    user, before = stage.key("user"), await stage.balances()
    nonce = await stage.near.nonce(user.address)
    end = await stage.settled(await stage.venue.order("USDC", "WETH", 10_004, key=user))
    await _show_bids(stage, end)
    _check_sale(end, await stage.moves(before), "alpha")
    expect("transactions of the user", await stage.near.nonce(user.address) - nonce, 0)
    stage.say(f"{end.spent} became {end.received}: signed once, without a transaction or gas of the user")


async def show_waiting_orders(stage: DemoStage) -> None:
    """Scene 4: a limit order waits for its price, a TWAP for its times, and a signature cancels an order."""
    venue, user, before = stage.venue, stage.key("user"), await stage.balances()
    order = await venue.order("WETH", "USDC", 4, key=user, price=2_600)
    stage.say(f"a limit order at 2600 rests: {await stage.reason(order, 'resting')}")
    expect("rounds of an order that rests", len((await venue.explain(order)).last_rounds), 0)
    await stage.quote("alpha", "WETH/USDC", "2606", "2607")
    end = await stage.settled(order)
    _check_sale(end, await stage.moves(before), "alpha")
    stage.say(f"the price came to it: {end.received}, for what is above the limit is the user's")
    await stage.quote("alpha", "WETH/USDC", *PRICES["alpha"]["WETH/USDC"])
    await _show_twap(stage)
    order = await venue.order("WETH", "USDC", 4, key=user, price=2_600)
    await stage.reason(order, "resting")
    before = await stage.balances()
    (end,) = await venue.cancel(order, key=user)
    expect("status of a cancelled order", end.status, OrderStatus.CANCELLED)
    expect("moves of a cancellation", await stage.moves(before), {})
    stage.say("another limit order is cancelled by a signature: no transaction, no gas")


async def _show_twap(stage: DemoStage) -> None:
    venue, user, before = stage.venue, stage.key("user"), await stage.balances()
    amount = "3.0000000000000001"  # not divisible by 3: the last slice is larger
    order = await venue.twap(
        "WETH", "USDC", amount, key=user, slices=_SLICES, interval_s=_INTERVAL_S, limit=7_400
    )
    times: list[int] = []
    spent: list[str | None] = []
    async with venue.watch(order) as records:
        async for record in records:
            if len(times) < len(record.transactions):
                times.append(await _time_s(stage, record.transactions[-1].origin_tx))
                spent = [each.spent_amount for each in record.transactions]
                if len(times) < _SLICES:
                    await stage.pass_time(times[-1] + _INTERVAL_S)
    end = await stage.settled(order)
    _check_sale(end, await stage.moves(before), "alpha")
    part = 10**18 + 33
    expect("what the slices sold", spent, [str(part), str(part), str(part + 1)])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    expect("slices that come in time", [gap >= _INTERVAL_S for gap in gaps], [True] * (_SLICES - 1))
    stage.say(f"a TWAP of {_SLICES} slices, signed once: {' and '.join(map(str, gaps))} s apart on the chain")


async def show_failure(stage: DemoStage) -> None:
    """Scene 5: a maker revokes its allowance in the block of a settlement; the runner-up settles."""
    before, waiting = await stage.balances(), await _handed_in(stage)
    await stage.near.set_automine(on=False)
    order = await stage.venue.order("WETH", "USDC", 4, key=stage.key("user"))
    with trio.fail_after(WAIT_S):
        while await _handed_in(stage) == waiting:  # noqa: ASYNC110  a pool of transactions has no event
            await trio.sleep(LOOK_S)
    first = await _revoke(stage)
    stage.say("rapid has won; alpha takes its allowance back before the settlement, in the same block")
    await stage.near.set_automine(on=True)
    await stage.near.mine()
    end = await stage.settled(order)
    await _show_bids(stage, end)
    expect(
        "successes in the block of alpha and the settlement", await _successes(stage, first), [True, False]
    )
    _check_sale(end, await stage.moves(before), "beta")
    stage.say("the failure cost the user nothing: plain's bid of the same round has settled the order")
    allowed = approve(stage.at("rfq"), UINT256_MAX)
    await transact(stage.near, stage.key("alpha"), stage.at("USDC"), allowed)
    await stage.live()


async def _handed_in(stage: DemoStage) -> int:
    """Number of the relayer's transactions, with those that wait for a block."""
    relayer = to_hex(stage.key("relayer").address)
    return int(await stage.rpc(stage.node, "eth_getTransactionCount", relayer, "pending"), 16)


async def _revoke(stage: DemoStage) -> bytes:
    """Take back alpha's allowance by a transaction that is first in the next block; return its hash."""
    alpha, fees = stage.key("alpha"), await stage.near.fees()
    transaction = Transaction(
        chain_id=CHAIN_ID,
        nonce=await stage.near.nonce(alpha.address),
        tip_wei=_TIP_WEI,
        fee_max_wei=2 * fees.base_fee_wei + _TIP_WEI,
        gas=_ALLOWING_GAS,
        to=stage.at("USDC"),
        value_wei=0,
        data=approve(stage.at("rfq"), 0),
    )
    return await stage.near.send_raw(sign_transaction(transaction, alpha).raw)


async def _successes(stage: DemoStage, tx_hash: bytes) -> list[bool]:
    """Whether each transaction of a transaction's block has succeeded."""
    receipt = await stage.rpc(stage.node, "eth_getTransactionReceipt", to_hex(tx_hash))
    block = await stage.rpc(stage.node, "eth_getBlockByNumber", receipt["blockNumber"], _WITHOUT_BODIES)
    receipts = [await stage.rpc(stage.node, "eth_getTransactionReceipt", tx) for tx in block["transactions"]]
    return [each["status"] == "0x1" for each in receipts]


async def _time_s(stage: DemoStage, tx: str) -> int:
    """Time of a transaction's block, Unix seconds."""
    receipt = await stage.near.receipt(parse_hex(tx, "originTx"))
    header = None if receipt is None else await stage.near.block(receipt.block_number)
    if header is None:
        raise AssertionError(f"the chain does not know {tx}")
    return header.time_s


async def _show_bids(stage: DemoStage, order: DeltaOrderState) -> None:
    """Print the bids of an order's round; rapid's has to be the best, and plain's the next."""
    bids = await stage.bids(order)
    for bid in bids:
        agent, promised, notice = bid["agent"], bid["promisedAmount"], bid["notice"]
        stage.say(f"{agent:6} promised {promised} raw units after {bid['arrivalMs']} ms: {notice}")
    expect("the agents, the better first", [bid["agent"] for bid in bids], ["rapid", "plain"])
    better, other = (int(bid["promisedAmount"]) for bid in bids)
    expect("that rapid promises more", better > other, wanted=True)


def _check_sale(end: DeltaOrderState, moves: BalanceMoves, maker: str) -> None:
    """Check who has paid and got what: user, maker, and the relayer's gas.

    Raises:
        AssertionError: the balances contradict the order's state, or other makers have traded.
    """
    if end.spent is None or end.received is None:
        raise AssertionError("the tokens of a settled order are known")
    sold, bought = end.spent, end.received
    expect("the user's moves", moves["user"], {sold.token.symbol: -sold.raw, bought.token.symbol: bought.raw})
    expect("the makers that have traded", PRICES.keys() & moves.keys(), {maker})
    expect("what the maker got", moves[maker][sold.token.symbol], sold.raw)
    expect("the relayer's tokens that moved", [*moves["relayer"]], ["ETH"])
