"""POST /ft/p2p/{chainId} of what is stored already; what a post costs its caller, the chain and others."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.config import limits
from cambist.config.errors import NodeUnavailable
from cambist.config.sections.venue import Rate, RateTier
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.trade.orders.places import OrderStake
from support.chain.world import ONE, RFQ_NAME, USDC, World
from support.contracts.rfq_stories import a_wallet
from support.contracts.wrapped_signatures import wrapped_signature
from support.counted_signatures import CountedChain
from support.otc.otc_front import CHAIN_ID, MARKET_ONLY, OtcFront, an_otc_front
from support.patience import until

GARBAGE = b"\x01" * 100
OTHER_ADDRESS = "198.51.100.1"


BURST = 16
TIER = RateTier(per_s=100_000, burst=100_000, wrong_signatures=Rate(per_s=1e-6, burst=BURST))
"""A tier that pays for BURST wrong signatures, and then for none."""


async def answers(front: OtcFront, order: Any, count: int, **given: Any) -> list[int]:
    """Statuses of as many equal posts."""
    return [(await front.submit(order, **given))[0] for _ in range(count)]


# --- What the chain is asked ----------------------------------------------------------------------------


class WatchedChain(CountedChain):
    """A chain that counts its reads, and answers none while it is away."""

    is_away = False

    async def block(self, at: Any = None) -> Any:
        if self.is_away:
            raise NodeUnavailable("no node answers")
        return await super().__getattr__("block")(at)


async def test_the_chain_is_not_asked_about_an_order_that_is_pending_or_for_which_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_ORDERS_PER_MAKER_MAX", 1)
    chains: list[CountedChain] = []

    def counted(chain: Any) -> CountedChain:
        chains.append(CountedChain(chain))
        return chains[0]

    async with an_otc_front(tmp_path, runs=False, chain=counted) as front:
        order = front.an_order()
        stored = await front.posted(order)
        before = Counter(chains[0].asked)
        assert await front.posted(order, signature=GARBAGE) == stored
        assert (await front.fault(front.an_order()))[1] == "TooManyOpenOrders"
        assert Counter(chains[0].asked) == before
        wallet = await a_wallet(front.world, front.world.user)
        await front.posted(front.an_order(maker=wallet), front.world.user)
        draft = await front.posted(front.an_order(maker=wallet), signature=GARBAGE)
        assert draft["state"] == "DRAFT", "drafts have a bound of their own"


async def test_a_wrapped_signature_is_kept_and_shown_as_its_inner_one(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        wallet, world = await a_wallet(front.world, front.world.user), front.world
        for maker in (wallet, world.user.address):
            order = front.an_order(maker=maker)
            inner = to_65(*world.user.sign(world.rfq_hash(order)))
            stored = await front.posted(order, signature=wrapped_signature(inner))
            assert stored["signature"] == to_hex(inner)
            assert stored["state"] != "DRAFT"


async def test_an_order_whose_earlier_fills_are_not_known_yet_is_to_be_posted_again(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        order = front.an_order()
        await front.fill(order, ONE // 2)
        refusal = await front.fault(order)
        assert refusal[:2] == (503, "ServiceUnavailable")
        assert "earlier fills are not known yet" in refusal[2]


async def test_a_new_order_waits_until_its_chain_is_followed(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        followed = trio.Event()
        front.places[CHAIN_ID] = replace(front.places[CHAIN_ID], followed=followed)
        order = front.an_order()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(front.posted, order)
            await until(lambda: followed.statistics().tasks_waiting == 1)
            assert (await front.answer(f"/ft/order/{front.hash_of(order)}"))[0] == 404
            followed.set()
        assert (await front.answer(f"/ft/order/{front.hash_of(order)}"))[0] == 200


async def test_a_signature_for_a_chain_without_rfq_is_somebody_elses(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        order = front.an_order()
        separator = rfq_domain_separator(RFQ_NAME, MARKET_ONLY, front.world.at.rfq)
        signature = to_65(*front.world.maker.sign(RFQ_ORDER.compiled.digest_for(separator)(order)))
        status, error_type, details = await front.fault(order, signature=signature)
        assert (status, error_type) == (400, "InvalidSignature")
        assert "signed this, not the owner" in details


# --- Drafts that are signed anew ------------------------------------------------------------------------


async def test_a_draft_that_is_signed_where_no_allowance_covers_it_is_suspended(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        world = front.world
        wallet = await a_wallet(world, world.user)
        await world.mint(world.dai, wallet, ONE)
        order = front.an_order(maker=wallet, maker_asset=world.dai, maker_amount=10**6)
        await front.posted(order, signature=GARBAGE)
        assert (await front.posted(order, world.user))["state"] == "SUSPENDED"


async def test_a_draft_is_to_be_signed_again_where_the_chain_cannot_be_asked(tmp_path: Path) -> None:
    chains: list[WatchedChain] = []

    def watched(chain: Any) -> WatchedChain:
        chains.append(WatchedChain(chain))
        return chains[0]

    async with an_otc_front(tmp_path, runs=False, chain=watched) as front:
        world = front.world
        order = front.an_order(maker=await a_wallet(world, world.user))
        draft = await front.posted(order, signature=GARBAGE)
        chains[0].is_away = True
        status, told = await front.submit(order, world.user)
        assert (status, told["errorType"]) == (503, "ServiceUnavailable")
        assert await front.posted(order, signature=GARBAGE) == draft, "nothing new is to be asked"
        chains[0].is_away = False
        assert (await front.posted(order, world.user))["state"] == "PENDING"


# --- Wrong signatures of stored orders ------------------------------------------------------------------


async def test_wrong_signatures_of_a_stored_order_that_is_run_elsewhere_are_paid_for(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, tier=TIER) as front:
        order = front.an_order()
        stored = await front.posted(order)
        front.engine.orders.leave(())
        told = await answers(front, order, BURST + 2, key=front.world.stranger)
        assert told == [200] * BURST + [429, 429]
        assert await front.order(stored) == stored


async def test_a_draft_that_is_run_elsewhere_costs_what_its_two_checks_cost(tmp_path: Path) -> None:
    """As a new order, and as another signature of the stored one."""
    async with an_otc_front(tmp_path, runs=False, tier=TIER) as front:
        world = front.world
        order = front.an_order(maker=await a_wallet(world, world.user))
        await front.posted(order, signature=GARBAGE)
        front.engine.orders.leave(())
        told = await answers(front, order, BURST // 2, key=world.stranger)
        assert told == [200] * (BURST // 2 - 1) + [429], "the first post of the draft has cost one"


async def test_another_signature_of_a_draft_that_the_chain_has_closed_is_paid_for(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, tier=TIER) as front:
        world = front.world
        order = front.an_order(maker=await a_wallet(world, world.user))
        draft = await front.posted(order, signature=GARBAGE)
        fill = calldata.fill_order(order, world.signed(order, world.user))
        assert (await world.send(world.taker, world.at.rfq, fill)).succeeded
        told = await answers(front, order, BURST, key=world.stranger)
        assert told == [200] * (BURST - 1) + [429]
        assert (await front.order(draft))["state"] == "DRAFT"


# --- Which orders give way ------------------------------------------------------------------------------


async def an_unlisted_token(world: World) -> bytes:
    """A token of the maker's that the operator has not listed."""
    token = await world.new_token()
    await world.give(world.maker, token, 10 * ONE, world.at.rfq)
    return token


