"""An agent's bids, settled by the real contract: the user gets the promised amount or more."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import SolverBid
from cambist.codecs.messages.vocabulary import OnChainOrderType
from cambist.engine.chain.transact import transact
from support.makers.agent_role import RunningAgent, SignedOrder, running_agent
from support.venue.venue_role import KEYS, STRANGER, USER

ONE, USDC = 10**18, 10**6
PARTNER = KEYS[6].address
NO_RATE = "0x" + "11" * 20
FEE = pack_partner_and_fee(PartnerAndFee(PARTNER, fee_bps=50, partner_takes_surplus=True, cap_surplus=False))
SALES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a sale": ((ONE, "WETH", "USDC"), {"least": 2_490 * USDC}),
    "a sale over several makers and levels": ((20 * ONE, "WETH", "USDC"), {"least": 49_500 * USDC}),
    "native in": ((ONE, "ETH", "USDC"), {"least": 2_490 * USDC}),
    "native out": ((2_600 * USDC, "USDC", "ETH"), {"least": ONE}),
    "two hops": ((2_500 * ONE, "DAI", "USDC"), {"least": 2_400 * USDC}),
    "two hops, from a token that only the second maker has": (
        (10**7, "WBTC", "WETH"),
        {"least": 2 * ONE},
    ),
    "a fee and a share of surplus": (
        (ONE, "WETH", "USDC"),
        {"least": 2_400 * USDC, "expected": 2_450 * USDC, "partner_and_fee": FEE},
    ),
    "exactly what the books give": ((ONE, "WETH", "USDC"), {"least": 2_500 * USDC}),
}
PURCHASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a purchase": ((ONE, "WETH", "USDC"), {"most": 2_510 * USDC}),
    "native bought": ((ONE, "ETH", "USDC"), {"most": 2_510 * USDC}),
    "native spent": ((2_500 * USDC, "USDC", "ETH"), {"most": 11 * ONE // 10}),
    "two hops bought": ((2_000 * USDC, "USDC", "DAI"), {"most": 2_100 * ONE}),
    "a purchase with a fee": (
        (ONE, "WETH", "USDC"),
        {"most": 2_600 * USDC, "expected": 2_550 * USDC, "partner_and_fee": FEE},
    ),
}


async def moved(agent: RunningAgent, signed: SignedOrder, bid: SolverBid) -> tuple[int, int]:
    """Amounts that the owner spent and received, by balances; the contract's event agrees."""
    ends = [_name(agent, signed.shown.src_token), _name(agent, signed.shown.dest_token)]
    before = [await agent.devnet.balance(signed.order.owner, end) for end in ends]
    (event,) = await agent.settle(bid)
    after = [await agent.devnet.balance(signed.order.owner, end) for end in ends]
    received = after[1] - before[1]
    assert received == event.received
    if ends[0] != "ETH":
        assert before[0] - after[0] == event.spent
    return event.spent, received


def _name(agent: RunningAgent, address: str) -> str:
    return next(name for name in ("ETH", "WETH", "USDC", "DAI", "WBTC") if agent.devnet.text(name) == address)


async def test_sales_bring_what_was_promised(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        for story, (what, terms) in SALES.items():
            sale = await agent.sells(*what, **terms)
            (bid,) = await agent.solve(sale)
            promised = int(bid.parts[0].promised_amount)
            spent, received = await moved(agent, sale, bid)
            assert received >= promised >= terms["least"], story
            assert (received - promised) * 10_000 <= received + 10_000, story  # the margin, and no more
            assert spent == what[0], story


async def test_purchases_cost_what_was_promised(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        for story, (what, terms) in PURCHASES.items():
            purchase = await agent.buys(*what, **terms)
            (bid,) = await agent.solve(purchase)
            promised = int(bid.parts[0].promised_amount)
            spent, received = await moved(agent, purchase, bid)
            assert spent <= promised <= terms["most"], story
            assert (promised - spent) * 10_000 <= spent + 10_000, story
            assert received == what[0], story


async def test_units_that_somebody_left_with_the_executor_fail_no_settlement(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        devnet = agent.devnet
        for token in ("WETH", "USDC", "DAI"):
            data = transfer(devnet.at("executor"), 7)
            await transact(devnet.chain, STRANGER, devnet.at(token), data)
        sale = await agent.sells(2_500 * ONE, "DAI", "USDC", least=2_400 * USDC)
        (bid,) = await agent.solve(sale)
        before = await devnet.balance(USER, "WETH")
        (settled,) = await agent.settle(bid)
        assert settled.received >= int(bid.parts[0].promised_amount)
        assert await devnet.balance(USER, "WETH") >= before + 7
        for token, left in (("WETH", 0), ("DAI", 0), ("USDC", 7)):  # the destination's units stay
            assert await devnet.balance(devnet.at("executor"), token) == left


@pytest.mark.parametrize(
    "changed",
    [
        {"dest_amount": str(2_501 * USDC)},
        {"dest_token": NO_RATE},
        {"src_amount": str(10**24)},
        {"src_amount": "0"},
        {"order_type": OnChainOrderType.EXTERNAL_ORDER},
    ],
    ids=["below the limit", "no book", "too much for the books", "nothing", "a kind without steps"],
)
async def test_what_cannot_be_filled_is_no_bid(tmp_path: Path, changed: Mapping[str, Any]) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        assert await agent.solve(replace(sale.shown, **changed)) == ()


async def test_many_orders_are_bid_for_in_one_round(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sales = [
            await agent.sells(ONE // 10, "WETH", "USDC", least=240 * USDC, owner=owner)
            for owner in (USER, STRANGER) * 10
        ]
        bids = await agent.solve(*sales)
        assert [bid.parts[0].order_hash for bid in bids] == [sale.shown.order_hash for sale in sales]
        for bid in bids:
            (settled,) = await agent.settle(bid)
            assert settled.received >= int(bid.parts[0].promised_amount)
