"""A trader swaps through a venue: balances move as quoted, and only what was needed was allowed."""

from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.calldata import approve
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import ChainError, Reverted, TransactionRefused, UnsafeTransaction, VenueError
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Chain, EthCall
from cambist.engine.trader.client.allowing import Allowing
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.outcome import SentOutcome, TradeVerdict
from cambist.engine.trader.client.swap.swap_view import offer_table
from cambist.engine.trader.client.swap.swapping import Offer, Swapper, swapped_outcome
from cambist.engine.trader.client.terms import TradedToken, Wish
from cambist.engine.trader.client.trader import Trader as Account
from support.chain.world import MOST, NATIVE, ONE, USDC, World, person
from support.client.scripted_venue import Lies, ScriptedVenue, scripted_venue

ETH = TradedToken(NATIVE, "ETH", 18)


@pytest.fixture
async def venue(world: World) -> AsyncIterator[ScriptedVenue]:
    """Its maker has both tokens; the user has ten WETH and 10,000 USDC, and has allowed nothing."""
    await world.give(world.maker, world.usdc, 100_000 * USDC, world.at.rfq)
    await world.give(world.maker, world.weth, 100 * ONE, world.at.rfq)
    await world.mint(world.weth, world.user, 10 * ONE)
    await world.mint(world.usdc, world.user, 10_000 * USDC)
    async with scripted_venue(world) as serving:
        yield serving


class Trader:
    """The user's side of one venue."""

    def __init__(self, venue: ScriptedVenue, client: VenueClient, chain: Chain | None = None) -> None:
        self.venue = venue
        self.world = venue.world
        self.client = client
        self.chain = chain or self.world.chain
        self.told: list[str] = []
        self.weth = TradedToken(self.world.weth, "WETH", 18)
        self.usdc = TradedToken(self.world.usdc, "USDC", 6)

    def swapper(self, allowing: Allowing = Allowing.EXACT, key: SigningKey | None = None) -> Swapper:
        return Swapper(
            Account(
                chain=self.chain,
                key=key or self.world.user,
                wall_s=lambda: 0,
                tell=self.told.append,
                allowing=allowing,
            ),
            self.client,
        )

    def wish(self, **changed: Any) -> Wish:
        """The user sells one WETH for USDC."""
        user = self.world.user.address
        wish = Wish(
            chain_id=self.world.chain.chain_id,
            src=self.weth,
            dest=self.usdc,
            side=Side.SELL,
            amount=ONE,
            slippage_bps=50,
            user=user,
            receiver=user,
        )
        return replace(wish, **changed)

    async def swap(
        self, wish: Wish | None = None, allowing: Allowing = Allowing.EXACT, pinned: bytes | None = None
    ) -> tuple[Offer, SentOutcome]:
        swapper = self.swapper(allowing)
        offer = await swapper.offer(wish or self.wish(), pinned)
        return offer, await swapper.perform(offer)

    async def allowed(self, token: bytes) -> int:
        return await self.world.ask(token, calldata.allowance(self.world.user.address, self.world.at.router))

    async def has(self, token: bytes, who: bytes | None = None) -> int:
        return await self.world.balance(token, who or self.world.user.address)


@pytest.fixture
async def trader(venue: ScriptedVenue) -> AsyncIterator[Trader]:
    async with VenueClient.open(venue.url) as client:
        yield Trader(venue, client)


# --- Swaps --------------------------------------------------------------------------------------------


async def test_a_sale_approves_exactly_what_is_sold_and_brings_what_was_quoted(trader: Trader) -> None:
    offer, outcome = await trader.swap()
    assert outcome.verdict is TradeVerdict.SWAPPED
    assert (outcome.spent, outcome.received) == (ONE, 2_500 * USDC)
    assert offer.limit == 2_500 * USDC * 9_950 // 10_000
    assert await trader.has(trader.world.usdc) == 12_500 * USDC
    assert await trader.has(trader.world.weth) == 9 * ONE
    assert await trader.allowed(trader.world.weth) == 0
    (body,) = trader.venue.bodies
    assert (body.src_amount, body.dest_amount, body.slippage) == (str(ONE), str(offer.limit), None)
    assert f"sending the swap 0x{outcome.tx_hash.hex()}" in trader.told