async def states(front: OtcFront, *stored: dict[str, Any]) -> list[str]:
    return [(await front.order(one))["state"] for one in stored]


async def test_a_repeated_post_of_an_order_that_is_run_elsewhere_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        order = front.an_order()
        stored = await front.posted(order)
        front.engine.orders.leave(())
        other = await front.posted(front.an_order(maker_amount=10**24))
        monkeypatch.setattr(limits, "OTC_LIVE_MAX", 1)
        assert await front.posted(order) == stored
        assert await states(front, other) == ["SUSPENDED"]


async def test_an_order_of_an_unlisted_token_is_the_first_to_give_way_where_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        token = await an_unlisted_token(front.world)
        short = await front.posted(front.an_order(maker_amount=10**24))
        unlisted = await front.posted(front.an_order(maker_asset=token, maker_amount=ONE))
        monkeypatch.setattr(limits, "OTC_LIVE_MAX", 2)
        await front.posted(front.an_order())
        assert await states(front, unlisted, short) == ["EXPIRED", "SUSPENDED"]


async def test_an_order_of_an_unlisted_token_does_not_give_way_where_it_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        token = await an_unlisted_token(front.world)
        unlisted = await front.posted(front.an_order(maker_asset=token, maker_amount=ONE))
        short = [await front.posted(front.an_order(maker_amount=10**24)) for _ in range(2)]
        monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", 2)
        front.address, key = OTHER_ADDRESS, SigningKey(b"8" * 32)
        await front.posted(front.an_order(maker=key.address), key)
        assert await states(front, unlisted, *short) == ["PENDING", "EXPIRED", "SUSPENDED"]


async def test_a_post_that_this_process_does_not_run_ends_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        short = await front.posted(front.an_order(maker_amount=10**24))
        monkeypatch.setattr(limits, "OTC_LIVE_MAX", 1)
        with monkeypatch.context() as patch:
            patch.setattr(front.engine.orders, "runs", lambda _: False)
            await front.posted(front.an_order())
        assert await states(front, short) == ["SUSPENDED"]


@pytest.mark.parametrize(("amount", "stake"), [(USDC - 1, OrderStake.UNBACKED), (USDC, OrderStake.BACKED)])
async def test_what_an_order_sells_is_a_stake_from_a_dollar_on(
    tmp_path: Path, amount: int, stake: OrderStake
) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        stored = await front.posted(front.an_order(maker_amount=amount))
        assert front.engine.orders.stake_of(await front.row(stored), "") is stake
