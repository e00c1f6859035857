"""Each contract's own settings and its addresses of the other contracts, after deployment."""

from cambist.codecs.contracts.abi import decode_address, selector
from cambist.codecs.eip712_orders.delta import delta_domain_separator
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.engine.chain.port import EthCall
from support.chain.world import DELTA_NAME, DELTA_VERSION, RFQ_NAME, World


async def test_contracts_know_each_other(world: World) -> None:
    at = world.at
    wanted = {
        (at.executor, "rfq()"): at.rfq,
        (at.bridges, "spokePool()"): world.spoke_pool,
        (at.bridges, "tokenMessenger()"): world.token_messenger,
        (at.delta, "bridges()"): at.bridges,
        (at.arrivals, "delta()"): at.delta,
        (at.arrivals, "executor()"): at.executor,
        (at.arrivals, "weth()"): world.weth,
        **{
            (contract, f"{name}()"): address
            for contract in (at.delta, at.router)
            for name, address in (
                ("executor", at.executor),
                ("feeVault", at.fee_vault),
                ("weth", world.weth),
                ("permit2", world.permit2),
                ("protocol", world.protocol),
                ("owner", world.owner.address),
            )
        },
    }
    for (contract, question), address in wanted.items():
        answer = await world.chain.call(EthCall(contract, selector(question)))
        assert decode_address(answer) == address, question


async def test_domains_and_types_are_those_that_wallets_sign(world: World) -> None:
    chain, at = world.chain, world.at
    separator = selector("DOMAIN_SEPARATOR()")
    assert await chain.call(EthCall(at.rfq, separator)) == rfq_domain_separator(
        RFQ_NAME, chain.chain_id, at.rfq
    )
    assert await chain.call(EthCall(at.delta, separator)) == delta_domain_separator(
        DELTA_NAME, DELTA_VERSION, chain.chain_id, at.delta
    )
    type_hash = await chain.call(EthCall(at.rfq, selector("RFQ_ORDER_TYPEHASH()")))
    assert type_hash == RFQ_ORDER.compiled.type_hash
