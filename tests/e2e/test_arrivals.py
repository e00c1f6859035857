"""Tokens that a bridge delivered are swapped where they arrived, or paid out: all goes to the beneficiary."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.bridges.arrivals import (
    ARRIVAL_OF,
    ArrivalGiven,
    ArrivalTerms,
    arrival_address,
    decode_arrival_log,
    pack_arrival,
    parse_arrival,
    pay_out_arrival,
    swap_arrival,
)
from cambist.codecs.contracts.abi import address_word, decode_address, selector
from cambist.codecs.contracts.calldata import allowance, transfer
from cambist.codecs.contracts.owner_calldata import set_paused, set_relayer
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.errors import InvalidInput
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.port import EthCall
from support.chain.world import HOUR_S, NATIVE, ONE, USDC, World

ARRIVED = 2_500 * USDC
WASTING = bytes.fromhex("635b6000566000526004601cf3")
"""Init code of a contract that uses up all gas of each call."""


class Arriving(msgspec.Struct, frozen=True):
    """A chain at which bridges deliver USDC, where the maker sells WETH for it."""

    world: World
    arrivals: bytes

    async def terms(self, **changed: Any) -> ArrivalTerms:
        """The user wants nine tenths of a WETH at least, within the hour."""
        world = self.world
        until = await world.now_s() + HOUR_S
        terms = ArrivalTerms(world.user.address, world.usdc, world.weth, 9 * ONE // 10, until, b"\x07" * 32)
        return msgspec.structs.replace(terms, **changed)

    def at(self, terms: ArrivalTerms) -> bytes:
        return arrival_address(self.arrivals, terms, artifact("Arrival").init_code())

    async def deliver(self, terms: ArrivalTerms, amount: int = ARRIVED) -> bytes:
        """Tokens come as from a bridge: the account has no code by then."""
        await self.world.mint(terms.token, self.at(terms), amount)
        return self.at(terms)

    def quote(self, **changed: Any) -> RfqOrder:
        """The maker gives a WETH for 2,500 USDC, by a firm quote for the user."""
        world = self.world
        sides: dict[str, Any] = {
            "maker_asset": world.weth,
            "taker_asset": world.usdc,
            "maker_amount": ONE,
            "taker_amount": ARRIVED,
        }
        return world.a_firm_quote(**(sides | changed))

    def swap(self, terms: ArrivalTerms, *quotes: RfqOrder, receiver: bytes = b"") -> bytes:
        fills = [self.world.fill_step(quote, receiver=receiver or self.arrivals).data for quote in quotes]
        return swap_arrival(terms, fills, [self.world.usdc])

    async def refused(self, key: SigningKey, data: bytes) -> str:
        """Reason of a refused call, after which all is as before."""
        world = self.world
        people = (world.user, world.maker, world.stranger, self.arrivals, world.at.executor)
        before = await world.balances(*people)
        reason = await world.refused(key, self.arrivals, data)
        assert await world.balances(*people) == before
        return reason

    async def keeps_nothing(self) -> None:
        world = self.world
        for token in (world.weth, world.usdc, NATIVE):
            assert await world.balance(token, self.arrivals) == 0
            assert await world.balance(token, world.at.executor) == 0
        for token in (world.weth, world.usdc):
            for spender in (world.at.executor, world.at.rfq, world.user.address):
                assert await world.ask(token, allowance(self.arrivals, spender)) == 0


@pytest.fixture
async def arriving(world: World) -> Arriving:
    await world.give(world.maker, world.weth, 10 * ONE, world.at.rfq)
    return Arriving(world, world.at.arrivals)


async def test_the_address_is_the_contracts(arriving: Arriving) -> None:
    terms = await arriving.terms()
    answer = await arriving.world.chain.call(EthCall(arriving.arrivals, ARRIVAL_OF + pack_arrival(terms)))
    assert decode_address(answer) == arriving.at(terms)
    assert parse_arrival(pack_arrival(terms)) == terms
    assert arriving.at(msgspec.structs.replace(terms, least=terms.least - 1)) != arriving.at(terms)


@pytest.mark.parametrize("metadata", [b"", bytes(191), bytes(193), b"\1" * 192])
def test_other_metadata_has_no_terms(metadata: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_arrival(metadata)


async def test_what_arrived_is_swapped_for_the_beneficiary(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    account = await arriving.deliver(terms)
    receipt = await world.send(world.relayer, arriving.arrivals, arriving.swap(terms, arriving.quote()))
    (told,) = [
        event for log in receipt.logs if (event := decode_arrival_log(log.topics, log.data)) is not None
    ]
    assert told == ArrivalGiven(account, world.user.address, world.usdc, ARRIVED, ONE)
    assert await world.balance(world.weth, world.user) == ONE
    assert await world.balance(world.usdc, world.maker) == ARRIVED
    await arriving.keeps_nothing()


async def test_native_tokens_are_wanted(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms(dest_token=NATIVE)
    await arriving.deliver(terms)
    before = await world.balance(NATIVE, world.user)
    await world.send(world.relayer, arriving.arrivals, arriving.swap(terms, arriving.quote()))
    assert await world.balance(NATIVE, world.user) == before + ONE
    await arriving.keeps_nothing()


async def test_native_tokens_that_a_bridge_unwrapped_are_sold(arriving: Arriving) -> None:
    world = arriving.world
    terms = await arriving.terms(token=world.weth, dest_token=world.usdc, least=2_400 * USDC)
    await world.send(world.stranger, arriving.at(terms), b"", value_wei=ONE)
    await world.give(world.maker, world.usdc, ARRIVED, world.at.rfq)
    quote = world.a_firm_quote()
    fills = [world.fill_step(quote, receiver=arriving.arrivals).data]
    await world.send(world.relayer, arriving.arrivals, swap_arrival(terms, fills, [world.weth]))
    assert await world.balance(world.usdc, world.user) == ARRIVED
    await arriving.keeps_nothing()


async def test_what_makers_do_not_take_is_the_beneficiarys(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms, ARRIVED + 7)
    fill = world.fill_step(arriving.quote(), taker_amount=ARRIVED, receiver=arriving.arrivals).data
    await world.send(world.relayer, arriving.arrivals, swap_arrival(terms, [fill], [world.usdc]))
    assert await world.balance(world.usdc, world.user) == 7
    await arriving.keeps_nothing()


async def test_less_than_the_minimum_undoes_all(arriving: Arriving) -> None:
    terms = await arriving.terms()
    await arriving.deliver(terms)
    short = arriving.quote(maker_amount=terms.least - 1)
    refused = await arriving.refused(arriving.world.relayer, arriving.swap(terms, short))
    assert refused == f"BelowMinimum(received {terms.least - 1}, minimum {terms.least})"
    elsewhere = arriving.swap(terms, arriving.quote(), receiver=arriving.world.stranger.address)
    refused = await arriving.refused(arriving.world.relayer, elsewhere)
    assert refused == f"BelowMinimum(received 0, minimum {terms.least})"
    stays = arriving.swap(terms, arriving.quote(), receiver=arriving.world.at.executor)
    assert "BelowMinimum" in await arriving.refused(arriving.world.relayer, stays)


async def test_exactly_the_minimum_suffices(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms)
    exact = arriving.swap(terms, arriving.quote(maker_amount=terms.least))
    await world.send(world.relayer, arriving.arrivals, exact)
    assert await world.balance(world.weth, world.user) == terms.least
    await arriving.keeps_nothing()


async def test_the_minimum_is_of_what_came_and_not_of_what_is_there(arriving: Arriving) -> None:
    """Neither of the beneficiary's own tokens, nor of those that somebody has sent to the contract."""
    world, terms = arriving.world, await arriving.terms()
    for key in (world.user, world.stranger):
        await world.mint(world.weth, key, ONE)
    await world.send(world.stranger, world.weth, transfer(arriving.arrivals, ONE))
    await arriving.deliver(terms)
    short = arriving.swap(terms, arriving.quote(maker_amount=terms.least - 1))
    assert "BelowMinimum" in await arriving.refused(world.relayer, short)
    await world.send(world.relayer, arriving.arrivals, arriving.swap(terms, arriving.quote()))
    assert await world.balance(world.weth, world.user) == 2 * ONE
    assert await world.balance(world.weth, arriving.arrivals) == ONE


