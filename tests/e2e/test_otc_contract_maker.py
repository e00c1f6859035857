"""OTC orders of smart wallets: valid at once, DRAFT until the wallet accepts the signature, or for ever."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.create2_factory import FACTORY
from support.chain import evm_programs
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import a_wallet, execute, wallet_key
from support.contracts.wrapped_signatures import a_counterfactual_wallet, wrapped_signature
from support.otc.otc_stories import OtcStory, all_of, an_otc_story, balances_of, none_of, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def accepts(world: World, wallet: bytes, key: SigningKey, *, of: SigningKey | None = None) -> None:
    """The wallet of a partner's key, or another, signs with this key from now on."""
    await world.send(of or world.partner, wallet, wallet_key(key))


async def cancels(world: World, wallet: bytes, order: RfqOrder) -> str:
    """The wallet takes an order back: the transaction."""
    call = execute(world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))
    return text_of(await world.send(world.partner, wallet, call))


async def a_draft(story: OtcStory, wallet: bytes, **changed: int) -> tuple[RfqOrder, dict[str, str]]:
    """An order in a wallet's name that a user signed, who is not its key yet."""
    order = story.an_order(maker=wallet, **changed)
    stored = await story.later(order, story.world.user)
    assert (stored["state"], stored["swappableBalance"], stored["reservedBalance"]) == ("DRAFT", "0", "0")
    return order, stored


