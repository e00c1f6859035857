"""A chain splits: the contract is on both sides, and what makers signed for one is none for the other."""

import time

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.config.errors import Reverted
from cambist.crypto.signatures import to_65
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.anvil import OTHER_CHAIN_ID
from support.chain.put_code import put_code
from support.chain.world import RFQ_NAME, World
from support.contracts.rfq_stories import filled, funded, order_hash_question, refusal, rfq_events


async def test_a_fork_has_signatures_of_its_own(world: World) -> None:
    await funded(world)
    rfq = world.at.rfq
    fork = EmbeddedChain(OTHER_CHAIN_ID, lambda: int(time.time()), {}, known_errors())
    await put_code(fork, rfq, await world.chain.code(rfq))
    order = world.an_rfq_order()
    question = EthCall(rfq, order_hash_question(order))
    fork_hash = RFQ_ORDER.compiled.digest_for(rfq_domain_separator(RFQ_NAME, OTHER_CHAIN_ID, rfq))(order)
    assert await fork.call(question) == fork_hash
    assert await world.chain.call(question) == world.rfq_hash(order) != fork_hash
    here = calldata.fill_order(order, world.signed(order))
    there = calldata.fill_order(order, to_65(*world.maker.sign(fork_hash)))
    assert await refusal(world, world.taker, there, order) == "Invalid Signature"
    with pytest.raises(Reverted, match="Invalid Signature"):
        await fork.call(EthCall(rfq, here, world.taker.address))
    with pytest.raises(Reverted) as caught:
        await fork.call(EthCall(rfq, there, world.taker.address))
    assert caught.value.reason == ""  # the order is signed; only the tokens are missing
    assert rfq_events(world, await world.send(world.taker, rfq, here)) == [filled(world, order)]