async def test_native_tokens_that_the_beneficiary_does_not_take_undo_all(arriving: Arriving) -> None:
    world = arriving.world
    terms = await arriving.terms(dest_token=NATIVE, beneficiary=world.dai)
    await arriving.deliver(terms)
    quote = arriving.quote(nonce_and_meta=pack_firm(world.dai, 7))
    refused = await arriving.refused(world.relayer, arriving.swap(terms, quote))
    assert refused == f"TransferFailed(token {to_hex(NATIVE)})"


async def test_what_was_left_with_the_executor_is_no_part_of_the_swap(arriving: Arriving) -> None:
    """The fill gives all there is, and the quote takes no unit more than what has arrived."""
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms)
    await world.mint(world.usdc, world.at.executor, 7)
    await world.send(world.relayer, arriving.arrivals, arriving.swap(terms, arriving.quote()))
    assert await world.balance(world.weth, world.user) == ONE
    assert await world.balance(world.usdc, world.user) == 7


async def test_nobody_but_the_beneficiary_has_it_paid_out_in_the_last_second(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms)
    data = pay_out_arrival(terms, world.usdc)
    await world.chain.set_time(terms.until)
    assert await arriving.refused(world.stranger, data) == f"NotYet(until {terms.until})"
    await world.pass_time(1)
    await world.send(world.stranger, arriving.arrivals, data)
    assert await world.balance(world.usdc, world.user) == ARRIVED


