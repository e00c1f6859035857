"""5,000 live OTC orders of 500 makers follow what logs say: only the accounts of touched makers are read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF, remaining_balances
from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.limits import VENUE_FUNDS_ACCOUNTS_MAX
from cambist.engine.store.rows import OtcOrderRow, amount_of
from support.otc.otc_chain import OtcChain
from support.otc.otc_engine import OtcVenue, an_order, otc_store, running
from support.store.stores import WETH

_S = OtcState
MAKERS, ORDERS = 500, 5_000
EACH = ORDERS // MAKERS
LEFT = remaining_balances(bytes(20), [])[:4]


def maker(number: int) -> bytes:
    return (10_000 + number).to_bytes(20, "big")


@asynccontextmanager
async def a_crowd(folder: Path) -> AsyncIterator[tuple[OtcVenue, list[OtcOrderRow]]]:
    """A venue with all orders that has read every account; its counts begin at zero."""
    chain = OtcChain()
    for number in range(MAKERS):
        chain.has(maker(number), 100 * EACH)
    chain.mine()
    async with otc_store(folder) as store, running(store, chain) as venue:
        rows = [an_order(number, maker=maker(number % MAKERS)) for number in range(ORDERS)]
        for at in range(0, ORDERS, MAKERS):
            async with trio.open_nursery() as nursery:
                for row in rows[at : at + MAKERS]:
                    nursery.start_soon(venue.submit, row)
        chain.mine()
        await venue.is_told()
        told = venue.funds.statistics()
        assert (told.orders, told.accounts, told.waiting) == (ORDERS, MAKERS, 0)
        assert venue.orders.statistics().orders == {_S.PENDING: ORDERS}
        forget(chain)
        yield venue, rows


def forget(chain: OtcChain) -> None:
    """Count from now on."""
    chain.questions.clear()
    chain.batches.clear()
    chain.calls.clear()


async def test_a_balance_that_moves_is_one_question_however_many_orders_there_are(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with a_crowd(tmp_path) as (venue, rows):
        chain = venue.chain
        chain.mine(10)
        await venue.is_told()
        assert chain.batches == [], "blocks that touch nobody are no cause to ask"
        touched = (3, 77, 499)
        for number in touched:
            chain.has(maker(number), 250)
        chain.mine()
        await venue.is_told()
        assert sorted(chain.questions) == [(WETH, maker(number)) for number in touched]
        assert chain.calls == {BALANCE_OF: 3, ALLOWANCE: 3, LEFT: 3}
        assert len(chain.batches) == 2
        for number in touched:
            shares = [amount_of((await venue.row(row)).reserved) for row in rows[number::MAKERS]]
            assert shares == [100, 100, 50] + [0] * (EACH - 3)
        assert venue.orders.statistics().orders == {_S.PENDING: ORDERS}


async def test_a_maker_that_comes_to_nothing_suspends_its_own_orders_alone(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with a_crowd(tmp_path) as (venue, rows):
        chain = venue.chain
        for number in (1, 2):
            chain.has(maker(number), 0)
        chain.fills(rows[5], 40)
        chain.allows(maker(6), 99)
        chain.mine()
        await venue.is_told()
        assert set(chain.questions) == {(WETH, maker(number)) for number in (1, 2, 5, 6)}
        assert len(chain.questions) <= 5, "the filled one may be read again once its row is known"
        assert venue.orders.statistics().orders == {_S.PENDING: ORDERS - 3 * EACH, _S.SUSPENDED: 3 * EACH}
        assert amount_of((await venue.row(rows[5])).remaining) == 60
        forget(chain)
        for number in (1, 2, 6):
            chain.has(maker(number), 10_000)
            chain.allows(maker(number), 10_000)
        chain.mine()
        await venue.is_told()
        assert sorted(chain.questions) == [(WETH, maker(number)) for number in (1, 2, 6)]
        assert venue.orders.statistics().orders == {_S.PENDING: ORDERS}
        told = venue.funds.statistics()
        assert (told.suspended, told.restored) == (3 * EACH, 3 * EACH)


async def test_everybody_at_once_is_a_question_for_each_account_in_batches(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with a_crowd(tmp_path) as (venue, _):
        chain = venue.chain
        for number in range(MAKERS):
            chain.has(maker(number), 0)
        chain.mine()
        await venue.is_told()
        assert chain.calls == {BALANCE_OF: MAKERS, ALLOWANCE: MAKERS, LEFT: MAKERS}
        assert len(set(chain.questions)) == MAKERS
        assert max(chain.batches) == 2 * VENUE_FUNDS_ACCOUNTS_MAX
        assert venue.orders.statistics().orders == {_S.SUSPENDED: ORDERS}
