"""Random lives of transfers over the dev bridges: stops, silence, foreign fills, re-organisations.

At rest every deposit that its chain has was paid out once: to the account that filled it, or to its
depositor. Every burn that its chain has is minted once, and the recipient has what was filled and minted, to
the unit.
"""

from contextlib import suppress
from typing import Any

import pytest
import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from cambist.codecs.bridges import across, cctp
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word
from cambist.config.errors import Reverted
from support.bridge.two_chains import RECIPIENT, TwoChains, two_chains
from support.chain.world import MOST, USDC
from support.examples import IS_LONG, examples

pytestmark = pytest.mark.seldom

HOUR_S = 3_600
PHASES = tuple(Phase) if IS_LONG else (Phase.explicit, Phase.reuse, Phase.generate)
CHAIN = st.integers(0, 1)
WHICH = st.integers(0, 9)
AMOUNT = st.integers(1, 1_000).map(lambda dollars: dollars * USDC)
ACTS = st.one_of(
    st.tuples(st.just("deposit"), CHAIN, AMOUNT, st.sampled_from([20, 120, HOUR_S])),
    st.tuples(st.just("deposit"), CHAIN, AMOUNT, st.sampled_from([20, 120, HOUR_S])),
    st.tuples(st.just("burn"), CHAIN, AMOUNT, st.booleans()),
    st.tuples(st.just("deliver"), WHICH),
    st.tuples(st.just("deliver"), WHICH),
    st.tuples(st.just("fill"), WHICH),
    st.tuples(st.just("relayer"), st.booleans(), st.booleans(), st.sampled_from([0.0, 1.0, 60.0])),
    st.tuples(st.just("attester"), st.booleans(), st.booleans()),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 3, 30, 200])),
    st.tuples(st.just("fork"), CHAIN, st.integers(1, 3)),
    st.just(("restart",)),
)


class Life:
    """The two chains, with the transfers so far."""

    def __init__(self, two: TwoChains) -> None:
        self.two = two
        self.deposits: list[tuple[int, across.FundsDeposited]] = []
        self.burns: list[tuple[int, bytes]] = []

    async def do(self, act: tuple[Any, ...]) -> None:
        """Make an act."""
        name, *given = act
        await getattr(self, f"_{name}")(*given)

    def _chain(self, number: int) -> int:
        return (self.two.first, self.two.second)[number]

    async def _deposit(self, number: int, amount: int, seconds: int) -> None:
        origin = self._chain(number)
        deadline = await self.two.now_s(origin) + seconds
        self.deposits.append((origin, await self.two.deposit(origin, amount, fill_deadline=deadline)))

    async def _burn(self, number: int, amount: int, is_fast: bool) -> None:
        origin = self._chain(number)
        finality = cctp.FINALITY_CONFIRMED if is_fast else cctp.FINALITY_FINALIZED
        tx_hash = await self.two.burn(origin, amount, max_fee=amount // 5_000, min_finality=finality)
        self.burns.append((origin, tx_hash))

    async def _deliver(self, which: int) -> None:
        """Hand in whatever is attested of a burn; the destination may refuse it."""
        for origin, tx_hash in self.burns[which : which + 1]:
            for sent in self.two.attester.messages(self.two.places[origin].domain, tx_hash):
                if sent.raw:
                    with suppress(Reverted):
                        await self.two.receive(self.two.other(origin), sent.raw, sent.attestation)

    async def _fill(self, which: int) -> None:
        """Fill a deposit by another account than the relayer's, unless the pool refuses."""
        two = self.two
        for origin, deposit in self.deposits[which : which + 1]:
            destination = two.other(origin)
            pool, token = two.places[destination].spoke_pool, two.tokens["USDC"][destination]
            await two.worlds[destination].mint(token, two.stranger, deposit.output_amount)
            await two.send(destination, two.stranger, token, calldata.approve(pool, MOST))
            data = across.fill_relay(deposit.relay(origin), origin, address_word(two.stranger.address))
            with suppress(Reverted):
                await two.send(destination, two.stranger, pool, data)

    async def _relayer(self, is_silent: bool, is_insolvent: bool, after_s: float) -> None:
        self.two.relayer.order(is_silent=is_silent, is_insolvent=is_insolvent, fill_after_s=after_s)

    async def _attester(self, is_silent: bool, signs_wrongly: bool) -> None:
        self.two.attester.order(is_silent=is_silent, signs_wrongly=signs_wrongly)

    async def _pass(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def _fork(self, number: int, depth: int) -> None:
        """Replace the last blocks of a chain, unless a fill that is repaid already would go."""
        chain_id = self._chain(number)
        chain = self.two.chains[chain_id]
        head = (await chain.upcoming()).head.number
        paid = {one.root_bundle_id for one in await self.two.payouts(self.two.other(chain_id))}
        fills = await self.two.all_fills(chain_id, first=head - depth + 1)
        if not any(fill.deposit_id in paid for fill in fills):
            await chain.reorganise(depth)

    async def _restart(self) -> None:
        self.two.stop()
        await self.two.start()

    async def rest(self) -> None:
        """Let both do their work, and hand in every burn."""
        await self._relayer(False, False, 0.0)
        await self._attester(False, False)
        await self._restart()  # wrong signatures are forgotten with it
        await trio.sleep(2 * HOUR_S)
        for which in range(len(self.burns)):
            await self._deliver(which)

    async def check(self) -> None:
        """See the module."""
        two = self.two
        for origin in (two.first, two.second):
            destination = two.other(origin)
            deposits = await two.all_deposits(origin)
            fills = await two.all_fills(destination)
            payouts = {one.root_bundle_id: one for one in await two.payouts(origin)}
            assert len(payouts) == len(await two.payouts(origin))
            assert payouts.keys() == {deposit.deposit_id for deposit in deposits}
            for deposit in deposits:
                its = [fill for fill in fills if fill.is_of(deposit.relay(origin))]
                assert len(its) <= 1
                receiver = its[0].relayer[12:] if its else deposit.depositor[12:]
                payout = payouts[deposit.deposit_id]
                assert payout.refund_addresses == (receiver,)
                assert payout.refund_amounts == (deposit.input_amount,)
            assert await two.balance(origin, "USDC", two.places[origin].spoke_pool) == 0
            minted = await two.all_minted(destination)
            arrived = sum(fill.updated_output_amount for fill in fills) + sum(one.amount for one in minted)
            assert await two.balance(destination, "USDC", RECIPIENT) == arrived
            assert len(set(await self._nonces(destination))) == len(minted)
            for place in self.burns:
                if place[0] == origin and await two.chains[origin].receipt(place[1]) is not None:
                    (sent,) = two.attester.messages(two.places[origin].domain, place[1])
                    assert sent.nonce in await self._nonces(destination)

    async def _nonces(self, destination: int) -> list[bytes]:
        return [one.nonce for one in await self.two.all_received(destination)]


async def lived(acts: list[tuple[Any, ...]]) -> None:
    async with two_chains() as two:
        life = Life(two)
        for act in acts:
            await life.do(act)
        await life.rest()
        await life.check()


@given(acts=st.lists(ACTS, min_size=10, max_size=30))
@settings(max_examples=examples(12), phases=PHASES, deadline=None)
def test_whatever_happens_transfers_arrive_or_come_back(acts: list[tuple[Any, ...]]) -> None:
    trio.run(lived, acts, clock=MockClock(autojump_threshold=0))