async def test_a_beneficiary_that_wastes_gas_has_its_swap_refused(arriving: Arriving) -> None:
    """It gets the gas of a receiver in a settlement, and not all gas of the relayer's transaction."""
    world = arriving.world
    wasting = (await world.send(world.owner, b"", WASTING)).contract
    assert wasting is not None
    terms = await arriving.terms(dest_token=NATIVE, beneficiary=wasting)
    await arriving.deliver(terms)
    data = arriving.swap(terms, arriving.quote(nonce_and_meta=pack_firm(wasting, 7)))
    assert "TransferFailed" in await arriving.refused(world.relayer, data)
    receipt = await world.forced(world.relayer, arriving.arrivals, data, gas=10_000_000)
    assert (receipt.succeeded, receipt.gas_used < 1_000_000) == (False, True)


async def test_other_terms_reach_nothing(arriving: Arriving) -> None:
    """A relayer that lowers the minimum computes another account, where nothing has arrived."""
    terms = await arriving.terms()
    await arriving.deliver(terms)
    for changed in ({"least": 0}, {"beneficiary": arriving.world.relayer.address}, {"until": 0}):
        other = msgspec.structs.replace(terms, **changed)
        data = arriving.swap(other, arriving.quote())
        assert await arriving.refused(arriving.world.relayer, data) == "NothingArrived()"


async def test_relayers_alone_swap_and_none_while_delta_is_paused(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms)
    data = arriving.swap(terms, arriving.quote())
    assert await arriving.refused(world.stranger, data) == "NotRelayer()"
    assert await arriving.refused(world.user, data) == "NotRelayer()"
    await world.send(world.owner, world.at.delta, set_paused(paused=True))
    assert await arriving.refused(world.relayer, data) == "Paused()"
    await world.send(world.owner, world.at.delta, set_paused(paused=False))
    await world.send(world.owner, world.at.delta, set_relayer(world.relayer.address, allowed=False))
    assert await arriving.refused(world.relayer, data) == "NotRelayer()"


async def test_the_beneficiary_has_it_paid_out_and_after_the_time_anybody(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms)
    data = pay_out_arrival(terms, world.usdc)
    assert await arriving.refused(world.stranger, data) == f"NotYet(until {terms.until})"
    await world.send(world.user, arriving.arrivals, data)
    assert await world.balance(world.usdc, world.user) == ARRIVED
    assert await arriving.refused(world.user, data) == "NothingArrived()"
    await arriving.deliver(terms, 5)  # it came late
    await world.pass_time(HOUR_S + 1)
    await world.send(world.stranger, arriving.arrivals, data)
    assert await world.balance(world.usdc, world.user) == ARRIVED + 5
    await arriving.keeps_nothing()


async def test_a_token_that_came_by_mistake_is_the_beneficiarys(arriving: Arriving) -> None:
    world, terms = arriving.world, await arriving.terms()
    await world.mint(world.dai, arriving.at(terms), ONE)
    await world.send(world.user, arriving.arrivals, pay_out_arrival(terms, world.dai))
    assert await world.balance(world.dai, world.user) == ONE


async def test_a_stranger_gets_nothing_of_an_arrival(arriving: Arriving) -> None:
    """Neither by the account itself, nor by the executor, nor by native tokens sent to the contract."""
    world, terms = arriving.world, await arriving.terms()
    await arriving.deliver(terms, 2 * ARRIVED)
    arrival = arriving.at(terms)
    await world.send(
        world.relayer,
        arriving.arrivals,
        swap_arrival(
            terms,
            [world.fill_step(arriving.quote(), taker_amount=ARRIVED, receiver=arriving.arrivals).data],
            [world.usdc],
        ),
    )
    await world.mint(world.usdc, arrival, ARRIVED)
    give = selector("give(address,address,address)")
    words = address_word(world.usdc) + address_word(world.weth) + address_word(world.stranger.address)
    assert await world.refused(world.stranger, arrival, give + words) == "NotArrivals()"
    assert await world.refused(world.stranger, arriving.arrivals, b"", value_wei=1) != ""
    assert await world.balance(world.usdc, world.stranger) == 0
