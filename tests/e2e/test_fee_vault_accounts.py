"""The vault keeps fees for those they belong to: credited as they arrive, claimed by nobody else."""

from collections.abc import Sequence

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.contract_events import Claimed, Credited, decode_event
from cambist.codecs.contracts.router_calldata import claim, owed
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.port import Receipt
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.swapping import told

CREDIT = selector("credit(address,address,uint256)")
TOTAL_OWED = selector("totalOwed(address)")
SET_TRANSFER_FEE = selector("setTransferFee(uint256)")
SET_BLOCKED = selector("setBlocked(address,bool)")
SET_HOOK = selector("setHook(address,bytes)")


def _credit(account: SigningKey, token: bytes, amount: int) -> bytes:
    return CREDIT + address_word(account.address) + address_word(token) + uint_word(amount)


def _events(world: World, receipt: Receipt) -> list[object]:
    return [decode_event(log.topics, log.data) for log in receipt.logs if log.address == world.at.fee_vault]


async def _with_a_collector(world: World) -> None:
    """The taker is one."""
    allow = owner_calldata.set_collector(world.taker.address, allowed=True)
    await world.send(world.owner, world.at.fee_vault, allow)


async def _arrive(world: World, token: bytes, amount: int) -> None:
    """A collector sends fees."""
    await world.mint(token, world.taker, amount)
    await world.send(world.taker, token, calldata.transfer(world.at.fee_vault, amount))


async def _credited(world: World, account: SigningKey, token: bytes, amount: int) -> int:
    """Credit an account in the vault; return the credited amount."""
    data = _credit(account, token, amount)
    receipt = await world.send(world.taker, world.at.fee_vault, data)
    (event,) = _events(world, receipt)
    assert isinstance(event, Credited)
    assert (event.account, event.token) == (account.address, token)
    return event.amount


async def _owed(world: World, token: bytes, *accounts: SigningKey) -> list[int]:
    return [await world.ask(world.at.fee_vault, owed(account.address, token)) for account in accounts]


async def _claim(world: World, key: SigningKey, tokens: Sequence[bytes], receiver: bytes) -> list[object]:
    return _events(world, await world.send(key, world.at.fee_vault, claim(tokens, receiver)))


async def test_only_collectors_credit(world: World) -> None:
    await world.mint(world.usdc, world.at.fee_vault, USDC)
    for key in (world.stranger, world.owner, world.partner, world.relayer):
        for token in (world.usdc, world.stranger.address):  # which is no token
            data = _credit(key, token, 1)
            assert await world.refused(key, world.at.fee_vault, data) == "NotCollector()"
    await _with_a_collector(world)
    assert await _credited(world, world.partner, world.usdc, 1) == 1
    strike = owner_calldata.set_collector(world.taker.address, allowed=False)
    await world.send(world.owner, world.at.fee_vault, strike)
    data = _credit(world.partner, world.usdc, 1)
    assert await world.refused(world.taker, world.at.fee_vault, data) == "NotCollector()"


async def test_no_more_is_credited_than_has_arrived(world: World) -> None:
    await _with_a_collector(world)
    assert await _credited(world, world.partner, world.usdc, 5) == 0
    await _arrive(world, world.usdc, 10)
    credited = [
        await _credited(world, account, world.usdc, 4)
        for account in (world.partner, world.user, world.maker, world.partner)
    ]
    assert credited == [4, 4, 2, 0]
    assert await _owed(world, world.usdc, world.partner, world.user, world.maker) == [4, 4, 2]
    assert await world.ask(world.at.fee_vault, TOTAL_OWED + address_word(world.usdc)) == 10
    assert await _credited(world, world.partner, world.usdc, MOST) == 0


async def test_several_tokens_are_claimed_at_once_to_any_receiver(world: World) -> None:
    await _with_a_collector(world)
    for token, amount in ((world.usdc, 7 * USDC), (world.dai, 3 * ONE)):
        await _arrive(world, token, amount)
        assert await _credited(world, world.partner, token, amount) == amount
    receiver = world.stranger.address
    assert await _claim(world, world.partner, [world.dai, world.usdc], receiver) == [
        Claimed(world.partner.address, world.dai, receiver, 3 * ONE),
        Claimed(world.partner.address, world.usdc, receiver, 7 * USDC),
    ]
    assert await world.balance(world.usdc, receiver) == 7 * USDC
    assert await world.balance(world.dai, receiver) == 3 * ONE
    assert await _owed(world, world.usdc, world.partner) == [0]
    assert await world.ask(world.at.fee_vault, TOTAL_OWED + address_word(world.dai)) == 0


async def test_nothing_is_claimed_twice_nor_by_others(world: World) -> None:
    await _with_a_collector(world)
    await _arrive(world, world.usdc, 10)
    await _credited(world, world.partner, world.usdc, 10)
    vault = world.at.fee_vault
    nothing = told("NothingToClaim", token=world.usdc)
    for key in (world.stranger, world.taker, world.owner):
        assert await world.refused(key, vault, claim([world.usdc], key.address)) == nothing
    twice = claim([world.usdc, world.usdc], world.partner.address)
    assert await world.refused(world.partner, vault, twice) == nothing
    other = claim([world.usdc, world.dai], world.partner.address)
    assert await world.refused(world.partner, vault, other) == told("NothingToClaim", token=world.dai)
    assert await _owed(world, world.usdc, world.partner) == [10]
    await _claim(world, world.partner, [world.usdc], world.partner.address)
    again = claim([world.usdc], world.partner.address)
    assert await world.refused(world.partner, vault, again) == nothing


