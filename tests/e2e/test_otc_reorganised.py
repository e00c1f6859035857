"""OTC orders whose fill or cancellation the chain takes back: open again, as if it never was."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from support.chain.world import ONE, USDC, World, mined
from support.contracts.rfq_stories import a_wallet, refusal, remaining, wallet_key
from support.otc.otc_stories import (
    OtcStory,
    Stored,
    all_of,
    an_otc_story,
    balances_of,
    none_of,
    running_otc,
    text_of,
)

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def ends(story: OtcStory, stored: Stored, state: str, tx_hash: str | None, left: int = 0) -> Stored:
    """The order, which is read to have ended so."""
    ended = await story.seen(stored)
    assert (ended["state"], ended["transactionHash"]) == (state, tx_hash)
    assert none_of(left).items() <= ended.items()
    return ended


async def reopens(story: OtcStory, stored: Stored, left: int, tx_hash: str | None = None) -> None:
    """The order is read to be open again, with this transaction, and all that is left can be filled."""
    now = await story.seen(stored)
    assert (now["state"], now["transactionHash"]) == ("PENDING", tx_hash)
    assert now["fillableBalance"] == str(left)
    await story.becomes(stored, "PENDING", transactionHash=tx_hash, **all_of(left))


async def test_a_fill_that_is_taken_back_opens_the_order_again(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        before = await story.balances()
        transaction = await world.signed_tx(world.taker, world.at.rfq, story.filling(order))
        await mined(world.chain, await world.chain.send_raw(transaction.raw))
        await ends(story, stored, "FULFILLED", f"0x{transaction.tx_hash.hex()}")
        await world.chain.reorganise(1)
        await reopens(story, stored, 2_500 * USDC)
        assert await story.moved_since(before) == {}
        assert await remaining(world, order) == 0
        assert await story.fillable() == 7_500 * USDC
        # The same transaction comes again, in a later block.
        await world.chain.mine()
        receipt = await mined(world.chain, await world.chain.send_raw(transaction.raw))
        assert receipt.succeeded
        ended = await ends(story, stored, "FULFILLED", f"0x{transaction.tx_hash.hex()}")
        assert (await story.moved_since(before))["taker", "USDC"] == 2_500 * USDC
        await story.is_final(stored)
        assert await story.order(stored) == ended


async def test_a_fill_that_only_moves_to_another_block_changes_nothing(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, begun = story.an_order(), story.an_order()
        stored, other = await story.posted(order), await story.later(begun)
        await story.fill(begun, ONE // 4)
        part = await story.becomes(other, "PENDING", **all_of(1_875 * USDC))
        transaction = await world.signed_tx(world.taker, world.at.rfq, story.filling(order))
        await mined(world.chain, await world.chain.send_raw(transaction.raw))
        ended = await ends(story, stored, "FULFILLED", f"0x{transaction.tx_hash.hex()}")
        await world.chain.mine()
        await story.is_read()
        await world.chain.reorganise(2, [(transaction.raw, 1)])
        assert await story.seen(stored) == ended
        assert await story.order(other) == part
        await story.is_final(stored)
        assert await story.order(stored) == ended


async def test_of_two_parts_the_later_one_is_taken_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        first = await story.fill(order, ONE // 5)
        await story.becomes(stored, "PENDING", **all_of(2_000 * USDC))
        second = await story.fill(order, ONE // 2)
        await story.becomes(stored, "PENDING", transactionHash=text_of(second), **all_of(750 * USDC))
        await world.chain.reorganise(1)
        await reopens(story, stored, 2_000 * USDC, text_of(first))
        last = await story.fill(order, 4 * ONE // 5)
        await ends(story, stored, "FULFILLED", text_of(last))
        await world.chain.reorganise(3)  # the second part's replacement stands between
        await reopens(story, stored, 2_500 * USDC)
        assert await remaining(world, order) == 0


async def test_a_part_that_was_filled_before_the_post_is_taken_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        first = await story.fill(order, ONE // 5)
        second = await story.fill(order, ONE // 2)
        await story.is_read()
        stored = await story.posted(order)
        assert stored["transactionHash"] == text_of(second)
        assert all_of(750 * USDC).items() <= stored.items()
        await world.chain.reorganise(1)
        await reopens(story, stored, 2_000 * USDC, text_of(first))
        await world.chain.reorganise(2)
        await reopens(story, stored, 2_500 * USDC)
        receipt = await story.fill(order)
        await ends(story, stored, "FULFILLED", text_of(receipt))


async def test_a_cancellation_that_is_taken_back_opens_the_order_again(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, begun, other = (story.an_order(maker_amount=4_000 * USDC) for _ in range(3))
        stored, part, younger = [await story.later(one) for one in (order, begun, other)]
        filled = await story.fill(begun, ONE // 2)
        await story.becomes(part, "PENDING", **all_of(2_000 * USDC))
        await story.becomes(younger, "PENDING", reservedBalance=str(2_000 * USDC))
        receipt = await story.cancel(order, begun)
        await ends(story, stored, "CANCELLED", text_of(receipt), 4_000 * USDC)
        await ends(story, part, "CANCELLED", text_of(receipt), 2_000 * USDC)
        await story.becomes(younger, "PENDING", **all_of(4_000 * USDC))
        await world.chain.reorganise(1)
        await reopens(story, stored, 4_000 * USDC)
        await reopens(story, part, 2_000 * USDC, text_of(filled))
        await story.becomes(
            younger,
            "PENDING",
            **balances_of(4_000 * USDC, 4_000 * USDC, 2_000 * USDC, 2_000 * USDC),
        )
        await story.fill(order)
        assert (await story.seen(stored))["state"] == "FULFILLED"
        last = await story.fill(begun, ONE // 2)
        await ends(story, part, "FULFILLED", text_of(last))


async def test_a_fill_gives_way_to_a_cancellation_and_the_other_way_round(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order()
        stored, second = await story.posted(order), await story.later(other)
        cancelling = calldata.cancel_order(world.rfq_hash(order))
        cancel = await world.signed_tx(world.maker, world.at.rfq, cancelling)
        fill = await story.fill(order)
        await ends(story, stored, "FULFILLED", text_of(fill))
        await world.chain.reorganise(1, [(cancel.raw, 0)])
        await ends(story, stored, "CANCELLED", f"0x{cancel.tx_hash.hex()}", 2_500 * USDC)
        filling = await world.signed_tx(world.taker, world.at.rfq, story.filling(other))
        receipt = await story.cancel(other)
        await ends(story, second, "CANCELLED", text_of(receipt), 2_500 * USDC)
        await world.chain.reorganise(1, [(filling.raw, 0)])
        await ends(story, second, "FULFILLED", f"0x{filling.tx_hash.hex()}")
        assert (await story.order(stored))["state"] == "CANCELLED"
        await story.is_final(stored)
        await story.is_final(second)
        assert (await story.order(second))["transactionHash"] == f"0x{filling.tx_hash.hex()}"


async def test_funds_that_a_reorganisation_gives_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        stored = await story.posted(story.an_order())
        await story.pays(9_000 * USDC)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 1_000 * USDC, 0, 0))
        await world.chain.reorganise(1)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        await story.allows(0)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        await world.chain.reorganise(1)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))


async def test_an_order_that_is_open_again_without_funds_is_suspended(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order(maker_amount=10_000 * USDC)
        stored = await story.posted(order)
        away = calldata.transfer(world.stranger.address, 9_000 * USDC)
        spent = await world.signed_tx(world.maker, world.usdc, away)
        receipt = await story.fill(order)
        await ends(story, stored, "FULFILLED", text_of(receipt))
        await world.chain.reorganise(1, [(spent.raw, 0)])
        await story.becomes(
            stored,
            "SUSPENDED",
            transactionHash=None,
            **balances_of(10_000 * USDC, 1_000 * USDC, 0, 0),
        )


async def test_a_wallet_is_asked_anew_for_an_order_that_is_open_again(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        order, begun = story.an_order(maker=wallet), story.an_order(maker=wallet)
        stored = await story.posted(order, world.partner)
        other = await story.later(begun, world.partner)
        await story.fill(begun, ONE // 2, signer=world.partner)
        change = await world.signed_tx(world.partner, wallet, wallet_key(world.user))
        receipt = await story.fill(order, signer=world.partner)
        await ends(story, stored, "FULFILLED", text_of(receipt))
        await world.chain.reorganise(1, [(change.raw, 0)])
        now = await story.seen(stored)
        assert (now["state"], now["transactionHash"], now["reservedBalance"]) == ("DRAFT", None, "0")
        assert (await story.order(other))["state"] == "PENDING", "it was begun, which takes a signature"
        data = story.filling(order, signer=world.partner)
        assert await refusal(world, world.taker, data, order) == "Invalid Signature"
        await world.send(world.user, wallet, wallet_key(world.partner))
        await story.becomes(stored, "PENDING", transactionHash=None, **all_of(2_500 * USDC))
        receipt = await story.fill(order, signer=world.partner)
        await ends(story, stored, "FULFILLED", text_of(receipt))


async def test_an_order_that_is_open_again_expires(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order(expiry=await world.now_s() + 60)
        stored = await story.posted(order)
        receipt = await story.fill(order)
        await ends(story, stored, "FULFILLED", text_of(receipt))
        await world.chain.reorganise(1)
        await reopens(story, stored, 2_500 * USDC)
        await story.pass_time(70)
        await story.becomes(stored, "EXPIRED", transactionHash=None, **none_of(2_500 * USDC))


async def test_a_fill_that_is_taken_back_while_the_venue_is_away(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order, other = story.an_order(), story.an_order()
        stored, second = await story.posted(order), await story.later(other)
        receipt = await story.fill(order)
        await ends(story, stored, "FULFILLED", text_of(receipt))
        receipt = await story.cancel(other)
        await ends(story, second, "CANCELLED", text_of(receipt), 2_500 * USDC)
    await world.chain.reorganise(2)
    await world.chain.mine()
    async with running_otc(world, tmp_path) as again:
        for one in (stored, second):
            await reopens(again, one, 2_500 * USDC)
        receipt = await again.fill(other)
        await ends(again, second, "FULFILLED", text_of(receipt))
