"""A venue that lies about a Delta order: the trader signs no order, and the error names the member."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.config.errors import UnsafeTransaction, VenueError
from cambist.crypto.addresses import to_checksum
from support.chain.put_code import put_code
from support.chain.world import NATIVE, ONE, USDC, World
from support.client.order_trader import ETH, PAUSES, OrderTrader, an_order_trader
from support.client.scripted_orders import OrderLies

THIEF = b"\x66" * 20
THIEF_TEXT = f"0x{THIEF.hex()}"
LIMIT = 2_500 * USDC * 9_950 // 10_000


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OrderTrader]:
    for pause in PAUSES:
        monkeypatch.setattr(pause, 0.01)
    async with an_order_trader(world) as trading:
        yield trading


def ordered(**changed: Any) -> OrderLies:
    return OrderLies(order=lambda order: order | changed)


def priced(**changed: Any) -> OrderLies:
    return OrderLies(price=lambda block: block | changed)


def routed(**changed: Any) -> OrderLies:
    return OrderLies(price=lambda block: block | {"route": block["route"] | changed})


def leg(amount: str, chain_id: int, token: str) -> dict[str, Any]:
    return {"token": {"chainId": chain_id, "address": token}, "amount": amount, "amountUSD": "1"}


def signed_over(**changed: Any) -> OrderLies:
    return OrderLies(build=lambda told: told | {"toSign": told["toSign"] | changed})


def in_domain(**changed: Any) -> OrderLies:
    def changes(told: dict[str, Any]) -> dict[str, Any]:
        to_sign = told["toSign"]
        return told | {"toSign": to_sign | {"domain": to_sign["domain"] | changed}}

    return OrderLies(build=changes)


def packed(fee_bps: int) -> str:
    return str(int.from_bytes(THIEF, "big") << 96 | fee_bps)


BRIDGE = {
    "protocolSelector": "0x00000000",
    "destinationChainId": 1,
    "outputToken": "0x" + "00" * 20,
    "scalingFactor": 0,
    "protocolData": "0x",
}
LIES: list[tuple[str, OrderLies, str]] = [
    ("another spender", priced(spender=THIEF_TEXT), "spender"),
    ("a price of the other side", priced(side="BUY"), "side"),
    (
        "a price of another token",
        priced(inputToken={"chainId": 31337, "address": THIEF_TEXT}),
        "address of inputToken",
    ),
    (
        "a price on another chain",
        priced(outputToken={"chainId": 1, "address": THIEF_TEXT}),
        "chainId of outputToken",
    ),
    ("no fee that there may be", priced(partner={"name": "x", "feePercent": 3}), "partner.feePercent"),
    ("another chain's domain", in_domain(chainId=1), "toSign.domain.chainId"),
    ("another contract's domain", in_domain(verifyingContract=THIEF_TEXT), "toSign.domain.verifyingContract"),
    ("a domain of another name", in_domain(name="Another"), "toSign.domain"),
    ("a domain of another version", in_domain(version="2"), "toSign.domain"),
    (
        "a permit in place of the order",
        signed_over(types={"Permit": [{"name": "owner", "type": "address"}]}),
        "names of toSign.types",
    ),
    ("another owner", ordered(owner=THIEF_TEXT), "toSign.value.owner"),
    ("another beneficiary", ordered(beneficiary=THIEF_TEXT), "toSign.value.beneficiary"),
    ("another source", ordered(srcToken=THIEF_TEXT), "toSign.value.srcToken"),
    ("another destination", ordered(destToken=THIEF_TEXT), "toSign.value.destToken"),
    ("more sold", ordered(srcAmount=str(2 * ONE)), "toSign.value.srcAmount"),
    ("too little received", ordered(destAmount=str(LIMIT - 1)), "toSign.value.destAmount"),
    ("nothing received", ordered(destAmount="0"), "toSign.value.destAmount"),
    ("more received than can be", ordered(destAmount=str(2**255)), "toSign.value.destAmount"),
    ("less expected", ordered(expectedAmount="1"), "toSign.value.expectedAmount"),
    ("a later deadline", ordered(deadline=2**37), "toSign.value.deadline"),
    ("the other kind", ordered(kind=1), "toSign.value.kind"),
    ("another nonce", ordered(nonce="7"), "toSign.value.nonce"),
    ("a permit of its own", ordered(permit="0x01"), "toSign.value.permit"),
    ("metadata of its own", ordered(metadata="0x01"), "toSign.value.metadata"),
    ("over a bridge", ordered(bridge=BRIDGE), "toSign.value.bridge"),
    ("a fee that was not quoted", ordered(partnerAndFee=packed(1)), "partner fee in basis points"),
    ("surplus for others", ordered(partnerAndFee=packed(1 << 8)), "share of surplus for others"),
    ("bits of no meaning", ordered(partnerAndFee=packed(1 << 20)), "toSign.value.partnerAndFee"),
    ("a member of its own", ordered(handler=THIEF_TEXT), "toSign.value.handler"),
    ("another hash", OrderLies(build=lambda told: told | {"orderHash": "0x" + "11" * 32}), "orderHash"),
]


@pytest.mark.parametrize(("lies", "member"), [row[1:] for row in LIES], ids=[row[0] for row in LIES])
async def test_a_lie_is_refused_by_name_before_anything_is_signed(
    trader: OrderTrader, lies: OrderLies, member: str
) -> None:
    await trader.world.approve(trader.world.user, trader.world.weth, trader.world.at.delta, ONE)
    trader.venue.order_lies = lies
    before = await trader.world.chain.nonce(trader.world.user.address)
    with pytest.raises(UnsafeTransaction) as refused:
        await trader.place()
    assert refused.value.member == member
    assert trader.venue.submissions == []
    assert await trader.world.chain.nonce(trader.world.user.address) == before


async def test_amounts_of_a_price_have_to_be_what_was_asked_for(trader: OrderTrader) -> None:
    chain_id = trader.world.chain.chain_id
    weth, usdc = to_checksum(trader.world.weth), to_checksum(trader.world.usdc)
    for src, dest, member in (
        (str(2 * ONE), "1", "route, the SELL amount"),
        (str(ONE), "-1", "route.destination.output.amount"),
        (str(ONE), "0", "route.destination.output.amount"),
    ):
        told = {"input": leg(src, chain_id, weth), "output": leg(dest, chain_id, usdc)}
        trader.venue.order_lies = routed(origin=told, destination=told)
        with pytest.raises(UnsafeTransaction) as refused:
            await trader.place()
        assert refused.value.member == member


async def test_a_deposit_is_not_made_for_an_order_that_is_not_ours(trader: OrderTrader) -> None:
    trader.venue.order_lies = ordered(beneficiary=THIEF_TEXT)
    before = await trader.has(NATIVE)
    with pytest.raises(UnsafeTransaction):
        await trader.place(trader.wish(src=ETH))
    assert await trader.has(NATIVE) == before


async def test_a_record_of_another_order_is_told(trader: OrderTrader) -> None:
    trader.venue.order_lies = OrderLies(record=lambda record: record | {"orderHash": "0x" + "11" * 32})
    _, placed = await trader.place()
    assert placed.record is None
    assert placed.fault.startswith("the venue's record differs from the order: orderHash is 0x1111")


@pytest.mark.parametrize("module", ["swap_settler", "twap_settler", "bridges"])
async def test_a_delta_contract_with_a_part_of_other_code_is_used_only_when_it_is_pinned(
    trader: OrderTrader, module: str
) -> None:
    """Its code is right, and what its immutables name has another code."""
    world = trader.world
    part = getattr(world.at, module)
    await put_code(world.chain, part, await world.chain.code(world.at.fee_vault))
    with pytest.raises(VenueError, match=f"the code at {to_checksum(part)} on chain 31337 is not that"):
        await trader.place()
    _, placed = await trader.place(pinned=world.at.delta)
    assert placed.record is not None


async def test_a_contract_of_other_code_is_used_only_when_it_is_pinned(trader: OrderTrader) -> None:
    other = trader.world.usdc

    def elsewhere(document: dict[str, Any]) -> dict[str, Any]:
        (entry,) = document["chains"].values()
        entry["delta"] = to_checksum(other)
        return document

    trader.venue.order_lies = OrderLies(contracts=elsewhere)
    with pytest.raises(VenueError, match="is not that of this release's Delta"):
        await trader.place()
    with pytest.raises(UnsafeTransaction, match=r"contracts\.json delta: expected"):
        await trader.place(pinned=trader.world.at.delta)
    trader.venue.order_lies = OrderLies()
    _, placed = await trader.place(pinned=trader.world.at.delta)
    assert placed.record is not None