async def test_a_token_that_takes_a_fee_is_credited_as_it_arrives(world: World) -> None:
    await _with_a_collector(world)
    odd = await world.new_token()
    await world.send(world.stranger, odd, SET_TRANSFER_FEE + uint_word(100))
    await _arrive(world, odd, 10_000)
    assert await _credited(world, world.partner, odd, 10_000) == 9_900
    await _arrive(world, odd, 10_000)
    assert await _credited(world, world.user, odd, 10_000) == 9_900
    await _claim(world, world.partner, [odd], world.partner.address)
    await _claim(world, world.user, [odd], world.user.address)
    assert await world.balance(odd, world.user) == 9_801
    assert await world.balance(odd, world.at.fee_vault) == 0


async def test_a_token_that_answers_nothing_is_claimed(world: World) -> None:
    await _with_a_collector(world)
    odd = await world.new_token("DevTokenWithoutReturn")
    await _arrive(world, odd, 5)
    await _credited(world, world.partner, odd, 5)
    await _claim(world, world.partner, [odd], world.user.address)
    assert await world.balance(odd, world.user) == 5


async def test_a_blocked_receiver_loses_nothing(world: World) -> None:
    await _with_a_collector(world)
    await _arrive(world, world.usdc, 5)
    await _credited(world, world.partner, world.usdc, 5)
    block = SET_BLOCKED + address_word(world.partner.address) + uint_word(1)
    await world.send(world.stranger, world.usdc, block)
    data = claim([world.usdc], world.partner.address)
    refusal = await world.refused(world.partner, world.at.fee_vault, data)
    assert refusal == told("TransferFailed", token=world.usdc)
    assert await _owed(world, world.usdc, world.partner) == [5]
    await _claim(world, world.partner, [world.usdc], world.user.address)
    assert await world.balance(world.usdc, world.user) == 5


async def test_a_donation_disturbs_nobody(world: World) -> None:
    await _with_a_collector(world)
    await _arrive(world, world.usdc, 10)
    await _credited(world, world.partner, world.usdc, 10)
    await world.mint(world.usdc, world.at.fee_vault, 1_000)
    assert await _owed(world, world.usdc, world.partner) == [10]
    await _arrive(world, world.usdc, 6)
    assert await _credited(world, world.user, world.usdc, 6) == 6
    await _claim(world, world.user, [world.usdc], world.user.address)
    await _claim(world, world.partner, [world.usdc], world.partner.address)
    assert await world.balance(world.usdc, world.at.fee_vault) == 1_000


async def test_the_owner_cannot_touch_what_is_kept_not_even_as_a_collector(world: World) -> None:
    await _with_a_collector(world)
    await _arrive(world, world.usdc, 10)
    await _credited(world, world.partner, world.usdc, 10)
    allow = owner_calldata.set_collector(world.owner.address, allowed=True)
    await world.send(world.owner, world.at.fee_vault, allow)
    await world.send(world.owner, world.at.fee_vault, _credit(world.owner, world.usdc, MOST))
    assert await _owed(world, world.usdc, world.owner, world.partner) == [0, 10]
    functions = {entry.name for entry in artifact("FeeVault").abi if entry.type != "event"} - {""}
    assert functions == {
        "claim", "credit", "setCollector", "proposeOwner", "acceptOwner", "owner", "proposedOwner", "owed",
        "totalOwed", "isCollector", "NotCollector", "NothingToClaim", "TransferFailed", "NotOwner",
        "Reentered",
    }  # fmt: skip


async def test_what_is_claimed_is_owed_no_more_while_it_is_sent(world: World) -> None:
    """A contract that the token calls during the transfer reads the reduced credit."""
    await _with_a_collector(world)
    vault, odd = world.at.fee_vault, await world.new_token()
    await _arrive(world, odd, 10)
    await _credited(world, world.partner, odd, 6)
    await _credited(world, world.user, odd, 4)
    probe = (await world.send(world.stranger, b"", deploys(assembled(TRIES_AND_TELLS)))).contract
    assert probe is not None
    for question, left in (
        (owed(world.partner.address, odd), 0),
        (TOTAL_OWED + address_word(odd), 4),
    ):
        before = await world.chain.snapshot()
        hook = encode(address_word(probe), bytes_tail(address_word(vault) + question))
        await world.send(world.stranger, odd, SET_HOOK + hook)
        receipt = await world.send(world.partner, vault, claim([odd], world.partner.address))
        assert [log.data for log in receipt.logs if log.address == probe] == [uint_word(left)]
        await world.chain.restore(before)


async def test_a_token_that_calls_back_claims_nothing_twice(world: World) -> None:
    await _with_a_collector(world)
    odd = await world.new_token()
    await _arrive(world, odd, 10)
    await _credited(world, world.partner, odd, 5)
    await _credited(world, world.taker, odd, 5)
    again = claim([odd], world.partner.address)
    hook = encode(address_word(world.at.fee_vault), bytes_tail(again))
    await world.send(world.stranger, odd, SET_HOOK + hook)
    refusal = await world.refused(world.partner, world.at.fee_vault, again)
    assert refusal == told("TransferFailed", token=odd)
    assert await _owed(world, odd, world.partner, world.taker) == [5, 5]