async def test_a_purchase_spends_what_was_quoted_and_no_allowance_is_left(trader: Trader) -> None:
    wish = trader.wish(side=Side.BUY, amount=1_000 * USDC, slippage_bps=100)
    offer, outcome = await trader.swap(wish)
    assert (outcome.spent, outcome.received) == (4 * ONE // 10, 1_000 * USDC)
    assert offer.limit == 404 * ONE // 1_000
    assert await trader.has(trader.world.weth) == 96 * ONE // 10
    assert await trader.allowed(trader.world.weth) == 0  # the Router takes the most, and gives back the rest


async def test_native_tokens_are_sold_without_an_approval(trader: Trader) -> None:
    before = await trader.has(NATIVE)
    offer, outcome = await trader.swap(trader.wish(src=ETH))
    assert not offer.missing
    assert outcome.received == 2_500 * USDC
    assert await trader.has(NATIVE) == before - ONE - outcome.gas * outcome.gas_price_wei
    assert not [line for line in trader.told if "approval" in line]


async def test_native_tokens_are_bought(trader: Trader) -> None:
    receiver = person(8).address
    wish = trader.wish(src=trader.usdc, dest=ETH, amount=5_000 * USDC, receiver=receiver)
    _, outcome = await trader.swap(wish)
    assert outcome.received == 2 * ONE
    assert await trader.has(NATIVE, receiver) == 2 * ONE


async def test_a_permit_takes_the_place_of_an_approval(trader: Trader) -> None:
    wish = trader.wish(src=trader.usdc, dest=trader.weth, amount=2_500 * USDC)
    _, outcome = await trader.swap(wish, Allowing.PERMIT)
    assert outcome.verdict is TradeVerdict.SWAPPED
    assert outcome.received == ONE
    assert not [line for line in trader.told if "approval" in line]
    assert await trader.allowed(trader.world.usdc) == 0
    assert len(trader.venue.bodies[0].permit or "") == 2 + 2 * 224


async def test_a_token_without_permits_says_to_approve(trader: Trader) -> None:
    with pytest.raises(ChainError, match="takes no EIP-2612 permits: use an approval"):
        await trader.swap(allowing=Allowing.PERMIT)


async def test_any_amount_is_approved_only_when_asked_for_and_then_once(trader: Trader) -> None:
    await trader.swap(allowing=Allowing.MOST)
    assert await trader.allowed(trader.world.weth) >= MOST - ONE
    trader.told.clear()
    offer, _ = await trader.swap()
    assert not offer.missing
    assert not [line for line in trader.told if "approval" in line]


async def test_a_fee_and_another_receiver_are_as_agreed(trader: Trader) -> None:
    receiver = person(8).address
    wish = trader.wish(partner="wallet", receiver=receiver)
    _, outcome = await trader.swap(wish)
    net = 2_500 * USDC * 9_950 // 10_000
    assert outcome.received == net
    assert await trader.has(trader.world.usdc, receiver) == net
    assert trader.venue.bodies[0].partner == "wallet"


# --- What goes wrong ------------------------------------------------------------------------------------


class Meddling:
    """The chain; just before a transaction of a kind is handed in, something else happens."""

    def __init__(self, world: World, before: Callable[[int], Any]) -> None:
        self._chain = world.chain
        self._before = before
        self._sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def send_raw(self, raw: bytes) -> bytes:
        self._sent += 1
        await self._before(self._sent)
        return await self._chain.send_raw(raw)


async def test_what_reverts_in_its_block_is_told_with_the_reason(trader: Trader) -> None:
    world = trader.world

    async def maker_pays_out(sent: int) -> None:
        if sent == 2:  # the swap; the approval was before
            await world.send(world.maker, world.usdc, approve(world.at.rfq, 0))

    meddling: Any = Meddling(world, maker_pays_out)
    trader = Trader(trader.venue, trader.client, meddling)
    _, outcome = await trader.swap()
    assert outcome.verdict is TradeVerdict.REVERTED
    assert outcome.step == "swap"
    assert "StepFailed" in outcome.reason
    assert await trader.has(world.weth) == 10 * ONE


class Insisting:
    """The chain; its tokens take no approval while another is there."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.chain, name)

    async def call(self, call: EthCall, at: bytes | int | None = None) -> bytes:
        await self._refuse(call)
        return await self._world.chain.call(call, at)

    async def estimate_gas(self, call: EthCall) -> int:
        await self._refuse(call)
        return await self._world.chain.estimate_gas(call)

    async def _refuse(self, call: EthCall) -> None:
        world = self._world
        allowed = await world.ask(world.weth, calldata.allowance(call.sender, world.at.router))
        if call.data.startswith(calldata.APPROVE) and any(call.data[36:]) and allowed:
            raise Reverted("set it to zero first")


async def test_a_token_that_insists_on_zero_first_gets_two_approvals(trader: Trader) -> None:
    world = trader.world
    await world.approve(world.user, world.weth, world.at.router, 5)
    insisting: Any = Insisting(world)
    trader = Trader(trader.venue, trader.client, insisting)
    _, outcome = await trader.swap()
    assert outcome.verdict is TradeVerdict.SWAPPED
    assert len([line for line in trader.told if line.startswith("sending the approval")]) == 2


@pytest.mark.one_chain
async def test_an_approval_that_is_not_taken_ends_it(trader: Trader) -> None:
    world = trader.world

    async def another_is_first(sent: int) -> None:
        assert sent == 1, "nothing is sent after it"
        await world.chain.set_automine(on=False)
        other = await world.signed_tx(world.user, world.weth, approve(THIEF, 1))
        await world.chain.send_raw(other.raw)
        await world.chain.set_automine(on=True)
        await world.chain.mine()

    meddling: Any = Meddling(world, another_is_first)
    trader = Trader(trader.venue, trader.client, meddling)
    with pytest.raises(TransactionRefused, match="nonce too low"):
        await trader.swap()
    assert trader.venue.bodies == []


async def test_what_was_mined_without_the_routers_event_is_not_called_a_swap(trader: Trader) -> None:
    world = trader.world
    receipt = await world.send(world.user, world.weth, approve(THIEF, 0))
    outcome = swapped_outcome(receipt, world.at.router, world.user.address)
    assert (outcome.verdict, outcome.tx_hash) == (TradeVerdict.UNKNOWN, receipt.tx_hash)
    assert "without the Router's event" in outcome.reason


async def test_too_little_to_sell_is_said_before_anything_is_sent(trader: Trader) -> None:
    with pytest.raises(ChainError, match="has 10 WETH, and 11 WETH is needed"):
        await trader.swap(trader.wish(amount=11 * ONE))
    assert trader.venue.bodies == []


async def test_a_price_that_moves_beyond_the_slippage_is_not_signed(
    trader: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trader.client.swap.swapping.ROUTE_AGED_S", 0)
    swapper = trader.swapper()
    offer = await swapper.offer(trader.wish())
    trader.venue.price = 2_400 * USDC
    with pytest.raises(VenueError, match="moved beyond the slippage: 2400000000 now, 2487500000 was agreed"):
        await swapper.perform(offer)
    trader.venue.price = 2_495 * USDC
    outcome = await swapper.perform(offer)
    assert outcome.received == 2_495 * USDC


async def test_more_impact_than_the_trader_takes_is_no_offer(trader: Trader) -> None:
    trader.venue.lies = Lies(route=lambda route: route | {"maxImpactReached": True})
    with pytest.raises(VenueError, match=r"the price impact is above 1\.5 %, or not known"):
        await trader.swap(trader.wish(max_impact=Decimal("1.5")))
    assert trader.venue.bodies == []
    _, outcome = await trader.swap()
    assert outcome.received == 2_500 * USDC, "whoever names no bound sees it in the offer"


async def test_a_rehearsal_sends_nothing(trader: Trader) -> None:
    swapper = trader.swapper()
    before = await trader.world.chain.nonce(trader.world.user.address)
    assert await swapper.rehearse(await swapper.offer(trader.wish())) is None
    outcome = await swapper.rehearse(await swapper.offer(trader.wish(src=ETH)))
    assert outcome is not None
    assert (outcome.verdict, outcome.received) == (TradeVerdict.REHEARSED, 2_500 * USDC)
    assert await trader.world.chain.nonce(trader.world.user.address) == before


async def test_a_router_of_other_code_is_used_only_when_it_is_pinned(trader: Trader) -> None:
    other = trader.world.usdc

    def elsewhere(document: dict[str, Any]) -> dict[str, Any]:
        (entry,) = document["chains"].values()
        entry["augustusV6_2"] = f"0x{other.hex()}"
        return document

    trader.venue.lies = Lies(contracts=elsewhere)
    with pytest.raises(VenueError, match="is not that of this release's Router"):
        await trader.swap()
    with pytest.raises(UnsafeTransaction, match=r"contracts\.json augustusV6_2: expected"):
        await trader.swap(pinned=trader.world.at.router)
    trader.venue.lies = Lies()
    _, outcome = await trader.swap(pinned=trader.world.at.router)
    assert outcome.verdict is TradeVerdict.SWAPPED


# --- A malicious venue ------------------------------------------------------------------------------------

THIEF = b"\x66" * 20
THIEF_TEXT = f"0x{THIEF.hex()}"


def swapped(**changed: Any) -> Lies:
    return Lies(swap=lambda swap: replace(swap, **changed))


def enveloped(**changed: Any) -> Lies:
    return Lies(envelope=lambda envelope: envelope | changed)


def routed(**changed: Any) -> Lies:
    return Lies(route=lambda route: route | changed)


LIES: list[tuple[str, Lies, str]] = [
    ("another contract", enveloped(to=THIEF_TEXT), "to"),
    ("no address", enveloped(to="0x1"), "to"),
    ("another chain", enveloped(chainId=1), "chainId"),
    ("another sender", enveloped(**{"from": THIEF_TEXT}), "from"),
    ("native tokens too", enveloped(value=str(ONE)), "value"),
    ("a value that is none", enveloped(value="0x1"), "value"),
    ("no calldata", enveloped(data="0x"), "data"),
    ("an approval", enveloped(data=f"0x{approve(THIEF, MOST).hex()}"), "data"),
    ("bytes behind the swap", Lies(data=lambda data: data + bytes(32)), "data"),
    ("another receiver", swapped(receiver=THIEF), "receiver"),
    ("another source", swapped(src_token=THIEF), "srcToken"),
    ("another destination", swapped(dest_token=THIEF), "destToken"),
    ("the native source", swapped(src_token=NATIVE), "srcToken"),
    ("more sold", swapped(src_amount=2 * ONE), "srcAmount"),
    ("less sold", swapped(src_amount=ONE - 1), "srcAmount"),
    ("too little received", swapped(dest_amount=2_487_500_000 - 1), "destAmount"),
    ("nothing received", swapped(dest_amount=0), "destAmount"),
    ("a later deadline", swapped(deadline=2**37), "deadline"),
    ("a deadline that is over", swapped(deadline=1), "deadline"),
    ("a fee that was not quoted", swapped(partner_and_fee=200), "partner fee in basis points"),
    ("surplus for others", swapped(partner_and_fee=1 << 8), "share of surplus for others"),
    ("a permit of its own", swapped(permit=b"\1"), "permit"),
    ("a route of another chain", routed(network=1), "priceRoute.network"),
    ("a route of the other side", routed(side="BUY"), "priceRoute.side"),
    ("a route of another source", routed(srcToken=THIEF_TEXT), "priceRoute.srcToken"),
    ("a route to another token", routed(destToken=THIEF_TEXT), "priceRoute.destToken"),
    ("other decimals", routed(destDecimals=18), "priceRoute.destDecimals"),
    ("another amount", routed(srcAmount=str(2 * ONE)), "priceRoute, the SELL amount"),
    ("an amount that is none", routed(destAmount="-1"), "priceRoute.destAmount"),
    ("nothing offered", routed(destAmount="0"), "priceRoute"),
    ("another router", routed(contractAddress=THIEF_TEXT), "priceRoute.contractAddress"),
    ("another spender", routed(tokenTransferProxy=THIEF_TEXT), "priceRoute.tokenTransferProxy"),
    ("a fee beyond all bounds", routed(partnerFee=2.5), "priceRoute.partnerFee"),
]


@pytest.mark.parametrize(("lies", "member"), [row[1:] for row in LIES], ids=[row[0] for row in LIES])
async def test_a_lie_is_refused_by_name_before_anything_is_signed(
    trader: Trader, lies: Lies, member: str
) -> None:
    world = trader.world
    await world.approve(world.user, world.weth, world.at.router, 3 * ONE)
    before = await world.chain.nonce(world.user.address)
    trader.venue.lies = lies
    with pytest.raises(UnsafeTransaction) as refused:
        await trader.swap()
    assert refused.value.member == member
    assert refused.value.detail.startswith(f"not signed: {member}: expected ")
    assert await world.chain.nonce(world.user.address) == before
    assert not [line for line in trader.told if line.startswith(("signing", "sending"))]


async def test_a_purchase_is_not_made_dearer_nor_smaller(trader: Trader) -> None:
    world = trader.world
    await world.approve(world.user, world.weth, world.at.router, 3 * ONE)
    wish = trader.wish(side=Side.BUY, amount=1_000 * USDC)
    for lies, member in (
        (Lies(swap=lambda swap: replace(swap, src_amount=swap.src_amount + 1)), "srcAmount"),
        (swapped(dest_amount=1_000 * USDC - 1), "destAmount"),
        (Lies(data=lambda data: b"\0\0\0\0" + data[4:]), "data"),
    ):
        trader.venue.lies = lies
        with pytest.raises(UnsafeTransaction) as refused:
            await trader.swap(wish)
        assert refused.value.member == member


async def test_a_native_sale_is_not_made_dearer(trader: Trader) -> None:
    trader.venue.lies = enveloped(value=str(ONE + 1))
    with pytest.raises(UnsafeTransaction, match=f"value: expected {ONE}, got {ONE + 1}"):
        await trader.swap(trader.wish(src=ETH))


async def test_a_venues_words_draw_no_row_of_the_offer(trader: Trader) -> None:
    row = "x\nat least received  9999 USDC\x1b[8m"
    words = {"partner": row, "gasCost": row, "gasCostUSD": row}

    def lies(route: dict[str, Any]) -> dict[str, Any]:
        for part in route["bestRoute"]:
            for hop in part["swaps"]:
                for each in hop["swapExchanges"]:
                    each["exchange"] = row
        return route | words

    trader.venue.lies = Lies(route=lies)
    offer = await trader.swapper().offer(trader.wish())
    console = Console(width=1_000, color_system=None)
    with console.capture() as captured:
        console.print(offer_table(offer, {}, Allowing.EXACT))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert [line for line in lines if line.startswith("at least received")] == [
        "at least received  2487.5 USDC  (50 bps)"
    ]
    assert "\x1b" not in captured.get()
