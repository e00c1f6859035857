"""Events of the real contracts become rows; a re-organisation removes the rows of its dropped blocks."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.delta_calldata import Execution
from cambist.codecs.eip712_orders.delta import KIND_BUY
from cambist.engine.chain.index.applied import IndexedContracts
from cambist.engine.chain.index.watch import Watch
from cambist.engine.store.rows import amount32
from support.chain.indexing import Kept, Told, an_indexer, kept_by, run_dry, scanned, sqlite_engine
from support.chain.world import ONE, USDC, World


@pytest.mark.one_chain
async def test_fills_cancels_settlements_deposits_and_nonces(world: World, tmp_path: Path) -> None:
    chain, at = world.chain, world.at
    contracts = IndexedContracts(at.rfq, at.delta)
    watch, told = Watch(), Told()
    for token in (world.weth, world.usdc):
        watch.follow(token, world.user.address)
    async with sqlite_engine(tmp_path).open() as store:
        indexer = an_indexer(chain, store, contracts=contracts, watch=watch, told=told, first_block=0)
        await world.give(world.maker, world.usdc, 50_000 * USDC, at.rfq)
        await world.give(world.taker, world.weth, 3 * ONE, at.rfq)
        await world.give(world.user, world.weth, 3 * ONE, at.delta)
        await run_dry(indexer)
        assert (world.weth, world.user.address) in told.taken()

        # OTC: a part, and the rest is cancelled.
        otc = world.an_rfq_order()
        part = calldata.partial_fill_order(otc, world.signed(otc), ONE // 4)
        await world.send(world.taker, at.rfq, part)
        await world.send(world.maker, at.rfq, calldata.cancel_order(world.rfq_hash(otc)))
        await run_dry(indexer)
        kept = await kept_by(store, chain.chain_id)
        (fill,), (cancel,) = kept["otc_fill"], kept["otc_cancel"]
        assert fill.order_hash == cancel.order_hash == world.rfq_hash(otc)
        assert (fill.maker_amount, fill.taker_amount) == (amount32(625 * USDC), amount32(ONE // 4))

        # Delta: a sale in two parts by a firm quote each, and a pre-signed order with a deposit.
        told.taken()
        sale = await world.a_delta_order()
        for amount in (ONE // 4, ONE - ONE // 4):
            quote = world.a_firm_quote(maker_amount=2_500 * USDC * amount // ONE, taker_amount=amount)
            execution = Execution(0, 0, (world.fill_step(quote),))
            data = delta_calldata.settle(sale, world.delta_signed(sale), amount, execution)
            await world.send(world.relayer, at.delta, data)
        await run_dry(indexer)
        assert told.taken() == {(world.weth, world.user.address), (world.usdc, world.user.address)}
        kept = await kept_by(store, chain.chain_id)
        assert {row.order_hash for row in kept["delta_fill"]} == {world.delta_hash(sale)}
        assert {(row.spent, row.received) for row in kept["delta_fill"]} == {
            (amount32(ONE // 4), amount32(625 * USDC)),
            (amount32(ONE - ONE // 4), amount32(1_875 * USDC)),
        }
        assert [row.nonce for row in kept["nonce_used"]] == [amount32(sale.nonce)]
        purchase = await world.a_delta_order(kind=KIND_BUY, src_amount=ONE, dest_amount=USDC)
        purchase_hash = world.delta_hash(purchase)
        await world.send(
            world.user, at.delta, delta_calldata.set_pre_signature(purchase_hash, is_signed=True)
        )
        await world.send(
            world.user, at.delta, delta_calldata.deposit_native_and_pre_sign(purchase_hash), value_wei=5
        )
        before = await chain.block()
        assert before is not None
        await world.send(world.user, at.delta, delta_calldata.invalidate_nonces([purchase.nonce]))
        await run_dry(indexer)
        kept = await kept_by(store, chain.chain_id)
        assert {row.order_hash for row in kept["pre_signature"]} == {purchase_hash}
        assert amount32(purchase.nonce) in {row.nonce for row in kept["nonce_used"]}
        assert kept == await scanned(chain, contracts)

        # The last block goes, then all since the sale's first part.
        await chain.reorganise(1)
        await run_dry(indexer)
        kept = await kept_by(store, chain.chain_id)
        assert (len(kept["pre_signature"]), len(kept["nonce_used"])) == (2, 1)
        await chain.reorganise(4)
        await run_dry(indexer)
        kept = await kept_by(store, chain.chain_id)
        assert counts(kept) == {"otc_fill": 2, "otc_cancel": 1, "delta_fill": 1}
        assert kept == await scanned(chain, contracts)


def counts(kept: Kept) -> dict[str, int]:
    return {name: len(rows) for name, rows in kept.items() if rows}