async def test_what_a_wallet_accepts_is_an_order_at_once(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        order = story.an_order(maker=wallet)
        stored = await story.posted(order, world.partner)
        assert stored["state"] == "PENDING"
        assert all_of(2_500 * USDC).items() <= stored.items()
        assert await story.listed("maker", wallet) == [stored["orderHash"]]
        assert await story.fillable(account=wallet) == 7_500 * USDC
        first = await story.fill(order, ONE // 4, signer=world.partner)
        assert (await story.seen(stored))["transactionHash"] == text_of(first)
        await story.becomes(stored, "PENDING", **all_of(1_875 * USDC))
        await accepts(world, wallet, world.stranger)  # the contract asks for no signature of a begun order
        last = await story.fill(order, 3 * ONE // 4, signer=world.partner)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", text_of(last))
        assert await world.balance(world.usdc, wallet) == 7_500 * USDC
        assert await world.balance(world.weth, wallet) == ONE


async def test_a_draft_becomes_an_order_once_the_wallet_accepts_it(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        order, stored = await a_draft(story, wallet)
        assert stored["fillableBalance"] == str(2_500 * USDC)
        assert await story.fillable(account=wallet) == 10_000 * USDC
        other = await story.later(story.an_order(maker=wallet, maker_amount=10_000 * USDC), world.partner)
        assert other["swappableBalance"] == str(10_000 * USDC), "a draft reserves nothing"
        data = story.filling(order, signer=world.user)
        assert await story.refused(stored, order, data) == "Invalid Signature"
        await accepts(world, wallet, world.user)
        await story.becomes(stored, "PENDING", transactionHash=None, **all_of(2_500 * USDC))
        await story.becomes(
            other, "PENDING", **balances_of(10_000 * USDC, 10_000 * USDC, 7_500 * USDC, 7_500 * USDC)
        )
        receipt = await story.fill(order, signer=world.user)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", text_of(receipt))


async def test_a_draft_that_is_accepted_without_funds_is_suspended(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        _, stored = await a_draft(story, wallet)
        away = execute(world.usdc, calldata.transfer(world.stranger.address, 8_000 * USDC))
        await world.send(world.partner, wallet, away)
        await story.becomes(stored, "DRAFT", **balances_of(2_500 * USDC, 2_000 * USDC, 0, 0))
        await accepts(world, wallet, world.user)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 2_000 * USDC, 0, 0))
        await world.send(world.stranger, world.usdc, calldata.transfer(wallet, 500 * USDC))
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))


async def test_a_draft_expires(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        order, stored = await a_draft(story, wallet, expiry=await world.now_s() + 60)
        await story.pass_time(70)
        ended = await story.becomes(stored, "EXPIRED", transactionHash=None, **none_of(2_500 * USDC))
        await accepts(world, wallet, world.user)
        _, other = await a_draft_of_stranger(story, wallet)
        data = story.filling(order, signer=world.user)
        assert await story.refused(ended, order, data) == "Order expired"
        await accepts(world, wallet, world.stranger, of=world.user)
        await story.becomes(other, "PENDING")  # drafts were looked at meanwhile
        assert await story.order(stored) == ended


async def a_draft_of_stranger(story: OtcStory, wallet: bytes) -> tuple[RfqOrder, dict[str, str]]:
    """The same as `a_draft`, signed by a stranger."""
    order = story.an_order(maker=wallet)
    stored = await story.later(order, story.world.stranger)
    assert stored["state"] == "DRAFT"
    return order, stored


async def test_a_wallet_takes_back_a_draft_and_an_order(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        draft, waiting = await a_draft(story, wallet)
        order = story.an_order(maker=wallet)
        stored = await story.later(order, world.partner)
        await story.cancel(order, draft, by=world.partner)  # the key's own account is not the wallet
        assert await story.seen(stored) == stored
        assert (await story.order(waiting))["state"] == "DRAFT"
        for cancelled, was in ((draft, waiting), (order, stored)):
            tx_hash = await cancels(world, wallet, cancelled)
            ended = await story.seen(was)
            assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", tx_hash)
            assert none_of(2_500 * USDC).items() <= ended.items()


async def test_a_draft_that_is_filled_was_accepted(world: World, tmp_path: Path) -> None:
    """A block holds the wallet's acceptance and the fill: the venue could not ask the wallet in between."""
    async with an_otc_story(world, tmp_path) as story:
        wallet = await a_wallet(world, world.partner)
        order, stored = await a_draft(story, wallet)
        _, receipt = await story.in_one_block(
            (world.partner, wallet, wallet_key(world.user)),
            (world.taker, world.at.rfq, story.filling(order, ONE // 2, signer=world.user)),
        )
        assert receipt.succeeded
        begun = await story.seen(stored)
        assert (begun["state"], begun["transactionHash"]) == ("PENDING", text_of(receipt))
        await story.becomes(stored, "PENDING", **all_of(1_250 * USDC))


# --- Wallets that are not deployed yet --------------------------------------------------------------------


async def test_the_order_of_a_wallet_that_is_not_deployed_is_a_draft_until_it_is(
    world: World, tmp_path: Path
) -> None:
    """ERC-6492: a simulated deployment shows that the wallet will accept the signature."""
    async with an_otc_story(world, tmp_path) as story:
        wallet, deploys = a_counterfactual_wallet(world.partner)
        await world.mint(world.usdc, wallet, 10_000 * USDC)
        order = story.an_order(maker=wallet)
        inner = world.signed(order, world.partner)
        stored = await story.posted(order, signature=wrapped_signature(inner, FACTORY, deploys))
        assert (stored["state"], stored["signature"]) == ("DRAFT", to_hex(inner))
        assert not await world.chain.code(wallet), "nothing was deployed"
        assert await a_wallet(world, world.partner) == wallet  # which approves, too
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        await story.fill(order, signer=world.partner)
        assert (await story.seen(stored))["state"] == "FULFILLED"


async def test_what_the_wallet_would_not_accept_once_deployed_is_refused(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        wallet, deploys = a_counterfactual_wallet(world.partner)
        order = story.an_order(maker=wallet)
        good = world.signed(order, world.partner)
        endless = await world.send(
            world.owner, b"", evm_programs.deploys(evm_programs.assembled("again: @again JUMP"))
        )
        assert endless.contract is not None
        for signature in (
            wrapped_signature(world.signed(order, world.user), FACTORY, deploys),
            wrapped_signature(good, FACTORY, deploys[:-1] + b"\x01"),
            wrapped_signature(good, world.stranger.address, deploys),
            wrapped_signature(good, endless.contract, deploys),
        ):
            status, error, details = await story.fault(order, signature=signature)
            assert (status, error) == (400, "InvalidSignature")
            assert "deploy it first, by the call to 0x" in details
